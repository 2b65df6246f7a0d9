"""Fold 7: hides secrets and personal data, for everybody alike.

It stands inside the cache, so that a secret never rests there and each version of a content is looked at once.

Text bodies, the titles, descriptions and metadata of entries, what tools and prompts made up themselves,
completions and the messages of errors are covered. Bytes are looked at as the text that they may be; images, archives
and the like pass as they are. Etag and version belong to the raw content and stay. A change is held against what is
hidden: see `unseen`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeGuard

from msgspec.structs import replace

from octavo.core.arguments import WriteArguments
from octavo.core.errors import InvalidParams, NotFound, OctavoError
from octavo.core.fair import in_thread
from octavo.core.marks import MARK
from octavo.core.operations import CHANGING, FOREIGN
from octavo.core.ports.chain import Next, Reply, settled
from octavo.core.ports.client import Channel
from octavo.core.preconditions import guarded
from octavo.core.ref import Ref
from octavo.core.sizes import KIB
from octavo.core.tools import PromptResult, ToolResult
from octavo.core.values import Call, Change, Content, Edited, Entry, News, Page, Principal
from octavo.core.version import VERSION
from octavo.pipeline.redact.channel import Telling
from octavo.pipeline.redact.edits import Unseen
from octavo.pipeline.redact.redactor import Redactor

# RE2 frees the interpreter lock while it searches (two threads on two cores: 1.9 times one), so a long text
# does not hold up the loop; for a short one the hop to a thread costs more than the search.
OFF_LOOP = 32 * KIB

_MARK = re.compile(MARK + r"|⟨U\+[0-9A-F]{4,6}(?: and \d+ more)?⟩")


class Redact:
    """Replaces secrets and personal data by `[redacted:rule:hmac8]`.

    `key` makes marks that say nothing about a secret but whether two are equal. `rules="off"` leaves out the rules
    for secrets. `personal` are groups of personal data; `sources` has further ones by scheme, or None where nothing is
    hidden, `principals` by agent or `role:…`. `extra` are `{"name", "pattern"}` in RE2 syntax, the first group or the
    whole match is replaced; `skip` names rules to leave out; what one of the `allow` patterns is found in stays.
    `invisible="keep"` leaves characters that nobody sees. `composed` names the tools that only pass on what child
    calls gave them. `chosen` are the schemes in which a caller may have chosen what is told: their marks have numbers,
    not digests.

    `version` changes with rules and settings and belongs into every cache key.
    """

    def __init__(
        self,
        key: bytes,
        *,
        rules: Literal["default", "off"] = "default",
        personal: Collection[str] = ("identity",),
        sources: Mapping[str, Collection[str] | None] | None = None,
        principals: Mapping[str, Collection[str]] | None = None,
        extra: Sequence[Mapping[str, str]] = (),
        skip: Iterable[str] = (),
        allow: Iterable[str] = (),
        invisible: Literal["mark", "keep"] = "mark",
        composed: Iterable[str] = (),
        chosen: Iterable[str] = (),
    ) -> None:
        """Raises InvalidParams for a pattern that RE2 does not take."""
        skip, allow, groups, chosen = frozenset(skip), tuple(allow), frozenset(personal), frozenset(chosen)
        self._composed = frozenset(composed)
        self._principals = {who: frozenset(further) - groups for who, further in (principals or {}).items()}
        by_source = {
            scheme: None if further is None else groups | set(further) for scheme, further in (sources or {}).items()
        }
        redactors: dict[frozenset[str] | None, Redactor] = {
            these: Redactor(
                key,
                secrets=rules == "default",
                personal=these,
                extra=extra,
                skip=skip,
                allow=allow,
                invisible=invisible == "mark",
            )
            for these in {groups, *by_source.values()}
            if these is not None
        }
        redactors[None] = Redactor(key, secrets=False, invisible=invisible == "mark")
        self._redactor = redactors[groups]
        self._redactors = {scheme: redactors[these] for scheme, these in by_source.items()}
        self._redactors |= {scheme: self.redactor(scheme).numbered for scheme in chosen}
        self._further: dict[frozenset[str], Redactor] = {}
        self._make = partial(Redactor, key, secrets=False, skip=skip, allow=allow, invisible=False)
        facts = (
            rules,
            sorted(groups),
            sorted((scheme, these and sorted(these)) for scheme, these in by_source.items()),
            [(rule["name"], rule["pattern"]) for rule in extra],
            sorted(skip),
            allow,
            invisible,
            sorted(chosen),
        )
        digest = hashlib.blake2b(repr((VERSION, facts)).encode(), digest_size=8).hexdigest()
        self.version = "off" if self._redactor.idle and not by_source else digest

    async def __call__(self, call: Call, call_next: Next) -> Reply:
        redactor = self.redactor(call.ref.scheme)
        if call.op in CHANGING:
            call_next = self._guarding(call, call_next, redactor)
        if call.op in FOREIGN and call.channel is not None:
            call = call._replace(channel=self._telling(call.channel, call.principal, redactor))
        if redactor.idle:
            return await settled(call_next(call))
        if call.op == "write":
            _refuse_marks(call.given(WriteArguments).body)
        try:
            reply = await settled(call_next(call))
        except NotFound:
            raise  # says nothing but the caller's own address
        except OctavoError as raised:
            _clean(raised, redactor.numbered)  # it may quote what was asked
            raise
        if isinstance(reply, Content):
            if len(reply.body) > OFF_LOOP or not redactor.ready:
                return await in_thread(redactor.content, reply)
            return redactor.content(reply)
        return self._other(call, reply, redactor)

    def _telling(self, channel: Channel, caller: Principal, redactor: Redactor) -> Telling:
        redactors = (redactor.numbered, self.further(caller))  # whoever calls a tool may choose what it tells
        return Telling(channel, [one for one in redactors if one is not None and not one.idle])

    def _guarding(self, call: Call, call_next: Next, redactor: Redactor) -> Next:
        """The rest of the chain, where nothing shows after a change that was hidden from its caller before."""
        further = self.further(call.principal)
        redactors = [one for one in (redactor, further) if one is not None and one.hides]
        if not redactors:
            return call_next
        unseen = Unseen(redactors)

        async def guarding(call: Call) -> Reply:
            with guarded(unseen):
                return await settled(call_next(call))

        return guarding

    def _other(self, call: Call, reply: Reply, redactor: Redactor) -> Reply:
        if _is_page(reply):
            return redactor.page(reply)
        if isinstance(reply, ToolResult):
            return reply if call.ref.path in self._composed else redactor.result(reply)
        if isinstance(reply, Entry):
            return redactor.entry(reply)
        if isinstance(reply, News):
            return redactor.news(reply)
        if isinstance(reply, Edited):
            # An edit sees the text as it is. What it reports of it is for the caller to read.
            return replace(reply, report=redactor.text(reply.report))
        if isinstance(reply, PromptResult):
            return redactor.prompt(reply)
        return redactor.offers(reply) if call.op == "complete" and isinstance(reply, Iterable) else reply

    def text(self, text: str) -> str:
        """The same object where there is nothing to hide."""
        return self._redactor.text(text)

    def seen(self, who: Principal, ref: Ref, name: str, text: str) -> str:
        """What somebody may see of a text that a tool took out of a content which is no text as a whole."""
        shown: str = self.redactor(ref.scheme).value(text, name)
        further = self.further(who)
        return shown if further is None else further.value(shown, name)

    def address(self, text: str) -> str:
        return self._redactor.address(text)

    def change(self, change: Change) -> Change:
        return self.redactor(change.ref.scheme).change(change)

    def redactor(self, scheme: str) -> Redactor:
        """What is hidden from everybody in a source."""
        return self._redactors.get(scheme, self._redactor)

    def further(self, who: Principal) -> Redactor | None:
        """What is hidden from this principal beyond what is hidden from everybody."""
        if not self._principals:
            return None
        names = (who.id, "*", *(f"role:{role}" for role in who.roles))
        groups = frozenset(group for name in names for group in self._principals.get(name, ()))
        if not groups:
            return None
        redactor = self._further.get(groups)
        if redactor is None:
            redactor = self._further[groups] = self._make(personal=groups).numbered
        return redactor


def _clean(raised: OctavoError, redactor: Redactor) -> None:
    """Takes the secrets out of what a message quotes; the address is the caller's own."""
    raised.message = redactor.text(raised.message)
    raised.args = (raised.message,)
    raised.data = {key: value if key == "uri" else redactor.value(value, key) for key, value in raised.data.items()}


def _is_page(value: object) -> TypeGuard[Page[Any]]:
    return isinstance(value, Page)


def _refuse_marks(body: str | bytes) -> None:
    """Whoever writes back what it read would put the mark where the secret was, and lose the secret."""
    mark = _MARK.search(body) if isinstance(body, str) else None
    if mark is not None:
        raise InvalidParams(
            f"The text contains {mark.group()}, which stands for a secret that you cannot see. Writing it would "
            "lose the secret: change only other parts of the file, with the tool edit"
        )
