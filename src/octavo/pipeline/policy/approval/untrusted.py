"""Callers who have read untrusted content: for a while a human is asked before they change or send anything.

A document can hold words that are meant for the model that reads it. What the model does afterwards may be what the
author of the document wants. Loaded where `approval.after_untrusted` is set; see decision 19.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, cast

from octavo.core.approval import ShownUntrusted
from octavo.core.memo import Bounded
from octavo.core.operations import CHANGING
from octavo.core.ports.chain import Reply
from octavo.core.ref import Ref
from octavo.core.search_results import Findings
from octavo.core.tools import Tools
from octavo.core.values import Call, Change, Content, Edited, Entry, News, Page
from octavo.pipeline.policy.approval.consent import Demand

MOST = 10_000  # callers that are remembered; beyond, everybody counts as one who was shown something
KEPT = 64  # of what is kept with one page
_LEFT = 0.9  # of its time, for which what was stored is not stored again
_FACTS: Final = frozenset(("version", "size", "etag"))  # of a change, where no metadata is called so
_WHY = "untrusted content was shown to the caller before"


class Untrusted:
    def __init__(
        self,
        seconds: float,
        labelled: Callable[[Entry], Entry],
        tools: Tools,
        built_in: Collection[str],
        now: Callable[[], float],
        kept: ShownUntrusted,
        strangers: Collection[str] = (),
    ) -> None:
        """`seconds` for which it is remembered, here and in what is `kept` for other processes. What `built_in` tools
        do is asked in calls of their own; what `strangers`, tools too, bring along is not believed unless a label says
        so."""
        self._seconds, self._labelled, self._tools, self._now = seconds, labelled, tools, now
        self._built_in, self._strangers = frozenset(built_in), frozenset(strangers)
        self._kept = kept
        self._shown: dict[str, float] = {}  # by caller: until when
        self._stored = Bounded[str, float](MOST)  # the same, as others know it from here
        self._everybody = float("-inf")

    def takes_over(self, before: Untrusted) -> None:
        """What was shown under other rules was shown."""
        self._shown, self._stored, self._everybody = before._shown, before._stored, before._everybody

    def note(self, call: Call, reply: Reply) -> Awaitable[None] | None:
        """To be told of every answer that a caller gets. What it gives is waited for before the answer leaves, and
        raises SourceUnavailable where other servers cannot be told: then it must not."""
        return self._shown_to(call.principal.id) if self._is_untrusted(call, reply) else None

    def note_changes(self, who: str, changes: Iterable[Change]) -> Awaitable[None] | None:
        """The same of what somebody is told who follows the feed."""
        return self._shown_to(who) if any(map(self._tells, changes)) else None

    def _shown_to(self, who: str) -> Awaitable[None] | None:
        now = self._now()
        self._remember(who, now + self._seconds)
        if self._stored.get(who, now) - now > _LEFT * self._seconds:
            return None
        return self._store(who)

    async def learn(self, call: Call) -> None:
        """What other processes have shown to the caller, where the call acts. Raises SourceUnavailable where that
        cannot be known."""
        who = call.principal.id
        if not self.concerns(who) and self._acts(call):
            left = await self._kept.left(who, self._seconds)
            if left > 0:
                self._remember(who, self._now() + left)

    def _remember(self, who: str, until: float) -> None:
        if who not in self._shown and len(self._shown) >= MOST:
            self._shown = {one: end for one, end in self._shown.items() if end > self._now()}
        if len(self._shown) < MOST or who in self._shown:
            self._shown[who] = max(until, self._shown.get(who, until))
        else:
            self._everybody = max(until, self._everybody)

    async def _store(self, who: str) -> None:
        """Before it is shown: a server that does not know of it would let the caller do anything."""
        await self._kept.note(who, self._seconds)
        self._stored.keep(who, self._now() + self._seconds)

    def concerns(self, who: str) -> bool:
        return self._now() < max(self._everybody, self._shown.get(who, self._everybody))

    def demand(self, call: Call) -> Demand | None:
        """Whether a human is asked about this call, whatever the rules say of approval."""
        if not self.concerns(call.principal.id) or not self._acts(call):
            return None
        return Demand(1, "approval.after_untrusted", _WHY)

    def may_act(self, ref: Ref) -> bool:
        """Whether a call of that tool may change something, or send something out."""
        info = self._tools.tool(ref.path)
        return info is None or info.hints.open_world or not info.hints.read_only

    def _acts(self, call: Call) -> bool:
        if call.op in CHANGING:
            return True
        info = self._tools.tool(call.ref.path) if call.op == "invoke" and call.ref.path not in self._built_in else None
        return info is not None and (info.hints.open_world or not info.hints.read_only)

    def _is_untrusted(self, call: Call, reply: Reply) -> bool:
        """Texts count, also titles and descriptions, not the names in a list; of a tool, what the operator labels it
        as. What tools and prompts are described with comes from whom the operator chose."""
        if isinstance(reply, Content | Edited):  # an edit quotes what it changes
            return _doubtful(self._labelled(reply.entry).metadata)
        if isinstance(reply, Findings):
            found = [Entry(ref=one.ref, name=one.title, metadata=one.metadata) for one in reply.items]
            return any(_doubtful(self._labelled(entry).metadata) for entry in found)
        if isinstance(reply, Page) and call.op == "search":
            return any(_doubtful(self._labelled(entry).metadata) for entry in cast("Page[Entry]", reply).items)
        if isinstance(reply, Page) and call.op == "list" and call.ref.scheme not in ("tool", "prompt"):
            return self._tells_untrusted(cast("Page[Entry]", reply))
        if isinstance(reply, Entry):
            return self._describes(reply)
        if isinstance(reply, News):
            return any(map(self._tells, reply.changes))
        if call.op in ("invoke", "render", "poll"):
            said = self._labelled(Entry(ref=call.ref, name="")).metadata
            strange = call.op != "render" and call.ref.path in self._strangers
            return _doubtful(said) or (strange and "integrity" not in said)
        return False

    def _tells_untrusted(self, page: Page[Entry]) -> bool:
        """Kept with the page, which many ask for."""
        known: bool | None = page.memo.get(self)
        if known is None:
            known = any(map(self._describes, page.items))
            if len(page.memo) < KEPT:
                page.memo[self] = known
        return known

    def _tells(self, change: Change) -> bool:
        """It says what has become of titles and metadata. The name of a file is no text."""
        known = [one for one in (change.old, change.new) if one is not None]
        names = [None, *(one.ref.name for one in known)]
        facts = _FACTS.difference(*(one.metadata for one in known))
        told = (value for key, pair in change.changes.items() if key not in facts for value in pair)
        return any(one not in names for one in told) and any(_doubtful(self._labelled(one).metadata) for one in known)

    def _describes(self, entry: Entry) -> bool:
        return bool(entry.title or entry.description) and _doubtful(self._labelled(entry).metadata)


def _doubtful(metadata: Mapping[str, Any]) -> bool:
    """A word that nobody knows may be the worst of all."""
    said = metadata.get("integrity")
    return said is not None and not (isinstance(said, str) and said.strip().casefold() == "trusted")
