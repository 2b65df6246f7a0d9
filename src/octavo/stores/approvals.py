"""What waits for a human, and what a human has allowed and nobody has used yet: `approvals.json`.

What is used or has expired is no longer there.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from octavo.core.approval import Approval, Told, Wanted
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, NotFound, RateLimited
from octavo.stores.waiting import MOST, MOST_OF_ONE, WaitingFile


class ApprovalFile:
    """`told` hears of each step once, before it counts: what it raises undoes the step."""

    def __init__(self, state: Path | None, told: Told, *, clock: Clock | None = None) -> None:
        self._file, self._told = WaitingFile(state, "approvals", Approval), told
        self._wall = (clock or SystemClock()).wall

    def ask(self, wanted: Wanted, *, seconds: float) -> Approval:
        with self._turn() as all_of_them:
            now = self._wall()
            others = [one for one in all_of_them if one.wanted.request != wanted.request]
            for one in (one for one in all_of_them if one.wanted.request == wanted.request):
                if one.wanted.versions != wanted.versions:
                    self._told("outdated", one, "")
                elif one.wanted == wanted:
                    return one
                else:  # by another rule, which may want more people
                    self._file.write([*others, renewed := replace(one, wanted=wanted)])
                    return renewed
            mine = [one.expires for one in others if one.wanted.who == wanted.who]
            if len(mine) >= MOST_OF_ONE or len(others) >= MOST:
                soonest = min(mine or [one.expires for one in others])
                raise RateLimited(
                    "Too much waits for a human already; wait until some of it is answered",
                    retry_after=max(1.0, soonest - now),
                    limit="approvals",
                )
            made = Approval(id=secrets.token_hex(5), wanted=wanted, asked=now, expires=now + seconds)
            self._told("asked", made, "")
            self._file.write([*others, made])
            return made

    def answer(self, name: str, person: str, *, allow: bool) -> Approval:
        with self._turn() as all_of_them:
            one = _named(all_of_them, name)
            if one.state != "pending":
                raise Conflict(f"Approval {name} was {one.state} by {one.denied or ', '.join(one.allowed)} already")
            if person in one.allowed:
                raise Conflict(f"{person} has allowed {name} already; another person has to as well")
            answered = replace(one, allowed=(*one.allowed, person)) if allow else replace(one, denied=person)
            if answered.state != "pending":  # an answer counts as long as a question stands
                answered = replace(answered, expires=self._wall() + one.expires - one.asked)
            self._told("allowed" if allow else "denied", answered, person)
            self._file.write([answered if other is one else other for other in all_of_them])
            return answered

    def use(self, name: str) -> bool:
        with self._turn() as all_of_them:
            one = next((one for one in all_of_them if one.id == name), None)
            if one is None or one.state != "allowed":
                return False
            self._told("used", one, "")
            self._file.write([other for other in all_of_them if other is not one])
            return True

    def cancel(self, name: str) -> None:
        with self._turn() as all_of_them:
            one = next((one for one in all_of_them if one.id == name), None)
            if one is not None and one.state == "pending":
                self._file.write([other for other in all_of_them if other is not one])
                self._told("cancelled", one, "")

    def standing(self) -> Sequence[Approval]:
        """All that are not used and have not expired, the oldest first."""
        now = self._wall()
        return [one for one in self._file.read() if one.live(now)]

    def named(self, name: str) -> Approval:
        """Raises NotFound."""
        return _named(self.standing(), name)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[list[Approval]]:
        """What is live, while nobody else can change it. Expired ones are gone afterwards, whatever happens."""
        with self._file.turn():
            kept, now = self._file.read(), self._wall()
            live = [one for one in kept if one.live(now)]
            if len(live) < len(kept):
                self._file.write(live)
                for gone in (one for one in kept if not one.live(now)):
                    self._told("expired", gone, "")
            yield live


def _named(approvals: Sequence[Approval], name: str) -> Approval:
    one = next((one for one in approvals if one.id == name), None)
    if one is None:
        raise NotFound(f"There is no approval {name} now: it was used, has expired, or never was")
    return one
