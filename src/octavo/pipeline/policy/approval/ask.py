"""Asks a human for approval, where a rule says so or where nothing could be undone.

The person at the client is asked where the client can; else the question waits in the state directory until somebody
answers it there. The call is then made again, exactly as it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from typing import Any

from octavo.core.approval import Approval, ApprovalQuestion, Approvals, Wanted, exact, shown_arguments
from octavo.core.arguments import CopyArguments
from octavo.core.clock import Clock, SystemClock, iso
from octavo.core.errors import ApprovalRequired, Conflict, Forbidden, NotFound, OctavoError
from octavo.core.fair import acting_for
from octavo.core.ports.chain import Next
from octavo.core.ref import Ref
from octavo.core.seal import Seal
from octavo.core.tools import Tools
from octavo.core.values import Call, Principal
from octavo.pipeline.policy.approval.consent import Demand
from octavo.pipeline.policy.approval.versions import Versions


class Approving:
    def __init__(
        self,
        approvals: Approvals,
        key: bytes,
        tools: Tools,
        canonical: Callable[[Ref], Ref],
        *,
        seconds: float = 600.0,
        clients: bool = True,
        address: Callable[[str], str] = str,
        known: Callable[[Principal], object] = lambda principal: None,
        clock: Clock | None = None,
    ) -> None:
        """`seconds` is how long a question stands, and an answer. `clients`: whether the person at a client may answer.
        `address` makes a URI of what a tool may have been given as a path. `known` raises for a principal that may ask
        no more."""
        self._approvals, self._key, self._seal = approvals, key, Seal(key)
        self._tools = tools
        self._canonical = canonical
        self._versions = Versions(canonical, address)
        self._seconds, self._clients, self._known = seconds, clients, known
        self._retired = False
        self._wall = (clock or SystemClock()).wall

    def retire(self) -> None:
        """Other rules hold from now on: whoever still waits for an answer has to call again."""
        self._retired = True

    async def obtain(self, call: Call, demand: Demand, look: Next, answers: bool = True) -> None:
        """See `Consent`."""
        if not self._covered(call, demand):
            with acting_for(call.principal.id):
                await self._obtained(call, demand, look, answers)

    async def _obtained(self, call: Call, demand: Demand, look: Next, answers: bool) -> None:
        if call.op == "invoke":
            await self._tools.rehearse(call, look)  # nobody is asked about what could not be done
        root = _root(call)
        while True:
            wanted = self._wanted(call, root, demand, self._digest(await self._versions(call, look)))
            approval = await self._approvals.ask(wanted, seconds=self._seconds)
            if approval.state == "pending":
                if answers and self._clients:
                    approval = await self._asked(approval, root)
                self._known(call.principal)  # it may have taken minutes
                if self._retired:
                    raise Conflict("The configuration has changed meanwhile; call again", uri=call.uri)
                if approval.state == "pending":
                    raise _pending(approval)
                if approval.state == "allowed":
                    continue  # and so may what it is about have changed
            if approval.state == "denied":
                raise Forbidden(
                    f"A human has refused this: {approval.denied}; asking again changes nothing for a while",
                    agent=call.principal.id,
                    resource=call.uri,
                    approval=approval.id,
                )
            if await self._approvals.use(approval.id):
                call.trail.approved = len(approval.allowed)
                return

    def _covered(self, call: Call, demand: Demand) -> bool:
        """Who has allowed a call of a tool has allowed what it does."""
        above = call.parent
        while above is not None:
            if above.trail.approved >= demand.people:
                return True
            if above.trail.approved:
                raise Forbidden(
                    f"{demand.people} people have to allow this, and fewer allowed {above.uri} of which it is a part; "
                    f"an operator can write approve: {{by: {demand.people}}} for that",
                    agent=call.principal.id,
                    resource=call.uri,
                )
            above = above.parent
        return False

    async def _asked(self, approval: Approval, root: Call) -> Approval:
        """The same, with the answer of the person at the client, where he can be asked and was not yet."""
        channel = root.channel
        person = f"the user of {root.principal.id}"
        if channel is None or person in approval.allowed:
            return approval
        state = self._seal.seal(approval.id.encode(), f"approval\0{approval.wanted.request}")
        left = max(0.0, approval.expires - self._wall())
        try:
            async with asyncio.timeout(left):
                verdict = await channel.approve(ApprovalQuestion(approval.shown(), state, left))
        except TimeoutError:
            raise Forbidden(
                "No human has answered in time; call again to ask again", resource=root.uri, approval=approval.id
            ) from None
        if verdict is None:
            return approval
        if verdict == "cancel":
            await self._approvals.cancel(approval.id)
            raise Forbidden(
                "No human has allowed this: the question was put away", resource=root.uri, approval=approval.id
            )
        try:
            return await self._approvals.answer(approval.id, person, allow=verdict == "allow")
        except (Conflict, NotFound):  # somebody else was faster, or it is too late: it stands as it stands
            return await self._approvals.ask(approval.wanted, seconds=self._seconds)

    def _wanted(self, call: Call, root: Call, demand: Demand, versions: str) -> Wanted:
        part = call is not root
        asked = call.arguments
        where = str(self._as_written(call))
        if isinstance(asked, CopyArguments):
            where += f" to {asked.written or asked.to}"
        return Wanted(
            who=call.principal.id,
            act=f"{call.op} {where}",
            tool=str(root.ref) if part else "",
            arguments=shown_arguments(root.arguments.told()),
            rule=demand.rule,
            why=demand.why,
            people=demand.people,
            request=self._digest([call.principal.id, *_chain(call)]),
            versions=versions,
        )

    def _as_written(self, call: Call) -> Ref:
        """For a human: the address as the caller spelled it, where it is no more than a spelling of what is judged."""
        try:
            written = Ref.parse(call.uri)
            return written if self._canonical(written) == call.ref else call.ref
        except OctavoError:  # an undo of everything names no address
            return call.ref

    def _digest(self, value: Any) -> str:
        text = json.dumps(value, sort_keys=True).encode()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()


def _pending(approval: Approval) -> ApprovalRequired:
    so_far = f" ({len(approval.allowed)} of {approval.wanted.people} have)" if approval.allowed else ""
    return ApprovalRequired(
        f"Approval {approval.id} is pending: a human has to allow this{so_far}. Wait for it, then call again with "
        "exactly the same arguments",
        approval=approval.id,
        expires=iso(approval.expires),
    )


def _root(call: Call) -> Call:
    while call.parent is not None:
        call = call.parent
    return call


def _chain(call: Call) -> Iterator[Any]:
    """The call and those that it is a part of, each with its exact arguments."""
    step: Call | None = call
    while step is not None:
        told = {name: exact(value) for name, value in step.arguments.told().items()}
        yield [step.op, str(step.ref), step.uri, told]
        step = step.parent
