"""From the change feed to whoever listens: what each of them is told of a change.

The same for subscriptions of clients, for `octavo watch` and for what comes: hidden first from everybody, then from
this one, and told as far as the policy lets it be told now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from octavo.core.house import Works
from octavo.core.model import Change, Entry, Principal, Verb
from octavo.core.ref import Ref

Wanted: TypeAlias = Callable[[Ref, Entry | None], bool]


class Delivery:
    """One change, redacted once for all who hear of it."""

    def __init__(self, works: Works, change: Change) -> None:
        self._works, self._change = works, works.redacted(change)

    @property
    def kind(self) -> str:
        return self._change.kind

    def told(self, who: Principal, verb: Verb = "watch", wanted: Wanted | None = None) -> Change | None:
        """What somebody is told, of what is wanted of it; None: nothing."""
        change = self._works.veiled(self._change, who)
        part = change if wanted is None else change.part(wanted)
        return None if part is None else self._works.policy.told(who, verb, part)


def spellings(works: Works, ref: Ref, listed: Ref) -> Sequence[Ref]:
    """The addresses by which somebody may have asked for what stands there; `listed` is that which lists give."""
    return (ref, listed if listed.absolute else works.spelled(ref), *works.called(ref).free)
