"""`octavo demo`: an example organisation, served at once, and the lines that connect common clients to it."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from octavo.cli._screen import out
from octavo.cli._shared import loaded
from octavo.cli.serve import announce

KEY = "OCTAVO_KEY"  # the variable that the lines for a shell use
PROTOCOL = "2026-07-28"


class ConnectionDetails(NamedTuple):
    url: str
    command: tuple[str, ...]  # what a client starts that speaks stdio
    agent: str
    key_file: str


def ready_lines(to: ConnectionDetails) -> Iterator[tuple[str, str]]:
    """Client by client: its name, and what to run or where to paste."""
    bearer = f'"Authorization: Bearer ${KEY}"'
    header = {"Authorization": f"Bearer ${{env:{KEY}}}"}
    stdio = {"command": to.command[0], "args": list(to.command[1:])}
    yield "first, in the shell", f"export {KEY}=$(cat {shlex.quote(to.key_file)})   # you are {to.agent}"
    yield "Claude Code", f"claude mcp add --transport http octavo {to.url} --header {bearer}"
    yield "Claude Desktop, claude_desktop_config.json", _json({"mcpServers": {"octavo": stdio}})
    yield (
        "VS Code, .vscode/mcp.json",
        _json({"servers": {"octavo": {"type": "http", "url": to.url, "headers": header}}}),
    )
    yield "Cursor, ~/.cursor/mcp.json", _json({"mcpServers": {"octavo": {"url": to.url, "headers": header}}})
    yield "Codex", f"codex mcp add octavo --url {to.url} --bearer-token-env-var {KEY}"
    yield "Gemini CLI", f"gemini mcp add --transport http --header {bearer} octavo {to.url}"
    yield (
        "Inspector",
        f"npx @modelcontextprotocol/inspector --cli {to.url} --transport http --header {bearer}"
        " --method resources/list",
    )
    yield "curl", _curl(to.url, bearer)


def _curl(url: str, bearer: str) -> str:
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = _json({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"_meta": meta}})
    headers = (
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {PROTOCOL}",
        "Mcp-Method: resources/list",
    )
    return f"curl -s {url} -H {bearer} {' '.join(f'-H {shlex.quote(one)}' for one in headers)} -d {shlex.quote(body)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


NAME = "maison-haru"
# As in its octavo.yaml.
AGENTS = ("agent-brand", "agent-finance", "agent-hr", "agent-ops", "agent-orchestrator")
KEYS = ".keys"
NOT_COPIED = shutil.ignore_patterns(KEYS, ".octavo")


@click.command(short_help="Make an example organisation with a policy, and serve it here.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("octavo-demo"),
    show_default=True,
    help="Where the folder is made.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="On 127.0.0.1, instead of what serve.http.bind of the folder says."
)
@click.option("--no-serve", is_flag=True, help="Only make the folder.")
def demo(directory: Path, port: int | None, no_serve: bool) -> None:
    """Make an example organisation with a policy, and serve it on this machine.

    The folder is yours: edit it, and run the command again to serve it again.
    """
    from octavo.app import serve as server
    from octavo.config.units import Bind

    directory = directory.absolute()
    fresh = make(directory)
    found = loaded(directory / "octavo.yaml")
    http = found.config.serve.http
    bind = http.bind if port is None else Bind("127.0.0.1", port)
    if bind.socket is not None:
        raise click.UsageError(
            f"The demo shows itself at a port, not at {bind}: give --port, or use octavo serve --http"
        )

    def show() -> None:
        out(
            f"{'Made' if fresh else 'Found'} {directory}: change whatever you like.",
            "",
            "  The key of each agent stands in a file that only you can read:",
            *(f"  {name:<20} {directory / KEYS / name}" for name in AGENTS),
            *_what_to_try(directory, f"{'http' if http.tls is None else 'https'}://{bind}").split("\n"),
        )

    def ready(address: str) -> None:
        show()
        announce(address)

    if no_serve:
        show()
    else:
        server.serve_http(found, bind=bind, as_who=None, no_auth=False, ready=ready)  # shown once it listens


def make(directory: Path) -> bool:
    """Copies the example and gives every agent a key of its own. False if it was there already.

    Raises UsageError for a folder that holds something else.
    """
    config = directory / "octavo.yaml"
    fresh = not config.is_file()
    if directory.is_dir() and any(directory.iterdir()) and (fresh or not _is_example(config)):
        raise click.UsageError(f"{directory} holds something else; choose another folder with --dir")
    if fresh:
        shutil.copytree(_example(), directory, dirs_exist_ok=True, copy_function=shutil.copyfile, ignore=NOT_COPIED)
        (directory / ".gitignore").write_text(f"{KEYS}/\n.octavo/\n", encoding="utf-8")
    keys = directory / KEYS
    keys.mkdir(mode=0o700, exist_ok=True)
    for name in AGENTS:
        _make_key(keys / name)
    return fresh


def _example() -> Path:
    """In an installed package it stands beside the rooms, in a checkout beside `src`."""
    package = Path(__file__).parents[1]
    places = [above / "examples" / NAME for above in (package, package.parents[1])]
    return next(place for place in places if place.is_dir())


def _is_example(config: Path) -> bool:
    """Whether it asks for the keys that are made here, whatever else was changed in it."""
    text = config.read_text(encoding="utf-8", errors="replace")
    return all(f"file:{KEYS}/{name}" in text for name in AGENTS)


def _make_key(file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(f"octavo_{secrets.token_urlsafe(32)}\n")


def _what_to_try(directory: Path, server: str) -> str:
    config = directory / "octavo.yaml"
    agent = AGENTS[0]
    installed = shutil.which("octavo")
    program = (installed,) if installed else (sys.executable, "-m", "octavo")
    octavo = "octavo" if installed else shlex.join(program)
    connection = ConnectionDetails(
        url=f"{server}/mcp",
        command=(*program, "serve", "--config", str(config), "--as", agent),
        agent=agent,
        key_file=str(directory / KEYS / agent),
    )
    connect = "\n".join(f"  {name}\n    {line}" for name, line in ready_lines(connection))
    return f"""
  MCP     {connection.url}
  health  {server}/healthz

In another terminal, in {directory}:
  {octavo} ls
  {octavo} cat sop://brand/campaign-brief --as {agent}
  {octavo} cat sop://hr/salary-policy --as {agent}     # refused, with the reason
  {octavo} explain {agent} read sop://hr/salary-policy
  {octavo} cat "skill://?match=예산이 남았나요" --as {agent}
  {octavo} watch "sop://brand/*" --as {agent}     # and edit handbook/sops/brand/campaign-brief.md
  {octavo} check     # every fault of the handbook, with file and line
  {octavo} audit verify     # every request is on record

Connect a client:
{connect}
"""
