"""What each listener is told of a change in the feed: redacted, masked, and only if the policy allows it.

The same for subscriptions of clients, for `octavo watch` and for what comes: hidden first from everybody, then from
this one, and told as far as the policy lets it be told now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from octavo.core.glob import Glob
from octavo.core.glob_index import GlobIndex
from octavo.core.ports.server import Composition
from octavo.core.ref import Ref
from octavo.core.values import Change, Entry, Principal, Verb, shown

T = TypeVar("T")
Wanted: TypeAlias = Callable[[Ref, Entry | None], bool]


class Delivery:
    """One change, redacted once for all who hear of it."""

    def __init__(self, composition: Composition, change: Change) -> None:
        self._composition, self._change = composition, composition.redacted(change)

    @property
    def kind(self) -> str:
        """As lists know it; `updated` where they give what they gave before."""
        listed = self._change.listed
        return "updated" if listed is None else listed.kind

    def covering(self, globs: Mapping[str, Glob], ref: Ref, listed: Ref) -> dict[str, Glob]:
        """Those patterns, by their texts, that cover an address of the change; `listed` is it as lists give it. Of what
        lists give as before hears only who asked for the address that has come to mean something else."""
        if listed in self._change.unmoved:
            globs = {} if ref.params else {text: one for text, one in globs.items() if one.exact and one.matches(ref)}
        known = spellings(self._composition, ref, listed) if globs else ()
        if _is_hidden(ref, listed):
            globs = {text: one for text, one in globs.items() if not (one.exact and one.matches(ref))}
        return {text: one for text, one in globs.items() if any(map(one.matches, known))}

    def among(self, index: GlobIndex[T], ref: Ref, listed: Ref) -> Iterable[T]:
        """What stands in the index under those patterns that `covering` would give."""
        if listed in self._change.unmoved:
            return () if ref.params else index.exactly(ref)
        found = index.matching(spellings(self._composition, ref, listed))
        if not _is_hidden(ref, listed):
            return found
        others = {*index.exactly(ref)}
        return (one for one in found if one not in others)

    def places(self) -> Sequence[tuple[Ref, Ref]]:
        """The addresses at which somebody may hear of the change, each with that which lists give."""
        looked_at: list[tuple[Ref, Ref]] = []

        def hears(ref: Ref, entry: Entry | None) -> bool:
            looked_at.append((ref, shown(ref, entry)))
            return False

        self._change.part(hears)
        return looked_at

    def told(self, who: Principal, verb: Verb = "watch", wanted: Wanted | None = None) -> Change | None:
        """What somebody is told, of what is wanted of it, or of what lists say of it; None: nothing."""
        change = self._composition.veiled(self._change, who)
        part = change.listed if wanted is None else change.part(wanted)
        return None if part is None else self._composition.policy.told(who, verb, part)


def _is_hidden(ref: Ref, listed: Ref) -> bool:
    """Whether the address without a root is that of another file, in an earlier root. Patterns over many cover both, as
    lists below them do."""
    return listed.absolute and bool(ref.params)


def spellings(composition: Composition, ref: Ref, listed: Ref) -> Sequence[Ref]:
    """The addresses by which somebody may have asked for what stands there; `listed` is that which lists give."""
    return (ref, listed if listed.absolute else composition.spelled(ref), *composition.called(ref).free)
