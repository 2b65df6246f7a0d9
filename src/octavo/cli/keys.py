"""`octavo keys`: keys of agents that expire, follow one another, and can be taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octavo.cli._screen import out
from octavo.cli._shared import LOCAL, config_option, json_option, known_agent, loaded, print_json, tell

if TYPE_CHECKING:
    from octavo.app import Octavo
    from octavo.config.load import Loaded
    from octavo.stores.keys import StoredKey

DAYS = 90
HOURS = 24


@click.group()
def keys() -> None:
    """Keys with which agents connect over HTTP.

    Octavo keeps their hashes in its store. A server that runs learns of a change within seconds.
    """


@keys.command()
@click.argument("agent")
@config_option
@click.option(
    "--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True, help="After how many days it expires."
)
@click.option(
    "--overlap",
    type=click.IntRange(0, 8760),
    default=HOURS,
    show_default=True,
    help="For how many hours the agent's earlier key goes on to work.",
)
@json_option
def new(agent: str, config_file: Path | None, days: int, overlap: int, as_json: bool) -> None:
    """Make a key for AGENT, and print it. It is shown this once.

    An agent has two keys at most: the one that goes and the one that comes.
    """
    from octavo.app.once import changing, inside
    from octavo.core.clock import SystemClock, iso

    found = loaded(config_file, keyless=True)
    if known_agent(found, agent) not in found.config.agents:
        raise click.UsageError(f"{agent} is no agent of the configuration, so that it has no key")

    async def ask(server: Octavo) -> tuple[str, StoredKey]:
        now, held = SystemClock.wall(), server.keys
        with changing(server, LOCAL, "keys new", agent=agent) as learnt:
            text, made = await held.issue(agent, now=now, expires=now + days * 86_400.0, overlap=overlap * 3600.0)
            learnt["key"] = made.id
        return text, made

    text, made = inside(found, ask)
    expires = iso(made.expires) if made.expires is not None else None
    if as_json:
        print_json({"key": text, "id": made.id, "agent": agent, "expires": expires})
    else:
        tell(f"key {made.id} of {agent}, until {expires}; it is not kept and not shown again")
        out(text)


@keys.command("list")
@config_option
@json_option
def list_(config_file: Path | None, as_json: bool) -> None:
    """List the keys that there are, without the keys themselves."""
    rows = _known(loaded(config_file, keyless=True))
    if as_json:
        print_json({"keys": rows})
        return
    for row in rows:
        out(f"{row['id']:13}  {row['agent']:20}  {row['state']:8}  {row['expires'] or 'never expires'}")


@keys.command()
@click.argument("key_id", metavar="ID")
@config_option
def revoke(key_id: str, config_file: Path | None) -> None:
    """Take the key with this ID back. Requests with it are refused from then on, and its streams end."""
    from octavo.app.once import changing, inside

    async def ask(server: Octavo) -> StoredKey:
        with changing(server, LOCAL, "keys revoke", key=key_id) as learnt:
            gone = await server.keys.revoke(key_id)
            learnt["agent"] = gone.agent
        return gone

    gone = inside(loaded(config_file, keyless=True), ask)
    tell(f"key {gone.id} of {gone.agent} is revoked")


def _known(found: Loaded) -> list[dict[str, str | None]]:
    """Those of the configuration, then those of the store."""
    from octavo.app.stores import looked_at
    from octavo.core.clock import SystemClock, iso
    from octavo.stores.keys import StoredKeys

    rows: list[dict[str, str | None]] = [
        {"id": "configuration", "agent": name, "state": "live", "created": None, "expires": None}
        for name, agent in found.config.agents.items()
        if agent.digest is not None
    ]
    for key in looked_at(found, lambda opens: StoredKeys(opens).read()):
        state = "unused" if key.agent not in found.config.agents else "live"
        rows.append(
            {
                "id": key.id,
                "agent": key.agent,
                "state": state if key.live(SystemClock.wall()) else "expired",
                "created": iso(key.created),
                "expires": None if key.expires is None else iso(key.expires),
            }
        )
    return rows
