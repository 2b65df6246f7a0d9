"""What waits for a human, and what a human has allowed and nobody has used yet.

One small file, `approvals.json` in the state directory, replaced as a whole and by one process at a time: that is what
makes an approval count once, however many processes ask for it. What is used or has expired is no longer there. A
damaged file approves nothing, and nobody overwrites it. Without a state directory it is kept in memory.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from octavo.core.approval import Approval, Told, Wanted
from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import Conflict, NotFound, RateLimited, SourceUnavailable
from octavo.stores.state import read_whole, turn, write_whole

NAME = "approvals.json"
MOST_OF_ONE = 32  # that one principal may have at a time
MOST = 1000
MAX_BYTES = 64 << 20


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    approvals: list[Approval]


class ApprovalFile:
    """`told` hears of each step once, before it counts: what it raises undoes the step."""

    def __init__(self, state: Path | None, told: Told, *, clock: Clock | None = None) -> None:
        self._state, self._told = state, told
        self._wall = (clock or SystemClock()).wall
        self._memory: list[Approval] = []

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
                    self._write([*others, renewed := replace(one, wanted=wanted)])
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
            self._write([*others, made])
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
            self._write([answered if other is one else other for other in all_of_them])
            return answered

    def use(self, name: str) -> bool:
        with self._turn() as all_of_them:
            one = next((one for one in all_of_them if one.id == name), None)
            if one is None or one.state != "allowed":
                return False
            self._told("used", one, "")
            self._write([other for other in all_of_them if other is not one])
            return True

    def cancel(self, name: str) -> None:
        with self._turn() as all_of_them:
            one = next((one for one in all_of_them if one.id == name), None)
            if one is not None and one.state == "pending":
                self._write([other for other in all_of_them if other is not one])
                self._told("cancelled", one, "")

    def standing(self) -> Sequence[Approval]:
        """All that are not used and have not expired, the oldest first."""
        now = self._wall()
        return [one for one in self._read() if one.live(now)]

    def named(self, name: str) -> Approval:
        """Raises NotFound."""
        return _named(self.standing(), name)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[list[Approval]]:
        """What is live, while nobody else can change it. Expired ones are gone afterwards, whatever happens."""
        with contextlib.nullcontext() if self._state is None else turn(self._state / "lock"):
            kept, now = self._read(), self._wall()
            live = [one for one in kept if one.live(now)]
            if len(live) < len(kept):
                self._write(live)
                for gone in (one for one in kept if not one.live(now)):
                    self._told("expired", gone, "")
            yield live

    def _read(self) -> list[Approval]:
        if self._state is None:
            return self._memory
        try:
            body = read_whole(self._state / NAME, MAX_BYTES)
        except OSError as error:
            raise SourceUnavailable(f"The approvals cannot be read: {error.strerror}") from None
        if body is None:
            return []
        try:
            document = msgspec.json.decode(body, type=_Document)
        except msgspec.MsgspecError:
            raise SourceUnavailable(
                f"The file {NAME} of the state folder is damaged; remove it, and what waits is asked for again"
            ) from None
        if document.version != 1:
            raise SourceUnavailable("The approvals were written by a newer Octavo")
        return document.approvals

    def _write(self, approvals: list[Approval]) -> None:
        if self._state is None:
            self._memory = approvals
            return
        try:
            write_whole(self._state / NAME, msgspec.json.encode(_Document(1, approvals)) + b"\n")
        except OSError as error:
            raise SourceUnavailable(f"The approvals cannot be written: {error.strerror}") from None


def _named(approvals: Sequence[Approval], name: str) -> Approval:
    one = next((one for one in approvals if one.id == name), None)
    if one is None:
        raise NotFound(f"There is no approval {name} now: it was used, has expired, or never was")
    return one
