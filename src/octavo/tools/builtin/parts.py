"""Which part of a text was asked for, and how to ask for the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from octavo.core.errors import InvalidParams
from octavo.text.lines import LinePart, byte_range, head, line_range, numbered, split, tail
from octavo.text.outline import outline, section
from octavo.text.tokens import fit
from octavo.tools.builtin.answer_budget import Budget

PARTS: Final = ("lines", "head", "tail", "bytes", "section")
_MARK: Final = 256  # bytes of a budget for the mark at the end


class Piece(NamedTuple):
    """Text for an answer. `goes_on` are the arguments that ask for what did not fit; "" if all is there."""

    text: str
    goes_on: str = ""

    def marked(self, otherwise: str = "") -> str:
        """`otherwise` says how to go on, for a tool that has no such arguments."""
        if not self.goes_on:
            return self.text
        end = "" if not self.text or self.text.endswith("\n") else "\n"
        return f"{self.text}{end}[cut here: {otherwise or f'read on with {self.goes_on}'}]"


def the_one_part(asked: Mapping[str, Any]) -> str | None:
    given = [name for name in PARTS if name in asked]
    if len(given) > 1:
        raise InvalidParams(f"Ask for one part at a time, not for {' and '.join(given)}")
    return given[0] if given else None


def piece(text: str, mime: str, asked: Mapping[str, Any], budget: Budget) -> Piece:
    """The part that was asked for, as much of it as fits."""
    part = the_one_part(asked)
    if part == "bytes":
        return _of_bytes(text, *pair(asked, "bytes"), budget)
    with_numbers = asked.get("line_numbers", False)
    if part is None and not with_numbers:
        whole = fit(text, *budget)
        if whole.cut_at_line is None:
            return Piece(text)
    match part:
        case "lines":
            chosen = line_range(text, *pair(asked, "lines"))
        case "head":
            chosen = head(text, asked["head"])
        case "tail":
            chosen = tail(text, asked["tail"])
        case "section":
            chosen = line_range(text, *section(text, asked["section"], mime))
        case _:
            chosen = line_range(text, 1)
    return _of_lines(text, chosen, budget, with_numbers=with_numbers)


def outlined(text: str, mime: str, budget: Budget) -> Piece:
    """One symbol a line: its lines, and its name below those of its parents."""
    symbols = outline(text, mime)
    if not symbols:
        return Piece("No outline is known for this text: read it by lines")
    lines = (f"{one.line}-{one.last}\t{'  ' * (len(one.path) - 1)}{one.kind} {one.name}\n" for one in symbols)
    fitted = fit("".join(lines), *_without_mark(budget))
    if fitted.cut_at_line is None:
        return Piece(fitted.text)
    return Piece(fitted.text, f"lines: [{symbols[fitted.cut_at_line - 1].line}, -1]")


def pair(asked: Mapping[str, Any], name: str) -> tuple[int, int]:
    first, last = asked[name]
    return first, last


def _of_lines(text: str, chosen: LinePart, budget: Budget, *, with_numbers: bool) -> Piece:
    shown = numbered(chosen) if with_numbers else chosen.text
    whole = fit(shown, *budget)
    if whole.cut_at_line is None:
        return Piece(shown)
    fitted = fit(shown, *_without_mark(budget))
    done = (fitted.cut_at_line or 1) - 1
    if done:
        return Piece(fitted.text, f"lines: [{chosen.first + done}, {chosen.last}]")
    begin = len("".join(split(text)[: chosen.first - 1]).encode("utf-8", "surrogatepass"))
    return _of_bytes(text, begin, begin + len(chosen.text.encode("utf-8", "surrogatepass")), budget)


def _of_bytes(text: str, start: int, stop: int, budget: Budget) -> Piece:
    chosen = byte_range(text, start, stop)
    fitted = fit(chosen.text, *budget)
    if fitted.cut_at_line is None:
        return Piece(chosen.text)
    fitted = fit(chosen.text, *_without_mark(budget))
    following = chosen.start + len(fitted.text.encode("utf-8", "surrogatepass"))
    return Piece(fitted.text, f"bytes: [{following}, {chosen.stop}]")


def _without_mark(budget: Budget) -> Budget:
    return Budget(max(budget.max_bytes - _MARK, 1), max(budget.max_tokens - _MARK // 4, 1))
