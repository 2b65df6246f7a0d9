"""The tool `edit`: change a part of a text, and nothing else of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.core.model import Edited
from octavo.core.signs import as_marks
from octavo.core.surface import ToolResult
from octavo.text import edits, patch
from octavo.text.diff import unified
from octavo.tools.builtin import defining as d
from octavo.tools.builtin.addresses import address, repeated
from octavo.tools.builtin.kinds import instead
from octavo.tools.builtin.room import Budget
from octavo.tools.builtin.writing import IF_MATCH, STATED
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

_MARK: Final = re.compile(r"\[redacted:[a-z0-9_-]{1,64}:[0-9a-f]{8}\]")


class Change:
    """What the edits make of a text; afterwards, where they applied. Called with the text as it is on disk but for what
    is hidden from the caller, for which signs stand. It keeps nothing of it but numbers: what is reported goes the way
    that hides secrets."""

    def __init__(
        self,
        wanted: Sequence[edits.Edit] | str,
        label: str,
        max_bytes: int,
        words: edits.Words = edits.USUAL,
    ) -> None:
        """`words` are what the caller's arguments are called."""
        self._wanted, self._label, self._max_bytes, self._words = wanted, label, max_bytes, words
        self.places: list[dict[str, Any]] = []
        self.added = self.removed = 0

    def __call__(self, text: str) -> tuple[str, str]:
        after = self._patched(text) if isinstance(self._wanted, str) else self._edited(text, self._wanted)
        diff = unified(text, after, self._label, max_bytes=self._max_bytes)
        self.added, self.removed = diff.added, diff.removed
        return after, diff.text

    def _edited(self, text: str, wanted: Sequence[edits.Edit]) -> str:
        for edit in wanted:
            _refuse_marks(edit.new, there=text)
        done = edits.apply(text, wanted, visible=as_marks, words=self._words)
        self.places = [place._asdict() for place in done.places]
        return done.text

    def _patched(self, text: str) -> str:
        wanted = str(self._wanted)
        _refuse_marks("\n".join(line for line in wanted.split("\n") if line.startswith("+")), there=text)
        done = patch.apply(text, wanted)
        self.places = [place._asdict() for place in done.hunks]
        return done.text


def _refuse_marks(new: str, *, there: str) -> None:
    """Whoever copies from what it has read may copy a mark. Unless the text itself has it, a secret would be lost."""
    for mark in _MARK.findall(new):
        if mark not in there:
            raise InvalidParams(f"{mark} stands for a secret that you cannot see: edit other lines, and leave it out")


async def edited(ctx: ToolContext, uri: str, change: Change, *, if_match: str | None = None, dry_run: bool) -> Edited:
    try:
        return await ctx.edit(uri, change, if_match=if_match, dry_run=dry_run)
    except (NotFound, Forbidden) as absent:
        raise await instead(ctx, uri, absent) from None


async def _edit(budget: Budget, ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
    uri, dry_run = address(asked["target"]), asked.get("dry_run", False)
    change = Change(_wanted(asked), uri, budget.any_text // 3)  # the diff is told twice, and there are the places
    done = await edited(ctx, uri, change, if_match=asked.get("if_match"), dry_run=dry_run)
    entry, diff, said = done.entry, done.report, repeated(uri)
    known: dict[str, Any] = {
        "uri": said,
        "version": entry.version,
        "added": change.added,
        "removed": change.removed,
        "places": change.places[:100],
        "diff": diff,
        **({"dry_run": True} if dry_run else {}),
    }
    verb = "Would change" if dry_run else "Changed"
    sentence = f"{verb} {said}: {change.added} lines added, {change.removed} removed{d.versioned(entry)}"
    return d.result(f"{sentence}\n{diff}" if diff else f"Nothing to change in {said}", known)


def _wanted(asked: Mapping[str, Any]) -> Sequence[edits.Edit] | str:
    if ("edits" in asked) is ("patch" in asked):
        raise InvalidParams("Give edits, or a patch: one of the two")
    if "patch" in asked:
        patch_text: str = asked["patch"]
        return patch_text
    return [edits.Edit(one["old"], one["new"], one.get("expected", 1)) for one in asked["edits"]]


def edit_tool(budget: Budget) -> Tool:
    one = {
        **d.an_object(
            {
                "old": d.TEXT,
                "new": d.TEXT,
                "expected": d.said({"anyOf": [d.at_least(1), {"const": "all"}]}, "places, default 1"),
            },
            ["old", "new"],
        ),
        "additionalProperties": False,
    }
    return d.tool(
        "edit",
        "Edit a file",
        "Replaces text in a file: each old must stand there once (or expected times); or applies a unified diff "
        "(patch). All or nothing. Keeps encoding and line ends.",
        partial(_edit, budget),
        d.REPLACES,
        {
            "target": d.TEXT,
            "edits": {**d.a_list(one), "minItems": 1, "maxItems": 1000},
            "patch": d.FILLED,
            "dry_run": d.FLAG,
            "if_match": IF_MATCH,
        },
        required=["target"],
        gives=STATED,
    )
