"""Writes the parts of the documentation that a program can print.

    python docs/generate.py            bring the pages up to date
    python docs/generate.py --check    change nothing; exit with 1 and name the pages that are not

A part stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. What is outside is written by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from octavo.app.configuration import KINDS
from octavo.config.schema import schema
from octavo.core import errors
from octavo.core.operations import ACTS, Act
from octavo.core.values import VERBS, Verb
from octavo.pipeline.redact.rules.book import SECRETS
from octavo.pipeline.redact.rules.personal import GROUPS
from octavo.sources._shared.fs.credentials import KEYS, SETTINGS
from octavo.sources._shared.fs.mime import SAFE_EXTENSIONS, SAFE_NAMES
from octavo.sources._shared.fs.names import ALWAYS_HIDDEN
from octavo.transport.mcp.codes import Codes

DOCS = Path(__file__).resolve().parent
WIDTH = 100
_PART = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)
UNSAID = (errors.NotFound, errors.ProtocolError)  # whose data has a shape of its own
_UNITS = {"(ms|s|m|h)$": "time", "?(h|d)$": "age", "i?)?B?$": "size", "|off)$": "rate", "|file:.+)$": "reference"}
_PLACES = {
    "sources": "NAME",
    "agents": "ID",
    "resources": "PATH",
    "templates": "PATH",
    "values": "VARIABLE",
    "programs": "NAME",
}


def pages() -> dict[Path, str]:
    """Every page with generated parts, as it should be."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {path: _PART.sub(_filled, text) for path, text in found.items() if _PART.search(text)}


def stale() -> list[Path]:
    return [path for path, text in pages().items() if path.read_text(encoding="utf-8") != text]


def _filled(part: re.Match[str]) -> str:
    return f"{part[1]}\n{PARTS[part['name']]().strip()}\n\n{part[3]}"


# -- octavo.yaml


def configuration(whole: Mapping[str, Any] | None = None) -> str:
    whole = schema(KINDS) if whole is None else whole
    return "\n\n".join(_section(whole, key, node) for key, node in whole["properties"].items())


def _section(whole: Mapping[str, Any], key: str, node: Mapping[str, Any]) -> str:
    parts = [f"## `{key}`", node["description"]]
    one, of = (node, f"{key}.") if "discriminator" in node else (node.get("additionalProperties", {}), f"{key}.NAME.")
    if kinds := one.get("discriminator", {}).get("mapping"):
        for kind, reference in kinds.items():
            shape = _resolved(whole, {"$ref": reference})
            parts += [f"### `kind: {kind}`", shape["description"], _table(_rows(whole, shape, of))]
        return "\n\n".join(parts)
    rows = list(_below(whole, key, node)) or [_row(key, node, required=False)]
    return "\n\n".join([*parts, _table(rows)])


