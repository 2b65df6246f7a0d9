"""One record a client: where its files stand, under which key it keeps servers, and what an entry looks like."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.cli.client_files import Left, jsonc, toml
from octavo.core.clients import CLIENT_FILES, own_files


class ServerEntry(NamedTuple):
    """What an entry leads to: a command that the client starts, or an address."""

    command: tuple[str, ...] = ()
    url: str = ""
    key_env: str = ""  # the variable that holds the key; the key itself is never written


class FileFormat(NamedTuple):
    """How a text is read, changed, and shown without values of others. All raise `Broken`."""

    read: Callable[[str], Mapping[str, Any]]
    put: Callable[[str, tuple[str, ...], Mapping[str, Any]], str]
    take: Callable[[str, tuple[str, ...]], str]
    veiled: Callable[[str, frozenset[str], tuple[str, ...]], str]


JSON: Final = FileFormat(jsonc.read, jsonc.put, jsonc.take, jsonc.veiled)
TOML: Final = FileFormat(toml.read, toml.put, toml.take, toml.veiled)


class Client(NamedTuple):
    name: str
    title: str
    key: tuple[str, ...]
    local: Callable[[ServerEntry], Mapping[str, Any]]
    remote: Callable[[ServerEntry], Mapping[str, Any]] | None
    reference: str | None  # how a text names an environment variable; None where the client knows no way
    format: FileFormat = JSON

    @property
    def project(self) -> tuple[str, ...]:
        """The candidates in a project, relative to it; none where the client has no such file."""
        return CLIENT_FILES[self.name].project

    def entry(self, server: ServerEntry) -> Mapping[str, Any]:
        """Raises `Left` where the client cannot be told that."""
        if not server.url:
            return self.local(server)
        if self.remote is None:
            raise Left("no_remote", client=self.title)
        if server.key_env and self.reference is None:
            raise Left("no_reference", client=self.title)
        return self.remote(server)

    def bearer(self, server: ServerEntry) -> dict[str, Any]:
        if not server.key_env:
            return {}
        return {"headers": {"Authorization": f"Bearer {(self.reference or '').replace('NAME', server.key_env)}"}}


def place_of(client: Client, environ: Mapping[str, str], home: Path, *, system: str = sys.platform) -> list[Path]:
    """The candidates for the user's own file, on this system."""
    return own_files(CLIENT_FILES[client.name], environ, home, system=system)


def _command(server: ServerEntry) -> dict[str, Any]:
    return {"command": server.command[0], "args": list(server.command[1:])}


def _opencode(server: ServerEntry) -> dict[str, Any]:
    return {"type": "local", "command": list(server.command), "environment": {}, "enabled": True}


def _zed(server: ServerEntry) -> dict[str, Any]:
    return {"source": "custom", **_command(server), "env": {}}


def _codex(server: ServerEntry) -> dict[str, Any]:
    return {"url": server.url} | ({"bearer_token_env_var": server.key_env} if server.key_env else {})


SERVERS: Final = ("mcpServers",)
_TYPED: Final = {"type": "http"}


def _made(
    name: str,
    title: str,
    *,
    key: tuple[str, ...] = SERVERS,
    local: Callable[[ServerEntry], Mapping[str, Any]] = _command,
    remote: str | None = "url",
    more: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reference: str | None = "${NAME}",
) -> Client:
    """A client whose remote entry is an address, under the key `remote`, and headers."""

    def addressed(server: ServerEntry) -> Mapping[str, Any]:
        return {**(more or {}), str(remote): server.url, **made.bearer(server), **(after or {})}

    made = Client(name, title, key, local, addressed if remote else None, reference)
    return made


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        _made("claude-code", "Claude Code", more=_TYPED),
        _made("claude-desktop", "Claude Desktop", remote=None),
        _made("vscode", "VS Code", key=("servers",), more=_TYPED, reference="${env:NAME}"),
        _made("cursor", "Cursor", reference="${env:NAME}"),
        Client("codex", "Codex", ("mcp_servers",), _command, _codex, "NAME", TOML),
        _made("gemini-cli", "Gemini CLI", more=_TYPED),
        _made(
            "opencode",
            "OpenCode",
            key=("mcp",),
            local=_opencode,
            more={"type": "remote"},
            after={"enabled": True},
            reference="{env:NAME}",
        ),
        _made(
            "zed",
            "Zed",
            key=("context_servers",),
            local=_zed,
            more={"source": "custom", "type": "http"},
            reference=None,
        ),
        _made("windsurf", "Windsurf", remote="serverUrl", reference="${env:NAME}"),
    )
}
