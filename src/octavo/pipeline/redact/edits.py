"""Edits by a caller who may not see all of a text: the hidden parts can neither be changed nor brought to light.

An edit works on the text as it is. What is hidden from the caller is taken out of it before, with a sign in its
place, and put back after: nothing that a caller can write is found in a sign, so a right guess is answered as a wrong
one. Then two things must hold. What stands beside a hidden value is what stood there: characters that a caller chooses
would become part of what the rules look at, and the answer would tell of the value. And all that was hidden still is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from octavo.core.edit import Revised
from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.placeholders import SIGN, as_marks, number_of, sign
from octavo.core.preconditions import Shown
from octavo.pipeline.redact.marks import numbered_mark
from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.spans import HiddenSpan, merged


class Unseen:
    """Of one caller in one source: a `core.guard.Guard`."""

    def __init__(self, redactors: Sequence[Redactor]) -> None:
        self._redactors = redactors

    def check(self, before: Shown, after: Shown) -> None:
        """What was there stays as the beginning of what will be there, and stays hidden."""
        text, hidden = self._reading(before)
        if not hidden:
            return
        then, still = self._reading(after)
        if not then.startswith(text):
            raise _would_show(hidden[0])
        _refuse_changes(text, hidden, then, hidden, still)

    def below(self, text: str, change: Callable[[str], Revised]) -> Revised:
        """What the change makes of a text in which it finds nothing that is hidden from its caller."""
        hidden = self._hidden(text)
        try:
            made = change(_sealed(text, hidden) if hidden else text)
        except OctavoError as raised:
            _tell_marks(raised)
            raise
        if not hidden:
            return made
        then, places = _opened(made.text, text, hidden)
        kept = [span for span, place in zip(hidden, places, strict=True) if place is not None]
        moved = [place for place in places if place is not None]
        _refuse_changes(text, kept, then, moved, self._hidden(then))
        return replace(made, text=then, report=as_marks(made.report))

    def _hidden(self, text: str) -> list[HiddenSpan]:
        return _numbered(span for redactor in self._redactors for span in redactor.hidden(text))

    def _reading(self, shown: Shown) -> tuple[str, list[HiddenSpan]]:
        readings = [redactor.reading(*shown) for redactor in self._redactors]
        return readings[0][0], _numbered(span for _, hidden in readings for span in hidden)


def _numbered(spans: Iterable[HiddenSpan]) -> list[HiddenSpan]:
    """With the marks that a caller sees of a text which it may change."""
    return [span._replace(mark=numbered_mark(span.mark, number)) for number, span in enumerate(merged(spans), start=1)]


def _sealed(text: str, hidden: Iterable[HiddenSpan]) -> str:
    pieces: list[str] = []
    at = 0
    for number, (start, end, mark) in enumerate(hidden):
        pieces += (text[at:start], sign(number, mark))
        at = end
    return "".join((*pieces, text[at:]))


def _opened(sealed: str, text: str, hidden: Sequence[HiddenSpan]) -> tuple[str, list[HiddenSpan | None]]:
    """The text with hidden values in the place of their signs, and where each of them is now."""
    pieces: list[str] = []
    places: list[HiddenSpan | None] = [None] * len(hidden)
    at = size = 0
    for found in SIGN.finditer(sealed):
        number = number_of(found)
        if number >= len(hidden) or places[number] is not None:
            raise InvalidParams("An edit cannot repeat what is hidden", reason="hidden_data")
        start, end, mark = hidden[number]
        pieces += (sealed[at : found.start()], text[start:end])
        size += found.start() - at
        places[number] = HiddenSpan(size, size + end - start, mark)
        at, size = found.end(), size + end - start
    return "".join((*pieces, sealed[at:])), places


def _refuse_changes(
    text: str, hidden: Sequence[HiddenSpan], then: str, places: Sequence[HiddenSpan], still: Sequence[HiddenSpan]
) -> None:
    """Raises InvalidParams unless what was hidden in `text` is hidden at its places in the new text, between the same
    neighbours."""
    covers = iter(still)
    cover = next(covers, None)
    for span, place in sorted(zip(hidden, places, strict=True), key=lambda pair: pair[1]):
        if _neighbours(text, span) != _neighbours(then, place):
            raise InvalidParams(
                f"That would change what stands directly beside {span.mark}, which stands for something that is "
                "hidden from you: leave the characters on both sides of it as they are, and write on another line",
                reason="hidden_data",
            )
        while cover is not None and cover.end < place.end:
            cover = next(covers, None)
        if cover is None or cover.start > place.start:
            raise _would_show(span)


def _neighbours(text: str, span: HiddenSpan) -> tuple[str, str]:
    """Beginning and end of a text are those of a line."""
    return _neighbour(text[max(span.start - 1, 0) : span.start]), _neighbour(text[span.end : span.end + 1])


def _neighbour(character: str) -> str:
    return "\n" if character in ("", "\r") else character


def _would_show(span: HiddenSpan) -> InvalidParams:
    return InvalidParams(
        f"That would show what {span.mark} stands for, which is hidden from you: leave the lines around it, the "
        "encoding and the type of the file as they are, and change other parts of it",
        reason="hidden_data",
    )


def _tell_marks(raised: OctavoError) -> None:
    raised.message = as_marks(raised.message)
    raised.args = (raised.message,)
    raised.data = {key: as_marks(value) if isinstance(value, str) else value for key, value in raised.data.items()}