def _below(whole: Mapping[str, Any], path: str, node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The rows of whatever can stand inside the value at `path`."""
    node = _resolved(whole, node)
    if "properties" in node:
        yield from _rows(whole, node, f"{path}.")
    elif isinstance(node.get("items"), Mapping):
        yield from _below(whole, f"{path}[]", node["items"])
    elif isinstance(node.get("additionalProperties"), Mapping):
        yield from _below(whole, f"{path}.{_PLACES.get(path.rpartition('.')[2], 'NAME')}", node["additionalProperties"])
    for choice in node.get("anyOf", ()):
        yield from _below(whole, path, choice)


def _rows(whole: Mapping[str, Any], shape: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    for key, node in shape["properties"].items():
        yield _row(prefix + key, node, required=key in shape.get("required", ()), resolved=_resolved(whole, node))
        yield from _below(whole, prefix + key, node)


def _row(
    path: str, node: Mapping[str, Any], *, required: bool, resolved: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    default = node.get("default")
    shown = "required" if required else "" if default in (None, "", [], {}) else f"`{_scalar(default)}`"
    return f"`{path}`", _written(resolved or node), shown, node["description"]


def _written(node: Mapping[str, Any]) -> str:
    """How a value is written in the file."""
    if len(node.get("enum", ())) > 6:
        return "[verbs](policy.md#verbs)"
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    if pattern := node.get("pattern"):
        return next((name for end, name in _UNITS.items() if pattern.endswith(end)), "text")
    if "anyOf" in node:
        kinds = [_written(choice) for choice in node["anyOf"] if "$ref" not in choice]
        units = [kind for kind in kinds if kind in ("size", "time", "rate")]
        return units[0] if units else " or ".join(dict.fromkeys(kinds)) if len(kinds) < 3 else kinds[0]
    names = {"boolean": "`true` or `false`", "integer": "number", "number": "number", "string": "text", "array": "list"}
    return names.get(node.get("type", ""), "mapping")


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolved(whole: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = node.get("$ref")
    return node if reference is None else {**whole["$defs"][reference.rpartition("/")[2]], **node}


def _table(rows: Any) -> str:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)])


# -- the command line


def command_line() -> str:
    from octavo.cli.group import octavo

    return "\n\n".join(_help(path, command, parent) for path, command, parent in _commands("octavo", octavo, None))


def _commands(
    path: str, command: click.Command, parent: click.Context | None
) -> Iterator[tuple[str, click.Command, click.Context | None]]:
    yield path, command, parent
    if isinstance(command, click.Group):
        here = _context(path.rpartition(" ")[2], command, parent)
        for name in command.commands:
            yield from _commands(f"{path} {name}", command.commands[name], here)


def _context(name: str, command: click.Command, parent: click.Context | None) -> click.Context:
    return click.Context(
        command, parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH, **command.context_settings
    )


def _help(path: str, command: click.Command, parent: click.Context | None) -> str:
    text = command.get_help(_context(path.rpartition(" ")[2], command, parent))
    return f"## `{path}`\n\n```text\n{text}\n```"


# -- tables


def error_codes() -> str:
    lines = [
        "| class | `data.reason` | handshake era | 2026-07-28 | 2026-07-28, `error_codes: strict` |",
        "|---|---|---|---|---|",
    ]
    for kind in errors.ALL:
        codes = [_code(kind, modern, strict) for modern, strict in ((False, False), (True, False), (True, True))]
        reason = f"`{kind.reason}`" + (" (not on the wire)" if kind in UNSAID else "")
        lines.append(f"| [`{kind.__name__}`](#{kind.__name__.lower()}) | {reason} | {' | '.join(codes)} |")
    return "\n".join(lines)


def _code(kind: type[errors.OctavoError], modern: bool, strict: bool) -> str:
    if issubclass(kind, errors.ProtocolError):
        return "the plugin's"
    made = kind("", retry_after=1.0) if issubclass(kind, errors.RateLimited) else kind("")
    return str(Codes(strict=strict).encode(made, modern=modern).code)


def redaction_rules() -> str:
    secrets = ", ".join(f"`{rule.name}`" for rule in SECRETS)
    personal = [f"| `{group}` | {', '.join(f'`{rule.name}`' for rule in rules)} |" for group, rules in GROUPS.items()]
    return "\n".join([f"Secrets: {secrets}", "", "| personal data | rules |", "|---|---|", *personal])


def hidden_names() -> str:
    listed = {"git, and the state of this server": ALWAYS_HIDDEN, **SETTINGS, **KEYS}
    rows = [f"| {why} | {', '.join(f'`{name}`' for name in names)} |" for why, names in listed.items()]
    return "\n".join(("| why | names |", "|---|---|", *rows))


def safe_extensions() -> str:
    suffixes = ", ".join(f"`.{suffix}`" for suffix in sorted(SAFE_EXTENSIONS))
    return f"{suffixes}\n\nand, by their whole name, {', '.join(f'`{name}`' for name in sorted(SAFE_NAMES))}"


NEEDED_FOR: Mapping[Verb, str] = {
    "list": "entries of a list, templates, completions, notice of changed lists",
    "read": "reading a resource, also by a tool or a prompt; with other verbs, editing, appending, moving, copying",
    "search": "being searched; what is found needs `read` as well",
    "write": "creating and changing, the place where a move or a copy ends, and undoing; what shows or carries what is "
    "there needs `read` as well: an edit, an append, `if_match`",
    "delete": "deleting, and the place where a move begins, which needs `read` as well",
    "watch": "subscribing, each notification, and each change that the feed tells",
    "invoke": "seeing and calling a tool",
    "render": "seeing and getting a prompt",
    "complete": "nothing by itself: completing needs `list`, of a prompt `render`; a deny takes completions away",
    "approve": "nothing by itself: whoever is at a client may answer its agent's questions; a deny takes that away",
    "admin": "narrowing what HTTP serves with `server/config`, by a rule on `server://config`; reading "
    "[`/metrics`](operations.md) with `serve.http.metrics: admin`, by one on `server://metrics`",
}


def verbs() -> str:
    rows = [f"| `{verb}` | {NEEDED_FOR.get(verb, 'nothing in this release')} |" for verb in VERBS]
    return "\n".join(["| verb | needed for |", "|---|---|", *rows])


def operations() -> str:
    rows = [
        f"| `{row.op}`{f', {row.way}' if row.way else ''} | {row.reveals} | {_needed([row])} |" for row in ACTS.values()
    ]
    return "\n".join(["| operation | what it can reveal | verbs |", "|---|---|---|", *rows])


def _needed(rows: Iterable[Act]) -> str:
    rows = [*rows]
    here = [f"`{verb}`" for verb in dict.fromkeys(verb for row in rows for verb in row.needs)]
    there = [f"`{verb}` where it ends" for verb in dict.fromkeys(verb for row in rows for verb in row.there)]
    return ", ".join([*here, *there])


# What each built-in tool asks for, as its caller; `-` stands for a tool that asks for nothing.
ASKED_BY: Mapping[str, Mapping[str, str]] = {
    "files": {
        "list": "list, folders",
        "read": "read, stat, list, folders",
        "info": "stat, read, list, folders",
        "search": "search, read, list, folders",
        "changes": "changes",
        "write": "write, append, write if_match",
        "edit": "edit, list, folders",
        "move": "move",
        "copy": "copy",
        "delete": "delete, delete if_match",
        "create_directory": "make",
        "undo": "undo, undo move",
    },
    "filesystem": {
        "read_file": "read, stat, list, folders",
        "read_text_file": "read, stat, list, folders",
        "read_media_file": "read, stat, list, folders",
        "read_multiple_files": "read, stat, list, folders",
        "list_directory": "list, folders",
        "list_directory_with_sizes": "list, folders",
        "directory_tree": "list, folders",
        "search_files": "list, folders",
        "get_file_info": "stat, list, folders",
        "list_allowed_directories": "-",
        "write_file": "write",
        "edit_file": "edit, list, folders",
        "create_directory": "make",
        "move_file": "move, stat, list, folders",
    },
    "seed": {
        "file-reader": "read, stat, list, folders",
        "readFile": "read, stat, list, folders",
        "writeFile": "write",
        "createDirectory": "make",
        "deleteFile": "delete",
    },
    "data": {"validate": "read", "convert": "read, write", "profile": "read", "query": "read"},
    "people": {"ask_user": "-", "feedback": "-", "notify": "-"},
    "process": {
        "run_command": "folders, read",
        "start_process": "folders, read",
        "read_output": "-",
        "write_input": "-",
        "stop_process": "-",
        "list_processes": "-",
    },
    "prompts": {"get_prompt": "render", "conversation": "-"},
    "web": {"http_request": "-", "websocket": "-"},
}


def asked_for(toolset: str, tool: str) -> list[Act]:
    named = ASKED_BY[toolset][tool]
    return [] if named == "-" else [ACTS[name] for name in named.split(", ")]


def tool_operations() -> str:
    lines = ["| set | tool | asks for | which needs |", "|---|---|---|---|"]
    for toolset, tools in ASKED_BY.items():
        for tool in tools:
            rows = asked_for(toolset, tool)
            words = ", ".join(f"{row.op}{f' ({row.way})' if row.way else ''}" for row in rows) or "nothing"
            lines.append(f"| `{toolset}` | `{tool}` | {words} | {_each(rows)} |")
    return "\n".join(lines)


def _each(rows: Iterable[Act]) -> str:
    """Each set of verbs once: which of them is asked for depends on how the tool is called."""
    return "; ".join(dict.fromkeys(_needed([row]) for row in rows)) or "nothing"


# -- octavo init


def init() -> str:
    return _begun("C.UTF-8")


def init_in_korean() -> str:
    return _begun("ko_KR.UTF-8")


@cache
def _begun(locale: str) -> str:
    """What it prints and writes for the handbook of the example, as in the folder of whoever reads the page."""
    with tempfile.TemporaryDirectory() as base:
        shutil.copytree(DOCS.parent / "examples" / "maison-haru" / "handbook", Path(base) / "handbook")
        done = subprocess.run(
            [sys.executable, "-m", "octavo", "init", "handbook", "--yes"],
            cwd=base,
            env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=True,
        )
        text = (Path(base) / "handbook" / "octavo.yaml").read_text(encoding="utf-8")
    return f"```console\n$ octavo init handbook\n{done.stdout}```\n\n```yaml\n{text}```"


PARTS: Mapping[str, Callable[[], str]] = {
    "configuration": configuration,
    "cli": command_line,
    "error-codes": error_codes,
    "redaction-rules": redaction_rules,
    "hidden-names": hidden_names,
    "safe-extensions": safe_extensions,
    "verbs": verbs,
    "operations": operations,
    "tool-operations": tool_operations,
    "init": init,
    "init-in-korean": init_in_korean,
}


def main(arguments: list[str]) -> int:
    old = stale()
    for path in old:
        sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
    if "--check" in arguments:
        return 1 if old else 0
    for path, text in pages().items():
        if path in old:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
