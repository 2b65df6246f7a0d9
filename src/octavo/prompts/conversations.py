"""Conversations: what was said before, by handles. In memory, bounded, forgotten when nobody uses them."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Final

from octavo.core.clock import Clock
from octavo.core.errors import InvalidParams, RateLimited, TooLarge
from octavo.core.sizes import KIB
from octavo.core.tools import Said

MAX_OPEN: Final = 32  # of one caller
MAX_OF_ALL: Final = 4096
MAX_SAID: Final = 200  # messages of one conversation,
MAX_CHARACTERS: Final = 256 * KIB  # and their texts together
_UNKNOWN = "No such conversation of yours, or it has expired: begin one with the tool conversation"


class _Conversation:
    __slots__ = ("said", "until", "who")

    def __init__(self, who: str, until: float) -> None:
        self.who, self.until = who, until
        self.said: tuple[Said, ...] = ()


class InMemory:
    """The `Conversations` of one process. A handle is of no use to anybody but who began it."""

    def __init__(self, clock: Clock, *, expires: float) -> None:
        """`expires` seconds after its last use."""
        self._now, self.expires = clock.monotonic, expires
        self._open: dict[str, _Conversation] = {}  # the one that was used last is the last
        self._count: Counter[str] = Counter()

    def begin(self, who: str) -> str:
        self._forget_expired()
        if self._count[who] >= MAX_OPEN or len(self._open) >= MAX_OF_ALL:
            raise RateLimited(
                f"There are too many conversations (of one caller {MAX_OPEN}): end one, or let it expire",
                retry_after=self.expires,
                limit=MAX_OPEN,
            )
        handle = secrets.token_urlsafe(16)
        self._open[handle] = _Conversation(who, self._now() + self.expires)
        self._count[who] += 1
        return handle

    def add(self, who: str, handle: str, said: Sequence[Said]) -> None:
        conversation = self._used(who, handle)
        size = sum(len(one.text) for one in said)
        if len(said) > MAX_SAID or size > MAX_CHARACTERS:
            raise TooLarge(
                f"A conversation holds {MAX_SAID} messages of {MAX_CHARACTERS} characters together",
                size=size,
                limit=MAX_CHARACTERS,
            )
        kept = [*conversation.said, *said][-MAX_SAID:]
        room = sum(len(one.text) for one in kept)
        while room > MAX_CHARACTERS:
            room -= len(kept.pop(0).text)
        conversation.said = tuple(kept)

    def past(self, who: str, handle: str) -> Sequence[Said]:
        return self._used(who, handle).said

    def end(self, who: str, handle: str) -> None:
        self._used(who, handle)
        self._forget(handle)

    def _used(self, who: str, handle: str) -> _Conversation:
        """Word for word the same for what is unknown and for what is somebody else's."""
        self._forget_expired()
        conversation = self._open.get(handle)
        if conversation is None or conversation.who != who or conversation.until <= self._now():
            raise InvalidParams(_UNKNOWN, reason="unknown_conversation")
        conversation.until = self._now() + self.expires
        self._open[handle] = self._open.pop(handle)
        return conversation

    def _forget_expired(self) -> None:
        now = self._now()
        while self._open:
            handle = next(iter(self._open))
            if self._open[handle].until > now:
                return
            self._forget(handle)

    def _forget(self, handle: str) -> None:
        who = self._open.pop(handle).who
        self._count[who] -= 1
        if not self._count[who]:
            del self._count[who]
