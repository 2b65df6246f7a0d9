"""Resolves ids in addresses: an id becomes the name of its document before the rules are asked.

Whoever may not have what the name stands for is answered as if the id meant nothing: by the rules for the address as it
was written, and by the source, which knows no ids. So nobody finds out by an id what is hidden under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from octavo.core.arguments import Arguments, WatchArguments
from octavo.core.errors import Forbidden, NotFound, OctavoError, SourceUnavailable
from octavo.core.glob import Glob
from octavo.core.operations import VERB_OF
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Verb
from octavo.pipeline.policy.decisions import Addresses
from octavo.pipeline.policy.refusals import told
from octavo.pipeline.policy.rules import Decision


class Asks(Protocol):
    """The policy, as far as it is needed here."""

    addresses: Addresses

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool: ...
    async def judged(self, call: Call, verb: Verb, ref: Ref, call_next: Next) -> Decision: ...
    def __call__(self, call: Call, call_next: Next, by_name: bool) -> Reply: ...


def may_name_an_id(glob: Glob) -> bool:
    """Whether a pattern may speak of an entry by its id: it names single entries, or folders as ids are written."""
    return not glob.subtree or any("-" in name or "_" in name for name in glob.literal.segments)


async def ask_by_name(policy: Asks, call: Call, call_next: Next) -> Reply:
    part = call if call.parent is not None else call._replace(parent=call)  # which does not wait for a tick of its own
    for names in await _meanings(policy, call):
        # What the caller may not have is not there: neither is it meant, nor does it make an id mean nothing.
        able = [one for one in names if await _could(policy, part, one, call_next)]
        if call.ref in able or len(able) > 1:
            break
        for name in able:
            call.trail.ref = name
            try:
                named = part._replace(ref=name, arguments=_arguments(call, name))
                return await settled(policy(named, call_next, True))
            except (NotFound, Forbidden):
                call.trail.ref = None
    return await settled(policy(part, call_next, True))


async def _could(policy: Asks, call: Call, name: Ref, call_next: Next) -> bool:
    """An entry; of a collection, by the rules alone, it or something below it."""
    verb = VERB_OF[call.op]
    if not policy.addresses.collects(name):
        return (await policy.judged(call, verb, name, call_next)).allowed
    below = Glob(f"{str(name.bare).replace('*', '%2A')}/*")
    return policy.may_reach(call.principal, verb, Glob.at(name)) or policy.may_reach(call.principal, verb, below)


async def _meanings(policy: Asks, call: Call) -> Sequence[Sequence[Ref]]:
    """Where somebody may have nothing at all, nothing is looked at. Raises while the source is read for the first time:
    until its names are known, no rule that speaks of one can hold."""
    if not policy.may_reach(call.principal, VERB_OF[call.op], Glob(f"{call.ref.scheme}://*")):
        return ()
    try:
        return await policy.addresses.meanings(call.ref)
    except OctavoError as fault:
        if isinstance(fault, SourceUnavailable) and not fault.telling:
            raise told(call, fault) from None
        return ()  # the call itself will tell what is wrong with the source


def _arguments(call: Call, name: Ref) -> Arguments:
    """What is watched is told by a pattern."""
    asked = call.arguments
    return WatchArguments(asked.glob.moved(name)) if isinstance(asked, WatchArguments) else asked
