"""Configurations of other shapes, carried over to octavo.yaml. What cannot be carried is listed, never dropped.

Known are: `allowedDirectories`, `allowedExtensions` and `promptDirectory`, alone or as the params of `server/config`;
`caching`, `invalidation` and `subscriptions`; and the `mcpServers` of a client, of which file servers become roots.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import quote

from msgspec import Struct, field
from ruamel.yaml import YAML

from octavo.config.problems import ConfigError, Problem
from octavo.config.words import check_extension, check_pattern
from octavo.config.yaml import read_yaml

SOURCE = "files"
READING = ("list", "read", "search", "watch", "complete")
OFFICIAL = "server-filesystem"  # ends the name of the official file server, as a package and as a program
KEY_PATTERN = "mcp:resource:{namespace}:{path}"
_ABSOLUTE = ("file:///", "file://localhost/")
BUILT_IN = "is built in, so there is nothing to configure"


class Adapted(Struct):
    """What becomes of a foreign configuration. `left` says what was not carried, and why."""

    roots: list[str] = field(default_factory=list[str])
    extensions: list[str] = field(default_factory=list[str])
    prompts: list[str] = field(default_factory=list[str])
    patterns: list[str] = field(default_factory=list[str])
    whole: list[str] = field(default_factory=list[str])  # roots of which everything may be read
    writes: list[bool] = field(default_factory=list[bool])  # of each file server
    relative: bool = False  # its clients write addresses relative to the folders
    ttl: float | None = None
    kind: str = ""  # of sources, that serves folders as they lie there
    left: list[str] = field(default_factory=list[str])

    def leave(self, key: str, why: str) -> None:
        """On one line, whatever the key is: it stands in a comment."""
        self.left.append("".join(c if c.isprintable() else " " for c in f"{key}: {why}"))

    @property
    def config(self) -> dict[str, Any]:
        made: dict[str, Any] = {"version": 1}
        if self.roots:
            source: dict[str, Any] = {"kind": self.kind, "roots": self.roots}
            if any(pattern.startswith(_ABSOLUTE) for pattern in self.patterns):
                # The client sifts lists by these patterns itself, so it must be given the spelling that they have.
                source["roots"] = [_by_its_path(root) for root in self.roots]
                source["uris"] = "absolute"
            elif self.relative:
                source["uris"] = "relative"
            if len({PurePosixPath(root).name for root in self.roots}) < len(self.roots):
                source["roots"] = [_by_its_path(root) for root in self.roots]
            if self.extensions:
                source["extensions"] = self.extensions
            if self.writes and all(self.writes):
                source["write"] = True
            if self.ttl is not None:
                source["cache"] = {"ttl": self.ttl}
            made["sources"] = {SOURCE: source}
        if any(self.writes):
            made["toolsets"] = ["filesystem"]
        if self.patterns:
            what = [*self.patterns, *(f"file://{quote(root)}/*" for root in self.whole)]
            made["policy"] = [{"who": "*", "may": list(READING), "what": what}]
            if self.prompts:
                made["policy"].append({"who": "*", "may": ["render", "complete"], "what": "prompt://*"})
        if self.prompts:
            made["prompts"] = {"dirs": self.prompts}
        return made

    def __str__(self) -> str:
        text = io.StringIO()
        yaml: Any = YAML()
        yaml.width = 4096
        yaml.dump(self.config, text)
        notes = [f"#   {one}" for one in self.left]
        return "\n".join([*(["# Not carried over:", *notes] if notes else []), text.getvalue()])


def adapt(text: str, file: Path, kind: str) -> Adapted:
    """`kind` is that of the source which folders become. Raises ConfigError for text that cannot be read, or that has
    none of the known shapes."""
    data = _read(text, file)
    if data.get("method") == "server/config" and isinstance(data.get("params"), dict):
        data = data["params"]
    made = Adapted(kind=kind)
    known = [key for key in data if key in _SHAPES]
    if not known:
        raise ConfigError([Problem(str(file), "", "has none of the known shapes", f"known: {', '.join(_SHAPES)}")])
    for key in sorted(known, key=[*_SHAPES].index):
        _SHAPES[key](made, data[key])
    for key in data:
        if key not in _SHAPES:
            made.leave(key, "is not known here")
    _settle(made)
    return made


def _read(text: str, file: Path) -> Mapping[str, Any]:
    """JSON or YAML, whatever the file is called."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        document = read_yaml(text)
        if document.faults:
            raise ConfigError(
                [Problem(str(file), "", fault.message, "", fault.place.line) for fault in document.faults]
            ) from None
        data = document.data
    if not isinstance(data, dict):
        raise ConfigError([Problem(str(file), "", "must be a mapping of keys and values")])
    return cast("dict[str, Any]", data)


