"""Files in which MCP clients name the programs that they start: where each client looks, and how such a file is told.

Whoever writes one of them chooses what runs on the machine of its user, this very server among it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from octavo.core.foundation import Names, folded


class ClientFiles(NamedTuple):
    user: Mapping[str, tuple[str, ...]]  # candidates by system, as in `own_files`; the first that exists, or the first
    project: tuple[str, ...] = ()  # the same, relative to the project; none where the client has no such file


def _everywhere(*places: str) -> dict[str, tuple[str, ...]]:
    return {"linux": places}


def _apps(folder: str) -> dict[str, tuple[str, ...]]:
    return {"linux": (f"config/{folder}",), "darwin": (f"support/{folder}",), "win32": (f"appdata/{folder}",)}


CLIENT_FILES: Final[Mapping[str, ClientFiles]] = {
    "claude-code": ClientFiles(_everywhere("claude/.claude.json"), (".mcp.json",)),
    "claude-desktop": ClientFiles(_apps("Claude/claude_desktop_config.json")),
    "vscode": ClientFiles(_apps("Code/User/mcp.json"), (".vscode/mcp.json",)),
    "cursor": ClientFiles(_everywhere("home/.cursor/mcp.json"), (".cursor/mcp.json",)),
    "codex": ClientFiles(_everywhere("codex/config.toml"), (".codex/config.toml",)),
    "gemini-cli": ClientFiles(_everywhere("home/.gemini/settings.json"), (".gemini/settings.json",)),
    "opencode": ClientFiles(
        _everywhere("config/opencode/opencode.jsonc", "config/opencode/opencode.json"),
        ("opencode.jsonc", "opencode.json", ".opencode/opencode.jsonc", ".opencode/opencode.json"),
    ),
    "zed": ClientFiles(
        _everywhere("config/zed/settings.json") | {"win32": ("appdata/Zed/settings.json",)}, (".zed/settings.json",)
    ),
    "windsurf": ClientFiles(_everywhere("home/.codeium/windsurf/mcp_config.json")),
}
# Not for servers, but for commands that the same clients start at what happens in them.
HOOKS: Final = (
    ".claude/settings.json", ".claude/settings.local.json", ".cursor/hooks.json", ".codex/hooks.json",
    ".windsurf/hooks.json", ".codeium/windsurf/hooks.json",
)  # fmt: skip
_USUAL: Final = {"config": ".config/", "codex": ".codex/", "support": "Application Support/", "appdata": "Roaming/"}
IN_PROJECTS: Final = tuple(dict.fromkeys((*chain(*(files.project for files in CLIENT_FILES.values())), *HOOKS)))


def own_files(files: ClientFiles, environ: Mapping[str, str], home: Path, *, system: str = sys.platform) -> list[Path]:
    """The candidates for the user's own file, on this system."""
    found = files.user.get(system, files.user["linux"])
    folders = {
        "home": home,
        "config": _folder(environ, "XDG_CONFIG_HOME") or home / ".config",
        "support": home / "Library" / "Application Support",
        "appdata": _folder(environ, "APPDATA") or home / "AppData" / "Roaming",
        "claude": _folder(environ, "CLAUDE_CONFIG_DIR") or home,
        "codex": _folder(environ, "CODEX_HOME") or home / ".codex",
    }
    return [folders[first].joinpath(*rest) for first, *rest in (one.split("/") for one in found)]


def starts_programs(names: Sequence[str]) -> bool:
    """Whether a file of these names, in whatever folder, is one of them: a client may be opened in each."""
    spelled = folded(tuple(names))
    return any(spelled[-len(one) :] == one for one in _BY_NAME.get(spelled[-1], ())) if spelled else False


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    given = Path(environ.get(name, ""))
    return given if given.is_absolute() else None


def _endings() -> Iterator[Names]:
    yield from (folded(tuple(one.split("/"))) for one in IN_PROJECTS)
    for files in CLIENT_FILES.values():
        for place in chain(*files.user.values()):
            base, _, rest = place.partition("/")
            yield folded(tuple(f"{_USUAL.get(base, '')}{rest}".split("/")))


_BY_NAME: Final[dict[str, set[Names]]] = {}
for _ending in _endings():
    _BY_NAME.setdefault(_ending[-1], set()).add(_ending)
