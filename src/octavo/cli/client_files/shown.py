"""The text of a client's file as it may be shown: without what neighbours are given as environment and headers."""

from __future__ import annotations

from typing import Final

from octavo.cli.client_files.records import Client

# Below which a value is nobody else's business, whatever it looks like; OpenCode says environment.
HELD: Final = frozenset(("env", "environment", "headers", "http_headers"))


def shown(client: Client, data: bytes | None, own: tuple[str, ...] = ()) -> list[str]:
    """Its lines. `own` is the path of the entry that this command writes, which is shown as it is."""
    text = "" if data is None else data.decode("utf-8-sig")
    return client.format.veiled(text, HELD, own).splitlines()