def _directories(made: Adapted, value: Any) -> None:
    for path in _texts(made, "allowedDirectories", value):
        _add_root(made, "allowedDirectories", path)
    made.whole += made.roots
    made.relative = True


def _extensions(made: Adapted, value: Any) -> None:
    for extension in _texts(made, "allowedExtensions", value):
        try:
            made.extensions.append(check_extension(extension))
        except ValueError as error:
            made.leave(f"allowedExtensions: {extension!r}", str(error))


def _prompts(made: Adapted, value: Any) -> None:
    for path in _texts(made, "promptDirectory", [value]):
        if not _is_open(path):
            made.prompts.append(path)
        else:
            made.leave(f"promptDirectory: {path}", "has a variable of the client; name the folder in prompts.dirs")


def _servers(made: Adapted, value: Any) -> None:
    for name, server in _items(made, "mcpServers", value):
        key = f"mcpServers.{name}"
        if not isinstance(server, dict):
            made.leave(key, "is no mapping")
            continue
        options = cast("dict[str, Any]", server)
        words = [str(options.get("command", "")), *_texts(made, f"{key}.args", options.get("args", []))]
        at = next((n for n, word in enumerate(words) if _is_file_server(word)), None)
        if at is None or "docker" in PurePosixPath(words[0]).name:
            made.leave(key, "is another MCP server, or in a container; keep it in the client's configuration")
            continue
        _file_server(made, key, words[at + 1 :], options.get("resources"))
        if variables := options.get("env"):
            told = ", ".join(map(str, variables)) if isinstance(variables, dict) else "of another shape"
            made.leave(f"{key}.env", f"not needed by file sources ({told})")
        for other in options.keys() - {"command", "args", "resources", "env"}:
            made.leave(f"{key}.{other}", "is not known here")


def _file_server(made: Adapted, key: str, arguments: list[str], resources: Any) -> None:
    flagged = [after for flag, after in pairwise(arguments) if flag == "--root"]
    folders = flagged or [word for word in arguments if not word.startswith("-")]
    for word in arguments:
        if word not in (*folders, "--root"):
            made.leave(f"{key}.args: {word.partition('=')[0]}", "is not known here")
    before = len(made.roots)
    for folder in folders:
        _add_root(made, f"{key}.args", folder)
    made.extensions = made.extensions or ["*"]  # it knows no others
    made.writes.append(not flagged)  # the official server takes folders without a flag, and writes
    patterns = [] if resources in (None, "*") else _texts(made, f"{key}.resources", resources)
    for pattern in patterns:
        try:
            made.patterns.append(check_pattern(pattern))
        except ValueError as error:
            made.leave(f"{key}.resources: {pattern}", str(error))
    if not patterns:
        made.whole += made.roots[before:]


def _caching(made: Adapted, value: Any) -> None:
    for key, told in _items(made, "caching", value):
        if key == "enabled":
            made.ttl = made.ttl if told else 0
        elif key == "policies":
            for name, policy in _items(made, "caching.policies", told):
                _cache_policy(made, name, policy)
        elif key == "cache_key_pattern" and told == KEY_PATTERN:
            made.leave("caching.cache_key_pattern", BUILT_IN)
        elif key == "backend":
            made.leave("caching.backend", "the cache is in the memory of the process")
        else:
            made.leave(f"caching.{key}", "is not known here")


