"""Questions that wait for somebody, and answers that nobody has used yet: `questions.json`.

What is used or has expired is no longer there.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, InvalidParams, NotFound, RateLimited
from octavo.core.forms import Answer, Asked, Form
from octavo.stores.waiting import MOST, MOST_OF_ONE, WaitingFile

Step: TypeAlias = Literal["asked", "answered", "used"]


class QuestionFile:
    """`told` hears of each step once, before it counts: what it raises undoes the step."""

    def __init__(self, state: Path | None, told: Callable[[Step, Asked], None], *, clock: Clock | None = None) -> None:
        self._file, self._told = WaitingFile(state, "questions", Asked), told
        self._wall = (clock or SystemClock()).wall

    def ask(self, who: str, tool: str, form: Form, request: str, *, seconds: float) -> Asked:
        with self._turn() as waiting:
            known = next((one for one in waiting if one.request == request), None)
            if known is not None:
                return known
            now = self._wall()
            mine = [one.expires for one in waiting if one.who == who]
            if len(mine) >= MOST_OF_ONE or len(waiting) >= MOST:
                soonest = min(mine or [one.expires for one in waiting])
                raise RateLimited(
                    "Too many questions wait already; wait until some of them are answered",
                    retry_after=max(1.0, soonest - now),
                    limit="questions",
                )
            name, until = secrets.token_hex(5), now + seconds
            made = Asked(id=name, who=who, tool=tool, form=form, request=request, asked=now, expires=until)
            self._told("asked", made)
            self._file.write([*waiting, made])
            return made

    def take(self, request: str) -> Answer | None:
        with self._turn() as waiting:
            known = next((one for one in waiting if one.request == request), None)
            if known is None or known.answer is None:
                return None
            self._told("used", known)
            self._file.write([one for one in waiting if one is not known])
            return known.answer

    def answer(self, name: str, person: str, answer: Answer) -> Asked:
        """Raises NotFound for one that is not there any more, Conflict for one that was answered, InvalidParams for
        an answer that does not fit."""
        with self._turn() as waiting:
            one = _named(waiting, name)
            if one.answer is not None:
                raise Conflict(f"{one.by} has answered {name} already")
            if one.form.taken(answer) != answer:  # a further field is a slip of whoever writes it by hand
                raise InvalidParams(f"That is no answer to it; its fields are told by: octavo questions show {name}")
            # An answer counts as long as a question waits.
            answered = replace(one, answer=answer, by=person, expires=self._wall() + one.expires - one.asked)
            self._told("answered", answered)
            notice = not one.form.schema.get("properties")
            kept = [] if notice else [answered]  # nobody comes back for a notice
            self._file.write([*(other for other in waiting if other is not one), *kept])
            return answered

    def standing(self) -> Sequence[Asked]:
        """All that are not used and have not expired, the oldest first."""
        now = self._wall()
        return [one for one in self._file.read() if _live(one, now)]

    def named(self, name: str) -> Asked:
        """Raises NotFound."""
        return _named(self.standing(), name)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[list[Asked]]:
        """What is live, while nobody else can change it."""
        with self._file.turn():
            now = self._wall()
            yield [one for one in self._file.read() if _live(one, now)]


def _live(one: Asked, now: float) -> bool:
    """A clock that was set back does not make it last longer."""
    return one.asked - 60 <= now < one.expires


def _named(questions: Sequence[Asked], name: str) -> Asked:
    one = next((one for one in questions if one.id == name), None)
    if one is None:
        raise NotFound(f"There is no question {name} now: it was answered and used, has expired, or never was")
    return one
