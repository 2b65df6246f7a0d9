"""The toolset `filesystem`: names, arguments and answers of the official file server, over the same pipeline.

Paths are absolute ones of the machine, or relative to what is served. It differs where that server is lenient: an
edit must fit in one place, files over the read limit are read by head or tail, encodings and line ends are kept, and
what a caller may not see is not there. Creation and access times and permissions are not known.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from octavo.core.clock import iso
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.surface import Audio, Embedded, Hints, Image, ToolResult
from octavo.text.edits import Edit
from octavo.text.lines import body, head, split, tail
from octavo.tools.builtin import defining as d
from octavo.tools.builtin.addresses import local
from octavo.tools.builtin.editing import Change
from octavo.tools.builtin.folders import Folder, Tree, excluding, fully, matching, opened_folder
from octavo.tools.builtin.large import Binary, large_piece
from octavo.tools.builtin.room import Budget
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

CANONICAL: Final[Mapping[str, str]] = {
    "read_file": "read",
    "read_text_file": "read",
    "read_media_file": "read",
    "read_multiple_files": "read",
    "write_file": "write",
    "edit_file": "edit",
    "create_directory": "create_directory",
    "list_directory": "list",
    "list_directory_with_sizes": "list",
    "directory_tree": "list",
    "move_file": "move",
    "search_files": "search",
    "get_file_info": "info",
}
_BUDGET: Final = Budget(64_000, 20_000)  # of a part of a file that is too large to be given whole
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")

Asked = Mapping[str, Any]
Saying = Callable[[ToolContext, Asked], Awaitable[str]]


async def _text_of(ctx: ToolContext, path: str) -> str:
    content = await ctx.read(local(path))
    if isinstance(content.body, bytes):
        raise InvalidParams(f"{path} is no text, but {content.entry.mime_type}: use read_media_file")
    return content.body


async def _read_text(ctx: ToolContext, asked: Asked) -> str:
    if "head" in asked and "tail" in asked:
        raise InvalidParams("Ask for head or for tail, not for both")
    path = asked["path"]
    try:
        text = await _text_of(ctx, path)
    except TooLarge as refusal:
        if "head" not in asked and "tail" not in asked:
            raise
        try:
            return (await large_piece(ctx, local(path), asked, refusal, _BUDGET)).marked()
        except Binary:
            raise InvalidParams(f"{path} is no text") from None
    if "head" in asked:
        return _without_last_end(head(text, asked["head"]).text)
    return _without_last_end(tail(text, asked["tail"]).text) if "tail" in asked else text


def _without_last_end(text: str) -> str:
    lines = split(text)
    return "".join((*lines[:-1], body(lines[-1]))) if lines else ""


async def _read_media(ctx: ToolContext, asked: Asked) -> ToolResult:
    uri = local(asked["path"])
    content = await ctx.read(uri)
    raw, mime = content.body if isinstance(content.body, bytes) else content.body.encode(), content.entry.mime_type
    if mime.startswith("image/"):
        return ToolResult(content=(Image(raw, mime),))
    return ToolResult(content=(Audio(raw, mime) if mime.startswith("audio/") else Embedded(content, uri),))


async def _read_several(ctx: ToolContext, asked: Asked) -> str:
    told: list[str] = []
    for path in asked["paths"]:
        try:
            told.append(f"{path}:\n{await _text_of(ctx, path)}\n")
        except OctavoError as error:
            told.append(f"{path}: Error - {error}")
    return "\n---\n".join(told)


async def _write(ctx: ToolContext, asked: Asked) -> str:
    await ctx.write(local(asked["path"]), asked["content"])
    return f"Successfully wrote to {asked['path']}"


async def _edit(ctx: ToolContext, asked: Asked) -> str:
    path = asked["path"]
    change = Change([Edit(one["oldText"], one["newText"]) for one in asked["edits"]], path, _BUDGET.max_bytes // 2)
    done = await ctx.edit(local(path), change, dry_run=asked.get("dryRun", False))
    fence = "```"
    while fence in done.report:
        fence += "`"
    return f"{fence}diff\n{done.report}{fence}\n\n"


async def _create_directory(ctx: ToolContext, asked: Asked) -> str:
    await ctx.make_directory(local(asked["path"]))
    return f"Successfully created directory {asked['path']}"


async def _move(ctx: ToolContext, asked: Asked) -> str:
    await ctx.move(local(asked["source"]), local(asked["destination"]))
    return f"Successfully moved {asked['source']} to {asked['destination']}"


async def _list(ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, local(asked["path"]), depth=1)
    return "\n".join([f"{_kind(row.is_folder)} {row.names[-1]}" for row in folder.rows] + folder.note)


async def _list_with_sizes(ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, local(asked["path"]), depth=1)
    rows = sorted(folder.rows, key=lambda row: -(row.size or 0)) if asked.get("sortBy") == "size" else folder.rows
    lines = [
        f"{_kind(row.is_folder)} {row.names[-1]:<30} {'' if row.is_folder else f'{_size(row.size or 0):>10}'}"
        for row in rows
    ]
    folders = sum(row.is_folder for row in rows)
    total = sum(row.size or 0 for row in rows)
    summary = ["", f"Total: {len(rows) - folders} files, {folders} directories", f"Combined size: {_size(total)}"]
    return "\n".join(lines + summary + folder.note)


async def _tree(ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, local(asked["path"]), depth=0)
    tree = Tree(excluding(asked.get("excludePatterns", ()), anywhere=True))
    return json.dumps(tree.of(folder.rows), ensure_ascii=False, indent=2) + "".join(f"\n{one}" for one in folder.note)


async def _search(roots: Sequence[str], ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, local(asked["path"]), depth=0)
    fits, excluded = matching(asked["pattern"]), excluding(asked.get("excludePatterns", ()), anywhere=False)
    found = [fully(row.uri, roots) for row in folder.rows if fits(row.names) and not excluded(row.names)]
    return "\n".join((found or ["No matches found"]) + folder.note)


async def _info(ctx: ToolContext, asked: Asked) -> str:
    uri = local(asked["path"])
    try:
        entry = await ctx.stat(uri)
    except (NotFound, Forbidden):
        folder: Folder = await opened_folder(ctx, uri, depth=1)
        if not folder.rows:
            raise
        return "size: 0\nisDirectory: true\nisFile: false"
    modified = "" if entry.modified is None else f"modified: {iso(entry.modified)}\n"
    return f"size: {entry.size or 0}\n{modified}isDirectory: false\nisFile: true"


async def _allowed(roots: Sequence[str], ctx: ToolContext, asked: Asked) -> str:
    return "\n".join(["Allowed directories:", *(roots or ["."])])


def _kind(is_folder: bool) -> str:
    return "[DIR]" if is_folder else "[FILE]"


def _size(size: int) -> str:
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.2f} {_UNITS[unit]}" if unit else f"{size} B"


def filesystem_tools(*, write: bool, roots: Sequence[str] = ()) -> list[Tool]:
    """`roots` are directories as they may be told; with one, found files are told by their full path."""
    path, patterns = {"path": d.TEXT}, {"excludePatterns": d.TEXTS}
    ends = {"tail": d.said(d.at_least(1), "last lines only"), "head": d.said(d.at_least(1), "first lines only")}
    edits = d.a_list(d.an_object({"oldText": d.TEXT, "newText": d.TEXT}, ["oldText", "newText"]))
    sort = {"sortBy": d.one_of("name", "size")}
    media = d.tool(
        "read_media_file", "Read Media File", "An image or audio file as such, anything else as a resource.",
        _read_media, d.READS, path, required=["path"],
    )  # fmt: skip
    reading = [
        _tool("read_file", "Read File", "As read_text_file, which is its new name.", _read_text, path | ends),
        _tool("read_text_file", "Read Text File", "The text of a file, or an end of it.", _read_text, path | ends),
        media,
        _tool("read_multiple_files", "Read Multiple Files", "The texts of several files.", _read_several,
              {"paths": {**d.TEXTS, "minItems": 1}}),
        _tool("list_directory", "List Directory", "Files and folders in a folder.", _list, path),
        _tool("list_directory_with_sizes", "List Directory with Sizes", "Files and folders in a folder, with sizes.",
              _list_with_sizes, path | sort),
        _tool("directory_tree", "Directory Tree", "All below a folder, as nested JSON.", _tree, path | patterns),
        _tool("search_files", "Search Files", "Files and folders by a pattern of their paths: *.md, **/*.md.",
              partial(_search, roots), {**path, "pattern": d.TEXT, **patterns}),
        _tool("get_file_info", "Get File Info", "Size, time and kind of a file or folder.", _info, path),
        _tool("list_allowed_directories", "List Allowed Directories", "What is served.", partial(_allowed, roots), {}),
    ]  # fmt: skip
    if not write:
        return reading
    return [
        *reading,
        _tool("write_file", "Write File", "Makes or replaces a file.", _write, {**path, "content": d.TEXT}, d.REPLACES),
        _tool("edit_file", "Edit File", "Replaces texts that stand in one place each; answers with the diff.", _edit,
              {**path, "edits": edits, "dryRun": d.FLAG}, d.REPLACES),
        _tool("create_directory", "Create Directory", "Makes a folder, and those above it.", _create_directory, path,
              d.ADDS),
        _tool("move_file", "Move File", "Moves or renames a file or folder, never over another.", _move,
              {"source": d.TEXT, "destination": d.TEXT}, d.REPLACES),
    ]  # fmt: skip


_OPTIONAL: Final = ("tail", "head", "sortBy", "excludePatterns", "dryRun")


def _tool(
    name: str, title: str, description: str, saying: Saying, takes: Mapping[str, d.Schema], hints: Hints = d.READS
) -> Tool:
    async def handler(ctx: ToolContext, asked: Asked) -> ToolResult:
        text = await saying(ctx, asked)
        return d.result(text, {"content": text})

    required = [key for key in takes if key not in _OPTIONAL]
    gives = d.an_object({"content": d.TEXT}, ["content"])
    return d.tool(name, title, description, handler, hints, takes, required=required, gives=gives)