def _cache_policy(made: Adapted, name: str, policy: Any) -> None:
    key = f"caching.policies.{name}"
    if name.removesuffix("_resources") not in ("file", "files", "filesystem") or not isinstance(policy, dict):
        made.leave(key, "there is no such source here; its own cache: {ttl: …} would say it")
        return
    for option, told in cast("dict[str, Any]", policy).items():
        if option == "ttl" and isinstance(told, int | float) and told >= 0:
            made.ttl = told if made.ttl is None else made.ttl
        else:
            made.leave(f"{key}.{option}: {told}", "changes of files are told by the system itself")


def _invalidation(made: Adapted, value: Any) -> None:
    for name, _ in _items(made, "invalidation", value):
        made.leave(f"invalidation.{name}", "copies are dropped when a change is seen, or at the end of their ttl")


def _subscriptions(made: Adapted, value: Any) -> None:
    for key, told in _items(made, "subscriptions", value):
        off = key == "supported" and not told
        made.leave(f"subscriptions.{key}", "cannot be switched off; a rule can refuse watch" if off else BUILT_IN)


# In this order, because a cache belongs to the source that the others make.
_SHAPES: Mapping[str, Callable[[Adapted, Any], None]] = {
    "allowedDirectories": _directories,
    "allowedExtensions": _extensions,
    "promptDirectory": _prompts,
    "mcpServers": _servers,
    "caching": _caching,
    "invalidation": _invalidation,
    "subscriptions": _subscriptions,
}


def _settle(made: Adapted) -> None:
    """What the parts mean together."""
    for root in list(made.roots):
        around = next((one for one in made.roots if one != root and PurePosixPath(root).is_relative_to(one)), None)
        if around is not None:
            made.roots.remove(root)
            made.leave(f"the folder {root}", f"stands in {around}, which serves it already")
    if any(made.writes) and (made.patterns or not all(made.writes)):
        made.writes = [False]
        made.leave(
            "writing",
            "off for all: not every one of these servers writes; set write: true and a rule for it if you want it",
        )
    for root in list(made.whole) if made.patterns else ():
        if not root.startswith("/"):
            made.whole.remove(root)
            made.leave(f"the folder {root}", "add a rule for it: only absolute folders can be named in one")
    if made.extensions and not made.roots:
        made.leave("allowedExtensions", "there is no folder to which they belong")
    if made.ttl is not None and not made.roots:
        made.leave("caching", "there is no source to which it belongs")


def _add_root(made: Adapted, key: str, path: str) -> None:
    if _is_open(path):
        made.leave(f"{key}: {path}", "has a variable of the client; name the folder under roots:")
    elif path not in made.roots:
        made.roots.append(path)


def _by_its_path(root: str) -> str | dict[str, str]:
    """A root whose addresses hold the path as the client writes it, whatever links are in it."""
    names = [name for name in PurePosixPath(root).parts if name not in ("/", ".", "..")]
    return root if set("%?#") & set(root) or not names else {"path": root, "as": f"/{'/'.join(names)}"}


def _is_open(path: str) -> bool:
    return "${" in path


def _is_file_server(word: str) -> bool:
    return PurePosixPath(word).name.partition("@")[0].endswith(OFFICIAL)


def _texts(made: Adapted, key: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        made.leave(key, "is no list of texts")
        return []
    texts = [one for one in value if isinstance(one, str) and one and "\x00" not in one]
    if len(texts) < len(value):
        made.leave(key, "has an entry that is no text")
    return texts


def _items(made: Adapted, key: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(str(name), told) for name, told in value.items()]
    made.leave(key, "is no mapping")
    return []
