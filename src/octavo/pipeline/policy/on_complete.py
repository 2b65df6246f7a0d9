"""The policy for completions and templates: only names that the caller may know are offered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import quote

from msgspec.structs import replace

from octavo.core.arguments import CompleteArguments
from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.glob import Glob
from octavo.core.near_names import meant
from octavo.core.ports.chain import Next, Reply, settled, several
from octavo.core.ref import Ref
from octavo.core.values import Call, Entry, Principal, Suggestion, Template, Verb
from octavo.pipeline.policy.refusals import absent
from octavo.pipeline.policy.rules import CLOSED, Decision

ENOUGH: Final = 101  # values, one more than a client is told: so it learns that there are more
PARTS: Final = 20  # of what a source suggests that are looked at for them: what is hidden may fill some
_VARIABLE = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_.]*)\}")
_QUERY = re.compile(r"\{[?&]([^{}]*)\}")


class CompletionPolicy(Protocol):
    """The policy, as far as it is needed here."""

    def at_best(self, principal: Principal, verb: Verb, ref: Ref) -> Decision: ...
    async def judged(
        self, call: Call, verb: Verb, ref: Ref, call_next: Next, entry: Entry | None = None
    ) -> Decision: ...
    def shows(self, principal: Principal, entry: Entry) -> bool: ...
    def may_reach(self, principal: Principal, verb: Verb, glob: Glob) -> bool: ...


class Completing:
    """`canonical` raises for addresses that no source serves, or that lie outside."""

    def __init__(
        self,
        judge: CompletionPolicy,
        templates: Callable[[], Sequence[Template]],
        canonical: Callable[[Ref], Ref],
        *,
        ruled: bool,
    ) -> None:
        self._judge, self._templates, self._canonical, self._ruled = judge, templates, canonical, ruled

    def offers(self, principal: Principal, template: Template) -> bool:
        """A template is seen by whoever may list something that it could stand for."""
        try:
            return self._judge.may_reach(principal, "list", below(template.uri_template))
        except OctavoError:
            return False

    async def templates(self, call: Call, call_next: Next) -> list[Template]:
        return [
            offered
            for offered in several(await settled(call_next(call)), Template)
            if self.offers(call.principal, offered)
        ]

    async def complete(self, call: Call, call_next: Next) -> list[str]:
        """What names something that the caller may list, and that nothing forbids to complete."""
        if call.ref.scheme == "prompt":
            return await self._of_prompt(call, call_next)
        call = self._of_template(call)
        said = self._choices(call)
        if said:
            return [value for value in said if value.startswith(call.given(CompleteArguments).prefix)]
        found = [*_found(await settled(call_next(call)))]
        values = [one for one in found if isinstance(one, str)]
        if not values:
            return await self._suggested(call, call_next, [one for one in found if isinstance(one, Suggestion)])
        return await self._named(call, call_next, values) if self._ruled else values

    async def _suggested(self, call: Call, call_next: Next, part: Sequence[Suggestion]) -> list[str]:
        """Values of entries that the caller may list. A part in which too few are is followed by the next one, or what
        is hidden would show by crowding out what is not."""
        values: set[str] = set()
        for number in range(PARTS):
            values.update([one.value for one in part if await self._suggests(call, call_next, one.entry)])
            if not part or len(values) >= ENOUGH or number == PARTS - 1:
                break
            further = call._replace(arguments=replace(call.given(CompleteArguments), after=part[-1]))
            part = [one for one in _found(await settled(call_next(further))) if isinstance(one, Suggestion)]
        return sorted(values)

    def _of_template(self, call: Call) -> Call:
        """The call with the template as its source writes it: without its query it means the same. Raises
        InvalidParams for one that the caller does not see, and for a variable that it has not."""
        given = call.given(CompleteArguments)
        asked, argument = given.template, given.argument
        if asked is None:
            return call
        scheme = call.ref.scheme
        mine = [one for one in self._templates() if one.uri_template.startswith(f"{scheme}://")]
        known = [f"{scheme}://{{+path}}", *(one.uri_template for one in mine if self.offers(call.principal, one))]
        found = [one for one in known if one == asked] or [one for one in known if _path_of(one) == _path_of(asked)]
        if not found:
            raise InvalidParams(
                f"Unknown template: {asked[:200]}; resources/templates/list shows those that you may use",
                reason="unknown_template",
            )
        names = {name for one in found for name in names_in(one)}
        if argument not in names:
            raise InvalidParams(f"Unknown variable of {asked[:200]}: {argument[:80]!r}; {meant(argument, names)}")
        fitting = next(one for one in found if argument in names_in(one))
        return call._replace(arguments=replace(given, template=fitting))

    async def _of_prompt(self, call: Call, call_next: Next) -> list[str]:
        decision = self._judge.at_best(call.principal, "render", call.ref)
        call.trail.rule = decision.rule
        if decision.hidden:
            raise absent(call)
        if not decision.allowed or _forbidden(self._judge.at_best(call.principal, "complete", call.ref)):
            return []
        return list(several(await settled(call_next(call)), str))

    async def _suggests(self, call: Call, call_next: Next, entry: Entry) -> bool:
        if not self._judge.shows(call.principal, entry):
            return False
        return not _forbidden(await self._judge.judged(call, "complete", self._canonical(entry.ref), call_next, entry))

    async def _named(self, call: Call, call_next: Next, values: Sequence[str]) -> list[str]:
        """A source completes a variable for all its templates at once, so a value has to be visible in each of them;
        and only in them, or a caller could have hidden names judged by a template of its own."""
        scheme, asked = call.ref.scheme, call.given(CompleteArguments)
        general = f"{scheme}://{{+path}}"
        known = {general, *(offered.uri_template for offered in self._templates())}
        mine = [t for t in known if t.startswith(f"{scheme}://") and asked.argument in variables(t)]
        if (asked.template or general) not in mine:
            return []
        there: list[str] = []
        for value in values:
            for template in mine:
                if not await self._knows(call, call_next, expand(template, {**asked.given, asked.argument: value})):
                    break
            else:
                there.append(value)
        return there

    async def _knows(self, call: Call, call_next: Next, uri: str) -> bool:
        try:
            if uri.endswith("/") or "{" in uri:
                return self._judge.may_reach(call.principal, "list", below(uri))
            ref = self._canonical(Ref.parse(uri))
        except OctavoError:
            return False
        if not (await self._judge.judged(call, "list", ref, call_next)).allowed:
            return False
        return not _forbidden(await self._judge.judged(call, "complete", ref, call_next))

    def _choices(self, call: Call) -> Sequence[str]:
        """Of a template that the caller may see."""
        asked = call.given(CompleteArguments)
        offered = next((one for one in self._templates() if one.uri_template == asked.template), None)
        return choices(offered, asked.argument) if offered and self.offers(call.principal, offered) else ()


def _found(reply: Reply) -> Iterable[str | Suggestion]:
    """What a source suggests: it may be made while it is looked at."""
    if isinstance(reply, Iterable):
        return reply
    raise TypeError(f"suggestions were expected, not {type(reply).__name__}")


def _path_of(template: str) -> str:
    return template.partition("{?")[0].replace("{+", "{")


def _forbidden(decision: Decision) -> bool:
    """By a rule. Completing needs no grant of its own beside that of the names."""
    return not decision.allowed and decision is not CLOSED


def variables(template: str) -> frozenset[str]:
    return frozenset(name for _, name in _VARIABLE.findall(template))


def names_in(template: str) -> frozenset[str]:
    """All that can be filled in, also in its query."""
    return variables(template).union(name for names in _QUERY.findall(template) for name in names.split(","))


def choices(offered: Template, argument: str) -> Sequence[str]:
    """What a parameter of the query can be, where the template itself says so. Those are words, not names."""
    if not any(argument in names.split(",") for names in _QUERY.findall(offered.uri_template)):
        return ()
    schema: object = offered.parameters
    for key in ("properties", argument, "enum"):
        schema = schema.get(key) if isinstance(schema, Mapping) else None
    return [one for one in schema if isinstance(one, str)] if isinstance(schema, list | tuple) else ()


def expand(template: str, values: Mapping[str, str]) -> str:
    """As RFC 6570 says: values are data, so what means something in an address is encoded. Variables
    without a value stay; a query is left out."""

    def filled(found: re.Match[str]) -> str:
        many, name = found.groups()
        return quote(values[name], safe="/" if many else "") if name in values else found[0]

    return _VARIABLE.sub(filled, _QUERY.sub("", template))


def below(unfinished: str) -> Glob:
    """Everything under the fixed folders of a template or of a half-written address."""
    return Glob(unfinished.partition("{")[0].rpartition("/")[0] + "/*")
