"""Approval by a human: what is asked for, how it stands, and how it is shown.

An approval counts once, for one principal, for exactly these arguments, while the resources that they name are what
they were, and not for long. Whatever differs is another request, for which a human is asked anew.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from octavo.core.clock import iso
from octavo.core.forms import Answer
from octavo.core.printable import escaped, visible

MAX_VALUE = 1000  # characters of one argument that are shown
MAX_ARGUMENTS = 40

# What a client's user says: yes, no, or nothing, because the question was put away.
Verdict: TypeAlias = Literal["allow", "deny", "cancel"]
Step: TypeAlias = Literal["asked", "allowed", "denied", "used", "expired", "outdated", "cancelled"]

# Printable for Python, and seen by nobody: fillers, joiners, selectors.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_WIDE = re.compile(" {3,}")


class Wanted(Struct, frozen=True, kw_only=True):
    """What a human is asked to allow."""

    who: str
    act: str  # what would be done: `invoke tool://wipe`, `delete file://a.md`
    tool: str = ""  # of which that is a part, where it is one
    arguments: tuple[str, ...] = ()  # as they are shown: see `shown_arguments`
    rule: str  # that demands it
    why: str = ""
    people: int = 1
    request: str  # keyed digest of principal, act and exact arguments
    versions: str  # the same of the resources that they name


class Approval(Struct, frozen=True, kw_only=True):
    id: str
    wanted: Wanted
    asked: float  # seconds since 1970
    expires: float
    allowed: tuple[str, ...] = ()  # by whom
    denied: str = ""  # by whom

    @property
    def state(self) -> Literal["pending", "allowed", "denied"]:
        if self.denied:
            return "denied"
        return "allowed" if len(self.allowed) >= self.wanted.people else "pending"

    def live(self, now: float) -> bool:
        """A clock that was set back does not make it last longer."""
        return self.asked - 60 <= now < self.expires

    def shown(self) -> str:
        """For a human. Each line is one fact, and none of them holds a line end that a caller wrote."""
        wanted = self.wanted
        lines = [f"Approval {self.id}: may this be done, once?", f"who asks: {plain(wanted.who)}"]
        if wanted.tool:
            lines.append(f"tool: {plain(wanted.tool)}")
        lines.append(f"what: {plain(wanted.act)}")
        lines += (f"argument {argument}" for argument in wanted.arguments)
        lines.append(f"demanded by: {wanted.rule}" + (f", {plain(wanted.why)}" if wanted.why else ""))
        if wanted.people > 1:
            lines.append(f"people needed: {wanted.people}, so far: {', '.join(map(plain, self.allowed)) or 'nobody'}")
        lines.append(f"until: {iso(self.expires)}")
        return "\n".join(lines)


class ApprovalQuestion(NamedTuple):
    """What the client of a call is asked."""

    text: str
    state: str  # sealed; comes back with the answer to this question, and with no other
    seconds: float  # for which an answer is waited


# What a client shows. Without a default: whoever only presses Enter has allowed nothing.
CONSENT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this, once"}},
    "required": ["allow"],
}


def verdict(answer: Answer) -> Verdict | None:
    """None for an answer that is none: it is asked again."""
    if answer.action != "accept":
        return "deny" if answer.action == "decline" else "cancel"
    allow = answer.content.get("allow")
    if not isinstance(allow, bool):
        return None
    return "allow" if allow else "deny"


class Approvals(Protocol):
    """Where questions and answers are kept: one place for all processes that share it."""

    async def ask(self, wanted: Wanted, *, seconds: float) -> Approval:
        """The one that stands for this request, or a new one. Raises RateLimited for too many that wait."""
        ...

    async def answer(self, name: str, person: str, *, allow: bool) -> Approval:
        """Raises NotFound for one that is not there any more, Conflict for one that was answered."""
        ...

    async def use(self, name: str) -> bool:
        """Whether it is allowed, and by this has been used up."""
        ...

    async def cancel(self, name: str) -> None: ...


class ShownUntrusted(Protocol):
    """Which callers were shown what may not be believed: one place for all processes that share it."""

    async def note(self, who: str, seconds: float) -> None:
        """For so long from now on."""
        ...

    async def left(self, who: str, seconds: float) -> float:
        """The seconds for which it still matters, where it does for `seconds`; 0 where it does not."""
        ...


# Told of each step, once: what happened, to which, and by whom.
Told: TypeAlias = Callable[[Step, Approval, str], None]


def plain(text: str) -> str:
    """As JSON, which is exact, with everything escaped that is not seen or could be taken for a line of its own."""
    written = visible(json.dumps(text, ensure_ascii=False))
    written = _UNSEEN.sub(lambda found: escaped(found[0]), written)
    return _WIDE.sub(lambda found: " " + "\\u0020" * (len(found[0]) - 1), written)


def shown_arguments(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """One text for each argument. What is long is cut, and its digest tells it from others that begin alike."""
    lines = [f"{_cut(plain(name))}: {_cut(_value(value), value)}" for name, value in arguments.items()]
    if len(lines) > MAX_ARGUMENTS:
        more = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
        lines[MAX_ARGUMENTS:] = [f"and {len(lines) - MAX_ARGUMENTS} more, SHA-256 of all {more}"]
    return tuple(lines)


def exact(value: Any) -> Any:
    """The value as JSON can tell it: equal for equal arguments, different for all others."""
    if isinstance(value, Mapping):
        return {str(key): exact(one) for key, one in value.items()}
    if isinstance(value, bytes):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, Sequence) and not isinstance(value, str | tuple):
        return [exact(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{plain(str(key))}: {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bytes):
        return f"{len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    return json.dumps(value) if isinstance(value, int | float | bool | None) else plain(str(value))


def _cut(text: str, of: Any = None) -> str:
    if len(text) <= MAX_VALUE:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    parts = f"{len(of)} values, " if isinstance(of, list | Mapping) else ""
    return f"{text[:MAX_VALUE]}… (cut; {parts}{len(text)} characters, SHA-256 of all {digest})"
