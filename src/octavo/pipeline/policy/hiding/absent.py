"""Makes a hidden address cost the same work as one that does not exist, by asking for one that does not. `delays`
hides what still differs.

Nobody hears what is told of that, it is in no record, and no human is asked about it. In place of a change it is looked
at: if there is such a thing after all, nothing happens to it.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b32encode
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Protocol

from octavo.core.arguments import PLAIN
from octavo.core.errors import NotFound, OctavoError, RateLimited, SourceUnavailable, Timeout
from octavo.core.operations import CHANGING, VERB_OF
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Principal, Trail, Verb
from octavo.pipeline.policy.refusals import Refused
from octavo.pipeline.policy.rules import Decision

_KEY = os.urandom(16)  # nobody can make what stands beside a name


class HidingPolicy(Protocol):
    """The policy, as far as it is needed here."""

    def decide(self, principal: Principal, verb: Verb, ref: Ref) -> Decision: ...
    def at_best(self, principal: Principal, verb: Verb, ref: Ref) -> Decision: ...


async def as_if_absent(policy: HidingPolicy, call: Call, call_next: Next, refused: OctavoError) -> Reply:
    """Raises `refused`, in the time of what is not there."""
    await look_beside(policy, call, call_next)
    raise Refused(refused)


async def look_beside(policy: HidingPolicy, call: Call, call_next: Next, *ops: Op) -> None:
    """Asks what the call asks, or for these operations one after the other, of something that is not there."""
    if not call.ref.segments:
        return  # all that there is has no neighbour
    ref = beside(policy, call)
    for op in ops or ("stat" if call.op in CHANGING else call.op,):
        arguments = call.arguments if op == call.op else PLAIN
        with unheard(call, ref):
            await settled(call_next(call._replace(op=op, ref=ref, arguments=arguments, trail=Trail())))


async def ask_beside(policy: HidingPolicy, call: Call, call_next: Next) -> None:
    """Raises what a source says against the call whatever is there."""
    ref = beside(policy, call)
    try:
        await settled(call_next(call._replace(ref=ref, trail=Trail())))
    except NotFound:
        pass
    except OctavoError as fault:
        raise _told_of(call.ref, ref, fault) from None


@contextmanager
def unheard(call: Call, other: Ref) -> Iterator[None]:
    """What is told of the other thing nobody hears; but a source that does not answer does so for all that is there."""
    try:
        yield
    except RateLimited:
        raise
    except (SourceUnavailable, Timeout) as down:
        raise _told_of(call.ref, other, down) from None
    except OctavoError:
        pass


def _told_of(ref: Ref, other: Ref, fault: OctavoError) -> OctavoError:
    theirs, ours = str(other), str(ref)
    told = copy(fault)
    told.message = fault.message.replace(theirs, ours)
    told.data = {key: ours if value == theirs else value for key, value in fault.data.items()}
    return told


def beside(policy: HidingPolicy, call: Call) -> Ref:
    """The address of the call with another name in it, where what the caller may see ends. It is always the same for
    the same name: what is remembered of something that is not there is remembered of this too."""
    ref, verb = call.ref, VERB_OF[call.op]
    above = (ref.place._replace(segments=ref.segments[:length]) for length in range(1, len(ref.segments)))
    hidden = [policy.at_best(call.principal, verb, one).hidden for one in above]
    place = hidden.index(True) if True in hidden else len(ref.segments) - 1
    names = [_other(name) if number == place else name for number, name in enumerate(ref.segments)]
    return ref._replace(segments=tuple(names))


def _other(name: str) -> str:
    """As long, and of the same kind."""
    stem, dot, suffix = name.rpartition(".") if "." in name else (name, "", "")
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=50, key=_KEY).digest()
    letters = b32encode(digest).decode().lower()
    return (letters * (len(stem) // len(letters) + 1))[: len(stem)] + dot + suffix
