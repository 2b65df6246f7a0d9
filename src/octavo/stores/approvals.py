"""What waits for a human, and what a human has allowed and nobody has used yet: `approvals/` of the store.

What is used or has expired is no longer there.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from octavo.core.approval import Approval, Told, Wanted
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, NotFound
from octavo.core.fair import in_thread
from octavo.core.ports.stores import Opens
from octavo.stores.waiting import Turn, Waiting


class StoredApprovals:
    """`told` hears of each step once, before it counts: what it raises undoes the step."""

    def __init__(self, opens: Opens, told: Told, *, clock: Clock | None = None) -> None:
        self._kept, self._told = Waiting(opens, "approvals", Approval), told
        self._wall = (clock or SystemClock()).wall

    async def ask(self, wanted: Wanted, *, seconds: float) -> Approval:
        async with self._turn() as turn:
            now = self._wall()
            others = [one for one in turn.waiting if one.wanted.request != wanted.request]
            for one in (one for one in turn.waiting if one.wanted.request == wanted.request):
                if one.wanted.versions != wanted.versions:
                    await in_thread(self._told, "outdated", one, "")
                    await turn.drop(one)
                elif one.wanted == wanted:
                    return one
                else:  # by another rule, which may want more people
                    await turn.put(renewed := replace(one, wanted=wanted), now)
                    return renewed
            self._kept.check_room([one for one in others if one.wanted.who == wanted.who], others, now)
            made = Approval(id=secrets.token_hex(5), wanted=wanted, asked=now, expires=now + seconds)
            await in_thread(self._told, "asked", made, "")
            await turn.put(made, now)
            return made

    async def answer(self, name: str, person: str, *, allow: bool) -> Approval:
        async with self._turn() as turn:
            one = _named(turn.waiting, name)
            if one.state != "pending":
                raise Conflict(f"Approval {name} was {one.state} by {one.denied or ', '.join(one.allowed)} already")
            if person in one.allowed:
                raise Conflict(f"{person} has allowed {name} already; another person has to as well")
            now = self._wall()
            answered = replace(one, allowed=(*one.allowed, person)) if allow else replace(one, denied=person)
            if answered.state != "pending":  # an answer counts as long as a question stands
                answered = replace(answered, expires=now + one.expires - one.asked)
            await in_thread(self._told, "allowed" if allow else "denied", answered, person)
            await turn.put(answered, now)
            return answered

    async def use(self, name: str) -> bool:
        async with self._turn() as turn:
            one = next((one for one in turn.waiting if one.id == name), None)
            if one is None or one.state != "allowed":
                return False
            await in_thread(self._told, "used", one, "")
            await turn.drop(one)
        return True  # not before it is stored that it was used

    async def cancel(self, name: str) -> None:
        async with self._turn() as turn:
            one = next((one for one in turn.waiting if one.id == name), None)
            if one is not None and one.state == "pending":
                await turn.drop(one)
                await in_thread(self._told, "cancelled", one, "")

    async def standing(self) -> Sequence[Approval]:
        """All that are not used and have not expired, the oldest first."""
        now = self._wall()
        return [one for one in await self._kept.all() if one.live(now)]

    async def named(self, name: str) -> Approval:
        """Raises NotFound."""
        return _named(await self.standing(), name)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[Turn[Approval]]:
        """What is live, while nobody else can change it. Expired ones are gone before, whatever happens."""
        now = self._wall()
        if any(not one.live(now) for one in await self._kept.all()):
            await self._forget_expired()
        async with self._kept.turn() as turn:
            now = self._wall()
            turn.waiting = [one for one in turn.waiting if one.live(now)]
            yield turn

    async def _forget_expired(self) -> None:
        async with self._kept.turn() as turn:
            now = self._wall()
            for gone in (one for one in turn.waiting if not one.live(now)):
                await turn.drop(gone)
                await in_thread(self._told, "expired", gone, "")


def _named(approvals: Sequence[Approval], name: str) -> Approval:
    one = next((one for one in approvals if one.id == name), None)
    if one is None:
        raise NotFound(f"There is no approval {name} now: it was used, has expired, or never was")
    return one
