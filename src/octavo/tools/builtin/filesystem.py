"""The toolset `filesystem`: names, arguments and answers of the official file server, over the same pipeline.

Paths are absolute ones of the machine, or relative to what is served. It differs where that server is lenient: an
edit must fit in one place, encodings and line ends are kept, and what a caller may not see is not there. No answer is
larger than the budget says: of what does not fit the first part is given, and said how to go on. Creation and access
times and permissions are not known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from octavo.core.clock import iso
from octavo.core.edit import Edit, Revision, Words
from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.tools import Block, Embedded, Hints, Text, ToolResult
from octavo.text.lines import body, split
from octavo.tools.aliases import FILESYSTEM
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, with_parameter
from octavo.tools.builtin.answer_budget import Budget, Media, Shares, first_lines, shortened
from octavo.tools.builtin.edit import edited
from octavo.tools.builtin.folders import MORE, excluding, fitting, fully, matching, opened_folder, tree
from octavo.tools.builtin.kinds import is_folder
from octavo.tools.builtin.media import as_such, is_picture, only_a_link, smaller
from octavo.tools.builtin.refusals import in_its_words
from octavo.tools.builtin.whole import in_ranges, marked, whole_text
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

_TITLE: Final = Budget(200, 100)  # for a path as it was written, or what went wrong with it
CANONICAL: Final = FILESYSTEM
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")

Asked = Mapping[str, Any]


class ToldText(NamedTuple):
    """What the official server answers, and beside it what that one would not say: that there is more."""

    text: str
    beside: tuple[Block, ...] = ()


Saying = Callable[[ToolContext, Asked], Awaitable[ToldText | str]]


async def _read_text(budget: Budget, ctx: ToolContext, asked: Asked) -> ToldText:
    if "head" in asked and "tail" in asked:
        raise InvalidParams("Cannot specify both head and tail parameters simultaneously: ask for one of them")
    uri = address(asked["path"])
    part = {key: asked[key] for key in ("head", "tail") if key in asked}
    found, entry = await whole_text(ctx, uri, part, budget.beside(uri))
    if part and not found.goes_on:
        return ToldText(_without_last_end(found.text))
    return ToldText(*marked(found, entry, uri, f"head and tail give its ends, {in_ranges(uri)}"))


def _as_text(uri: str) -> str:
    return f"The resource {with_parameter(uri, 'as=text')}"


def _without_last_end(text: str) -> str:
    lines = split(text)
    return "".join((*lines[:-1], body(lines[-1]))) if lines else ""


async def _read_media(roots: Sequence[str], media: Media, ctx: ToolContext, asked: Asked) -> ToolResult:
    uri = address(asked["path"])
    try:
        content = await ctx.read(uri)
    except TooLarge:
        entry, raw = await ctx.stat(uri), None
    except OctavoError as error:
        raise in_its_words(error, "read_media_file", asked, roots) from None
    else:
        entry, raw = content.entry, content.body.encode() if isinstance(content.body, str) else content.body
        if shown := as_such(entry, raw, media):
            return ToolResult(content=shown)
        if len(raw) <= media.max_bytes:
            return ToolResult(content=(Embedded(content, uri),))
    found = await smaller(ctx, uri, entry, media) if is_picture(entry) else only_a_link(entry, uri, _as_text(uri))
    return ToolResult(content=found)


async def _read_several(roots: Sequence[str], budget: Budget, ctx: ToolContext, asked: Asked) -> str:
    told: list[str] = []
    shares = Shares(budget.beside(), len(asked["paths"]))
    for path in asked["paths"]:
        share, title = shares.next(), shortened(path, _TITLE)
        try:
            found, _ = await whole_text(ctx, address(path), {}, share.beside(title))
            text = f"{title}:\n{found.marked('read this file alone for more of it')}\n"
        except OctavoError as error:
            said = in_its_words(error, "read_text_file", {"path": path}, roots)
            text = f"{title}: Error - {shortened(str(said), _TITLE)}"
        shares.spend([Text(f"{text}\n---\n")])
        told.append(text)
    return "\n---\n".join(told)


async def _write(ctx: ToolContext, asked: Asked) -> str:
    await ctx.write(address(asked["path"]), asked["content"])
    return f"Successfully wrote to {asked['path']}"


async def _edit(budget: Budget, ctx: ToolContext, asked: Asked) -> str:
    path = asked["path"]
    wanted = Revision(
        edits=tuple(Edit(one["oldText"], one["newText"]) for one in asked["edits"]),
        label=path,
        most=budget.beside(path).any_text,
        words=Words("`oldText`", otherwise=""),
    )
    done = await edited(ctx, address(path), wanted, dry_run=asked.get("dryRun", False))
    fence = "```"
    while fence in done.report:
        fence += "`"
    return f"{fence}diff\n{done.report}{fence}\n\n"


async def _create_directory(ctx: ToolContext, asked: Asked) -> str:
    await ctx.make_directory(address(asked["path"]))
    return f"Successfully created directory {asked['path']}"


async def _move(ctx: ToolContext, asked: Asked) -> str:
    to = address(asked["destination"])
    try:
        await ctx.move(address(asked["source"]), to)
    except Conflict:
        if not await _is_there(ctx, to):
            raise
        exists = f"Destination already exists: {shortened(asked['destination'], _TITLE)}"
        raise Conflict(f"{exists}: choose another name, or move that away first", uri=to) from None
    return f"Successfully moved {asked['source']} to {asked['destination']}"


async def _is_there(ctx: ToolContext, uri: str) -> bool:
    try:
        await ctx.stat(uri)
    except OctavoError:
        return await is_folder(ctx, uri)
    return True


async def _list(budget: Budget, ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, address(asked["path"]), depth=1)
    lines = [f"{_kind(row.is_folder)} {row.names[-1]}" for row in folder.rows]
    return first_lines(lines + folder.note, budget, MORE)


async def _list_with_sizes(budget: Budget, ctx: ToolContext, asked: Asked) -> str:
    folder = await opened_folder(ctx, address(asked["path"]), depth=1)
    rows = sorted(folder.rows, key=lambda row: -(row.size or 0)) if asked.get("sortBy") == "size" else folder.rows
    lines = [
        f"{_kind(row.is_folder)} {row.names[-1]:<30} {'' if row.is_folder else f'{_size(row.size or 0):>10}'}"
        for row in rows
    ]
    folders = sum(row.is_folder for row in rows)
    total = sum(row.size or 0 for row in rows)
    summary = ["", f"Total: {len(rows) - folders} files, {folders} directories", f"Combined size: {_size(total)}"]
    return "\n".join([first_lines(lines, budget.beside(), MORE), *summary, *folder.note])


async def _tree(budget: Budget, ctx: ToolContext, asked: Asked) -> ToldText:
    text, note = await tree(
        ctx, address(asked["path"]), excluding(asked.get("excludePatterns", ()), anywhere=True), budget
    )
    return ToldText(text, (Text(note),) if note else ())


async def _search(roots: Sequence[str], budget: Budget, ctx: ToolContext, asked: Asked) -> str:
    fits, excluded = matching(asked["pattern"]), excluding(asked.get("excludePatterns", ()), anywhere=False)
    folder = await fitting(ctx, address(asked["path"]), lambda names: fits(names) and not excluded(names))
    found = [fully(row.uri, roots) for row in folder.rows] or ["No matches found"]
    return "\n".join([first_lines(found, budget.beside(*folder.note), MORE), *folder.note])


async def _info(ctx: ToolContext, asked: Asked) -> str:
    uri = address(asked["path"])
    try:
        entry = await ctx.stat(uri)
    except (NotFound, Forbidden):
        if not await is_folder(ctx, uri):
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


def filesystem_tools(*, write: bool, budget: Budget, media: Media, roots: Sequence[str] = ()) -> list[Tool]:
    """`roots` are directories as they may be told; with one, found files are told by their full path."""
    budget = budget.told_twice
    tool = partial(_tool, roots)
    path, patterns = {"path": d.TEXT}, {"excludePatterns": d.TEXTS}
    ends = {"tail": d.said(d.at_least(1), "last lines only"), "head": d.said(d.at_least(1), "first lines only")}
    edits = d.a_list(d.an_object({"oldText": d.TEXT, "newText": d.TEXT}, ["oldText", "newText"]))
    sort = {"sortBy": d.one_of("name", "size")}
    read_media = d.tool(
        "read_media_file", "Read Media File", "An image or audio file as such, anything else as a resource.",
        partial(_read_media, roots, media), d.READS, path, required=["path"],
    )  # fmt: skip
    read = partial(_read_text, budget)
    reading = [
        tool("read_file", "Read File", "As read_text_file, which is its new name.", read, path | ends),
        tool("read_text_file", "Read Text File", "The text of a file, or an end of it.", read, path | ends),
        read_media,
        tool("read_multiple_files", "Read Multiple Files", "The texts of several files.",
              partial(_read_several, roots, budget), {"paths": {**d.TEXTS, "minItems": 1}}),
        tool("list_directory", "List Directory", "Files and folders in a folder.", partial(_list, budget), path),
        tool("list_directory_with_sizes", "List Directory with Sizes", "Files and folders in a folder, with sizes.",
              partial(_list_with_sizes, budget), path | sort),
        tool("directory_tree", "Directory Tree", "All below a folder, as nested JSON.",
              partial(_tree, budget), path | patterns),
        tool("search_files", "Search Files", "Files and folders by a pattern of their paths: *.md, **/*.md.",
              partial(_search, roots, budget), {**path, "pattern": d.TEXT, **patterns}),
        tool("get_file_info", "Get File Info", "Size, time and kind of a file or folder.", _info, path),
        tool("list_allowed_directories", "List Allowed Directories", "What is served.", partial(_allowed, roots), {}),
    ]  # fmt: skip
    if not write:
        return reading
    return [
        *reading,
        tool("write_file", "Write File", "Makes or replaces a file.", _write, {**path, "content": d.TEXT}, d.REPLACES),
        tool("edit_file", "Edit File", "Replaces texts that stand in one place each; answers with the diff.",
              partial(_edit, budget), {**path, "edits": edits, "dryRun": d.FLAG}, d.REPLACES),
        tool("create_directory", "Create Directory", "Makes a folder, and those above it.", _create_directory, path,
              d.ADDS),
        tool("move_file", "Move File", "Moves or renames a file or folder, never over another.", _move,
              {"source": d.TEXT, "destination": d.TEXT}, d.REPLACES),
    ]  # fmt: skip


_OPTIONAL: Final = ("tail", "head", "sortBy", "excludePatterns", "dryRun")


def _tool(
    roots: Sequence[str],
    name: str,
    title: str,
    description: str,
    saying: Saying,
    takes: Mapping[str, d.Schema],
    hints: Hints = d.READS,
) -> Tool:
    async def handler(ctx: ToolContext, asked: Asked) -> ToolResult:
        try:
            said = await saying(ctx, asked)
        except OctavoError as error:
            raise in_its_words(error, name, asked, roots) from None
        told = ToldText(said) if isinstance(said, str) else said
        return ToolResult(content=(Text(told.text), *told.beside), structured={"content": told.text})

    required = [key for key in takes if key not in _OPTIONAL]
    gives = d.an_object({"content": d.TEXT}, ["content"])
    return d.tool(name, title, description, handler, hints, takes, required=required, gives=gives)
