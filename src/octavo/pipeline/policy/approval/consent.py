"""Whether a human has to be asked before a call. The part that asks is loaded when the first call needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from octavo.core.arguments import EditArguments
from octavo.core.operations import CHANGING
from octavo.core.ports.chain import Next
from octavo.core.ref import Ref
from octavo.core.tools import Tools
from octavo.core.values import Call
from octavo.pipeline.policy.rules import Decision

if TYPE_CHECKING:
    from octavo.pipeline.policy.approval.ask import Approving
    from octavo.pipeline.policy.approval.untrusted import Untrusted


class Demand(NamedTuple):
    people: int
    rule: str
    why: str = ""


class Restores(Protocol):
    """What has to be known of the sources."""

    def restores(self, ref: Ref) -> bool:
        """Whether `undo` could take back a change there."""
        ...


class Consent:
    def __init__(
        self, tools: Tools, sources: Restores, made: Callable[[], Approving], untrusted: Untrusted | None = None
    ) -> None:
        """`made` gives what asks. `untrusted` knows who was shown what may not be believed, where that matters."""
        self._tools, self._sources, self._made = tools, sources, made
        self.untrusted = untrusted
        self._approving: Approving | None = None
        self._retired = False

    def retire(self) -> None:
        """Other rules hold from now on: whoever still waits for an answer has to call again."""
        self._retired = True
        if self._approving is not None:
            self._approving.retire()

    def demand(self, call: Call, decision: Decision) -> Demand | None:
        """Whether a human has to be asked, and by which rule. Costs next to nothing where nobody has to."""
        demand = self._by_rule(call, decision)
        if demand is None and self.untrusted is not None:
            demand = self.untrusted.demand(call)
        return None if isinstance(call.arguments, EditArguments) and call.arguments.dry_run else demand

    def _by_rule(self, call: Call, decision: Decision) -> Demand | None:
        people = decision.people
        if people is None:
            if call.op == "invoke":
                info = self._tools.tool(call.ref.path)
                if info is None or not info.asks or (info.quiet is not None and info.quiet(call.values)):
                    return None
                return Demand(1, "default", info.asks)
            if call.op in CHANGING and not self._sources.restores(call.ref):
                return Demand(1, "default", "undo could not take it back")
            return None
        return Demand(people, decision.rule, decision.why) if people else None

    async def obtain(self, call: Call, demand: Demand, look: Next, answers: bool) -> None:
        """Returns once for one approval. Raises ApprovalRequired while there is none, Forbidden where it was denied.
        By `look` the caller sees what resources are like now. `answers`: whether the person at its client may."""
        approving = self._approving
        if approving is None:
            approving = self._approving = self._made()
            if self._retired:
                approving.retire()
        await approving.obtain(call, demand, look, answers)
