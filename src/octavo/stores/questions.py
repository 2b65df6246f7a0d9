"""Questions that wait for somebody, and answers that nobody has used yet: `questions/` of the store.

What is used or has expired is no longer there.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, InvalidParams, NotFound
from octavo.core.fair import in_thread
from octavo.core.forms import Answer, Asked, Form
from octavo.core.ports.stores import Opens
from octavo.stores.waiting import Turn, Waiting, live

Step: TypeAlias = Literal["asked", "answered", "used"]


class StoredQuestions:
    """`told` hears of each step once, before it counts: what it raises undoes the step."""

    def __init__(self, opens: Opens, told: Callable[[Step, Asked], None], *, clock: Clock | None = None) -> None:
        self._kept, self._told = Waiting(opens, "questions", Asked), told
        self._wall = (clock or SystemClock()).wall

    async def ask(self, who: str, tool: str, form: Form, request: str, *, seconds: float) -> Asked:
        async with self._turn() as turn:
            known = next((one for one in turn.waiting if one.request == request), None)
            if known is not None:
                return known
            now = self._wall()
            self._kept.check_room([one for one in turn.waiting if one.who == who], turn.waiting, now)
            name, until = secrets.token_hex(5), now + seconds
            made = Asked(id=name, who=who, tool=tool, form=form, request=request, asked=now, expires=until)
            await in_thread(self._told, "asked", made)
            await turn.put(made, now)
            return made

    async def take(self, request: str) -> Answer | None:
        async with self._turn() as turn:
            known = next((one for one in turn.waiting if one.request == request), None)
            if known is None or known.answer is None:
                return None
            await in_thread(self._told, "used", known)
            await turn.drop(known)
        return known.answer

    async def answer(self, name: str, person: str, answer: Answer) -> Asked:
        """Raises NotFound for one that is not there any more, Conflict for one that was answered, InvalidParams for
        an answer that does not fit."""
        async with self._turn() as turn:
            one = _named(turn.waiting, name)
            if one.answer is not None:
                raise Conflict(f"{one.by} has answered {name} already")
            if one.form.taken(answer) != answer:  # a further field is a slip of whoever writes it by hand
                raise InvalidParams(f"That is no answer to it; its fields are told by: octavo questions show {name}")
            # An answer counts as long as a question waits.
            now = self._wall()
            answered = replace(one, answer=answer, by=person, expires=now + one.expires - one.asked)
            await in_thread(self._told, "answered", answered)
            if one.form.schema.get("properties"):
                await turn.put(answered, now)
            else:  # nobody comes back for a notice
                await turn.drop(one)
            return answered

    async def standing(self) -> Sequence[Asked]:
        """All that are not used and have not expired, the oldest first."""
        now = self._wall()
        return [one for one in await self._kept.all() if live(one, now)]

    async def named(self, name: str) -> Asked:
        """Raises NotFound."""
        return _named(await self.standing(), name)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[Turn[Asked]]:
        """What is live, while nobody else can change it. Expired ones are gone afterwards."""
        async with self._kept.turn() as turn:
            now = self._wall()
            for gone in (one for one in turn.waiting if not live(one, now)):
                await turn.drop(gone)
            turn.waiting = [one for one in turn.waiting if live(one, now)]
            yield turn


def _named(questions: Sequence[Asked], name: str) -> Asked:
    one = next((one for one in questions if one.id == name), None)
    if one is None:
        raise NotFound(f"There is no question {name} now: it was answered and used, has expired, or never was")
    return one
