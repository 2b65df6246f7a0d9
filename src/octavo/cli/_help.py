"""The help of a command in the language of whoever reads it: what click lays out is known again by its English text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import east_asian_width

import click

from octavo.cli._words import ENGLISH, HELP, language, translated

_BREAK = re.compile(r"\n\s*\n")
_AS_IT_IS = "\b\n"  # click breaks no line of such a paragraph
_GAP = 2  # columns between an option and what it does


class _Pages(click.HelpFormatter):
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, f"{translated('Usage:', HELP)} ")

    def write_heading(self, heading: str) -> None:
        super().write_heading(translated(heading, HELP))

    def write_text(self, text: str) -> None:
        indent, spoken = " " * self.current_indent, _spoken(text, self.width - self.current_indent)
        self.write(click.wrap_text(spoken, self.width, indent, indent, preserve_paragraphs=True) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = _GAP) -> None:
        rows = [*rows]
        first = min(max((len(name) for name, _ in rows), default=0), col_max) + col_spacing
        room = max(self.width - first - _GAP, 10)
        super().write_dl([(name, _spoken(text, room)) for name, text in rows], col_max, col_spacing)


class _InWords(click.Context):
    formatter_class = _Pages


class Spoken(click.Command):
    """A command whose help has a translation."""

    context_class = _InWords


def _spoken(text: str, columns: int) -> str:
    if language() == ENGLISH:
        return text
    paragraphs = (translated(" ".join(one.split()), HELP) for one in _BREAK.split(text))
    return "\n\n".join(_AS_IT_IS + "\n".join(_lines(one, columns)) for one in paragraphs)


def _lines(text: str, columns: int) -> list[str]:
    """As many words a line as it has columns for: a character of Hangul takes two, which click does not know."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and _width(longer) > columns:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _width(text: str) -> int:
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)
