"""An id in an address is a spelling: it becomes the name before the rules are asked.

Whoever may not have what the name stands for is answered as if the id meant nothing: by the rules for the address as it
was written, and by the source, which knows no ids. So nobody finds out by an id what is hidden under its name.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from octavo.core.errors import Forbidden, NotFound, OctavoError
from octavo.core.glob import Glob
from octavo.core.model import VERB_OF, Call, Op, Principal, Verb
from octavo.core.ports import Next, Reply, settled
from octavo.core.ref import Ref
from octavo.pipeline.decisions import Addresses

NAMED: Final[frozenset[Op]] = frozenset(("read", "stat", "list", "search", "folders", "directory", "watch", "changes"))


class Asks(Protocol):
    """The policy, as far as it is needed here."""

    addresses: Addresses

    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool: ...
    def __call__(self, call: Call, call_next: Next, by_name: bool) -> Reply: ...


def may_name_an_id(glob: Glob) -> bool:
    """Whether a pattern may speak of an entry by its id: it names single entries, or folders as ids are written."""
    return not glob.subtree or any("-" in name or "_" in name for name in glob.literal.segments)


async def ask_by_name(policy: Asks, call: Call, call_next: Next) -> Reply:
    part = call if call.parent is not None else call._replace(parent=call)  # which does not wait for a tick of its own
    name = await _name(policy, call)
    if name != call.ref and _could(policy, call, name):
        named = part._replace(ref=name, arguments=_arguments(call, name))
        call.trail.ref = name
        try:
            return await settled(policy(named, call_next, True))
        except (NotFound, Forbidden):
            call.trail.ref = None
    return await settled(policy(part, call_next, True))


def _could(policy: Asks, call: Call, name: Ref) -> bool:
    """By the rules alone: it, or something below it."""
    verb = VERB_OF[call.op]
    below = Glob(f"{str(name.bare).replace('*', '%2A')}/*")
    return policy.may_reach(call.principal, verb, Glob.at(name)) or policy.may_reach(call.principal, verb, below)


async def _name(policy: Asks, call: Call) -> Ref:
    """Where somebody may have nothing at all, nothing is looked at."""
    if not policy.may_reach(call.principal, VERB_OF[call.op], Glob(f"{call.ref.scheme}://*")):
        return call.ref
    try:
        return await policy.addresses.name(call.ref)
    except OctavoError:
        return call.ref  # the call itself will tell what is wrong with the source


def _arguments(call: Call, name: Ref) -> Any:
    """What is watched is told by a pattern."""
    glob: Glob | None = call.arguments.get("glob")
    if call.op != "watch" or glob is None:
        return call.arguments
    return {**call.arguments, "glob": glob.moved(name)}
