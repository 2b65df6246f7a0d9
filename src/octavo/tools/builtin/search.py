"""The tool `search`: files by name, lines by what stands in them, or documents of all sources by rank.

For the first two a source finds candidates in the text as it is; what counts are hits in the text that the caller may
see, so that a secret cannot be found by guessing it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, RateLimited, TooLarge
from octavo.core.query import ContentQuery, NameQuery
from octavo.core.tools import ToolResult
from octavo.core.values import Entry
from octavo.text.hits import Hit, matches
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.addresses import address, path_of
from octavo.tools.builtin.answer_budget import Budget, Room
from octavo.tools.builtin.kinds import refuse_missing
from octavo.tools.builtin.large import Binary, Large
from octavo.tools.builtin.places import PagedWalk, WalkStep
from octavo.tools.builtin.ranked_search import KIND as RANKED
from octavo.tools.builtin.ranked_search import is_ranked, ranked
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

READS: Final = 500  # candidates that one call reads
_NAMES_PAGE: Final = 100
_READ_PAGE: Final = 20
_OF_LINES: Final = ("regex", "case", "word", "context", "include", "exclude")


class SearchKinds(NamedTuple):
    """Which kinds of search there are, and which is meant where none is named."""

    ranked: bool = False
    lines: frozenset[str] = frozenset(("file",))  # schemes whose texts have lines to be found
    usual: str = "content"  # over everything

    def meant(self, asked: Mapping[str, Any]) -> str:
        if "kind" in asked or not self.ranked:
            return str(asked.get("kind", "content"))
        if _says(asked, *_OF_LINES):
            return "content"
        if asked.get("where"):
            return RANKED
        if not asked.get("target"):
            return self.usual
        return "content" if address(asked["target"]).partition("://")[0].lower() in self.lines else RANKED

    def chooses(self, asked: Mapping[str, Any]) -> bool:
        """Whether it was left to the tool what is searched, and there is more than lines."""
        return self.ranked and not _says(asked, "kind", *_OF_LINES)


def _says(asked: Mapping[str, Any], *options: str) -> Sequence[str]:
    """Those that ask for something: clients that fill every argument send false, 0 and empty ones for "not given"."""
    return [option for option in options if asked.get(option)]


LINES: Final = SearchKinds()


class FoundLines:
    """What was found, by file, as far as there is room for it. `limit` counts hits, or files where names are asked."""

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit, self._room = limit, Room(budget)
        self.files: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.count = 0

    @property
    def left(self) -> int:
        return self._limit - self.count

    def takes(self, told: dict[str, Any], lines: Sequence[str], count: int) -> bool:
        fits = self.count < self._limit and self._room.take(json.dumps(told, ensure_ascii=False), *lines)
        if fits:
            self.files.append(told)
            self.lines += lines
            self.count += count
        return fits

    def result(self, cursor: str | None) -> ToolResult:
        structured: dict[str, Any] = {"files": self.files}
        lines = self.lines or ["Nothing was found" + (" so far" if cursor is not None else "")]
        if cursor is not None:
            structured["cursor"] = cursor
            lines = [*lines, f"[more: call again with cursor: {cursor}]"]
        return d.result("\n".join(lines), structured)


async def _search(budget: Budget, kinds: SearchKinds, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    kind = kinds.meant(asked)
    of_others = _says(asked, *(_OF_LINES if kind == RANKED else ("where",)))
    if of_others:
        other = "content" if kind == RANKED else RANKED
        raise InvalidParams(f"{of_others[0]} is for kind: {other}; leave it out here, or say that kind")
    if kind == RANKED or (kinds.chooses(asked) and is_ranked(ctx, asked.get("cursor"))):
        return await ranked(budget, ctx, asked)
    uri, text = address(asked.get("target", "")), asked["query"]
    inner: str | None = ctx.opened(asked["cursor"], (str, type(None)))[0] if "cursor" in asked else None
    answer = FoundLines(asked.get("limit", 100), budget)
    try:
        if kind == "names":
            names = NameQuery(text)
            walk = PagedWalk(lambda at, n: ctx.search(uri, names, cursor=at, limit=n), inner, page=_NAMES_PAGE)
            result = await _in_names(ctx, walk, answer)
        else:
            query = ContentQuery(
                text=text,
                regex=asked.get("regex", False),
                case=asked.get("case", "smart"),
                word=asked.get("word", False),
                include=tuple(asked.get("include", ())),
                exclude=tuple(asked.get("exclude", ())),
            )
            walk = PagedWalk(lambda at, n: ctx.search(uri, query, cursor=at, limit=n), inner, page=_READ_PAGE)
            result = await _in_contents(ctx, walk, query, asked.get("context", 0), answer)
    except NotFound:
        await refuse_missing(ctx, uri)  # what is hidden goes the way of what is not there
        raise
    if not answer.files:
        await refuse_missing(ctx, uri)
        if kinds.chooses(asked) and "cursor" not in asked:
            return await _best(budget, ctx, asked) or result
    return result


async def _best(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult | None:
    """What the ranked search says where no line does, also of what was not searched; None where it has nothing, or is
    not for this caller or query."""
    try:
        best = await ranked(budget, ctx, asked, instead=True)
    except (Forbidden, InvalidParams):
        return None
    told = best.structured or {}
    return best if any(told.get(one) for one in ("results", "incomplete", "partial", "unread")) else None


async def _in_names(ctx: ToolContext, walk: PagedWalk, answer: FoundLines) -> ToolResult:
    async for step in walk:
        if not answer.takes(d.facts(step.entry), [path_of(ctx, step.entry)], 1):
            return answer.result(ctx.sealed(await walk.before(step)))
    return answer.result(None)


async def _in_contents(
    ctx: ToolContext, walk: PagedWalk, query: ContentQuery, context: int, answer: FoundLines
) -> ToolResult:
    reads = 0
    async for step in walk:
        if answer.left <= 0 or reads == READS:
            return answer.result(ctx.sealed(await walk.before(step)))
        reads += 1
        if not await _takes(ctx, step, query, context, answer):
            return answer.result(ctx.sealed(await walk.before(step)))
        if step.number == len(step.page.items) - 1 and step.page.cursor is not None:
            await ctx.progress(reads, message=f"{answer.count} hits in {len(answer.files)} files")
    return answer.result(None)


async def _takes(ctx: ToolContext, step: WalkStep, query: ContentQuery, context: int, answer: FoundLines) -> bool:
    """False when the hits of this file are left to the next answer."""
    hits, more = await _hits(ctx, step.entry, query, context, answer.left)
    while hits:
        told: dict[str, Any] = {"uri": str(step.entry.ref), "hits": [_told(hit) for hit in hits]}
        if labels := d.labels(step.entry):
            told["labels"] = labels
        lines = [path_of(ctx, step.entry), *(line for hit in hits for line in _lines(hit))]
        if more:
            told["more"] = True
            lines.append("  [more hits in this file]")
        if answer.takes(told, lines, len(hits)):
            return True
        if answer.files:
            return False
        if len(hits) > 1:
            hits, more = hits[: len(hits) // 2], True  # one file alone is too much: the first of its hits
        elif hits[0].before or hits[0].after:
            hits = [hits[0]._replace(before=(), after=())]
        else:
            return True  # its address alone is too long to be told
    return True


async def _hits(
    ctx: ToolContext, entry: Entry, query: ContentQuery, context: int, limit: int
) -> tuple[list[Hit], bool]:
    uri = str(entry.ref)
    try:
        try:
            body = (await ctx.read(uri)).body
            found = matches(body, query, context, limit=limit + 1) if isinstance(body, str) else []
        except TooLarge as refusal:
            found = await _hits_in_parts(Large.of(ctx, uri, refusal), query, context, limit + 1)
    except RateLimited:
        raise
    except (OctavoError, Binary):  # gone, or no longer to be read: then it has no hits either
        return [], False
    return found[:limit], len(found) > limit


async def _hits_in_parts(large: Large, query: ContentQuery, context: int, limit: int) -> list[Hit]:
    found: list[Hit] = []
    before = 0
    async for lines in large.lines():
        part = matches("".join(lines), query, context, limit=limit - len(found))
        found += [hit._replace(line=hit.line + before) for hit in part]
        before += len(lines)
        if len(found) >= limit:
            break
    return found


def _told(hit: Hit) -> dict[str, Any]:
    told: dict[str, Any] = {"line": hit.line, "column": hit.column, "text": hit.text}
    around = {"before": list(hit.before), "after": list(hit.after)}
    return told | {key: lines for key, lines in around.items() if lines}


def _lines(hit: Hit) -> list[str]:
    """As grep writes them: `:` after the number of a hit, `-` after that of a neighbour."""
    first = hit.line - len(hit.before)
    before = [f"  {number}- {line}" for number, line in enumerate(hit.before, first)]
    after = [f"  {number}- {line}" for number, line in enumerate(hit.after, hit.line + 1)]
    return [*before, f"  {hit.line}: {hit.text}", *after]


def search_tool(budget: Budget, kinds: SearchKinds) -> Tool:
    lines = (
        "Lines that contain query (text, or an RE2 regex), or files by name (kind: names; part of a path, or a glob), "
        "below target. Leaves out what .gitignore names."
    )
    best = (
        " kind: ranked: the best documents of all sources for a question, some words, or a phrase in quotes; "
        "given too where no line has query and no kind is named."
    )
    usual = f" Default: {kinds.usual}." if kinds.ranked else ""
    filters = {"where": d.said({"type": "object"}, "ranked: metadata, as {status: active}")}
    return d.tool(
        "search",
        "Search",
        lines + best + usual if kinds.ranked else lines,
        partial(_search, budget, kinds),
        d.READS,
        {
            "query": d.TEXT,
            "target": d.TEXT,
            "kind": d.one_of("content", "names", *([RANKED] if kinds.ranked else [])),
            **(filters if kinds.ranked else {}),
            "regex": d.FLAG,
            "case": d.said(d.FLAG, "default: if query has capitals"),
            "word": d.FLAG,
            "context": d.at_least(0, 20),
            "include": d.said(d.TEXTS, "globs"),
            "exclude": d.TEXTS,
            "limit": d.at_least(1, 1000),
            "cursor": d.FILLED,
        },
        required=["query"],
        gives=d.an_object(
            {
                "files": d.a_list(),
                **({"results": d.a_list(), "instead": d.TEXT} if kinds.ranked else {}),
                "cursor": d.TEXT,
            }
        ),
    )
