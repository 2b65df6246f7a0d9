"""How many sessions of the handshake era each principal may have over HTTP.

A session costs memory and a task for as long as it lasts, half an hour after its last use. At its limit a principal
gets another one by losing the one of its own that was idle for longest; what others have is never touched. One whose
sessions are all in use is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager

from octavo.core.errors import RateLimited
from octavo.core.ports.server import Server
from octavo.core.values import Principal


class SessionCounts:
    def __init__(
        self, server: Server, live: Callable[[], Container[str]], end: Callable[[str], Awaitable[None]]
    ) -> None:
        """`live` are the ids of those that still last, `end` ends one."""
        self._server, self._live, self._end = server, live, end
        # By the name among whose they count: how many requests of each are under way. What was used last is last.
        self._open: dict[str, dict[str, int]] = {}
        self._opening: Counter[str] = Counter()

    async def make_room(self, who: Principal) -> str:
        """Where one more is counted: to be told to `opened` when it is open, or has come to nothing. Raises RateLimited
        when the principal has as many as it may, and all of them in use."""
        whose, most = self._server.works.sessions(who)
        mine = self._current(whose)
        self._opening[whose] += 1
        try:
            while len(mine) + self._opening[whose] > most:
                idle = next((session for session, under_way in mine.items() if not under_way), None)
                if idle is None:
                    raise RateLimited(
                        "All your sessions are in use: end one", retry_after=1.0, limit="sessions", allowed=most
                    )
                del mine[idle]
                self._server.note(who.id, "session", "end", reason="limits.sessions")
                await self._end(idle)
        except BaseException:
            self.opened(whose, None)
            raise
        return whose

    def opened(self, whose: str, session: str | None) -> None:
        self._opening[whose] -= 1
        if not self._opening[whose]:
            del self._opening[whose]
        if session is not None:
            self._open.setdefault(whose, {})[session] = 0

    @contextmanager
    def using(self, who: Principal, session: str) -> Iterator[None]:
        """Around a request in it. Those of others are nobody's here."""
        mine = self._open.get(self._server.works.sessions(who)[0], {})
        if session not in mine:
            yield
            return
        mine[session] = mine.pop(session) + 1
        try:
            yield
        finally:
            if session in mine:
                mine[session] = mine.pop(session) - 1

    def _current(self, whose: str) -> dict[str, int]:
        """Without those that have ended since."""
        live = self._live()
        known = self._open.setdefault(whose, {})
        for session in [session for session in known if session not in live]:
            del known[session]
        return known
