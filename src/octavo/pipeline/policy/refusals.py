"""What a caller is told when a call fails: the seeds' words, in the caller's own spelling of the address.

A source speaks of canonical addresses. If its NotFound went out as it is, a refusal that should look like
absence could be told from absence by asking with an unusual spelling.
"""

from __future__ import annotations

from typing import Any

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.operations import VERB_OF
from octavo.core.tools import unknown_prompt, unknown_tool
from octavo.core.values import FEED, Call, Verb
from octavo.pipeline.identity.fold import LOCAL
from octavo.pipeline.policy.rules import Decision

_HINT = "start the server with --as AGENT to act as an agent of the configuration"


class Refused(Exception):
    """Carries a refusal of the policy past the place where a source's errors are put into the caller's words."""

    def __init__(self, refusal: OctavoError) -> None:
        self.refusal = refusal


def refusal(call: Call, verb: Verb, decision: Decision) -> OctavoError:
    """The answer to a call that the policy does not allow."""
    if decision.hidden:
        return absent(call)
    data: dict[str, Any] = {
        "agent": call.principal.id,
        "required_permission": verb,
        "resource": decision.pattern or call.uri,
    }
    if decision.why:
        data["why"] = decision.why
    if call.principal.id == LOCAL:
        data["hint"] = _HINT
    return Forbidden(f"Access denied to resource: {call.uri}", **data)


def not_whole(call: Call) -> Forbidden:
    """By the rules alone, whatever lies in the folder: else the answer would tell what does."""
    return Forbidden(
        f"Access denied to resource: {call.uri}",
        agent=call.principal.id,
        required_permission=VERB_OF[call.op],
        resource=call.uri,
        why="rules may keep something below this folder from you, so it does not go as a whole: take one by one what "
        "you see in it",
    )


def in_the_way(call: Call) -> Conflict:
    """All that is told of what stands there to whoever may not list it."""
    return Conflict(f"Nothing was changed at {call.uri}: something is in the way", uri=call.uri)


def absent(call: Call) -> OctavoError:
    """Word for word what is told of something that does not exist, whether or not it does."""
    name = call.ref.path
    if call.op == "invoke":
        return unknown_tool(name)
    if call.ref.scheme == "prompt" and call.op in ("render", "complete"):
        return unknown_prompt(name)
    return NotFound(f"Resource not found: {call.uri}", uri=call.uri)


def told(call: Call, fault: OctavoError) -> OctavoError:
    """What a source raised, as the caller may read it. What tools, prompts and the feed raise is about other things."""
    if call.op in ("invoke", "render") or call.ref.scheme == FEED:
        return fault
    if isinstance(fault, NotFound):
        return absent(call)
    if isinstance(fault, Forbidden):
        return forbidden(call, fault)
    if isinstance(fault, SourceUnavailable):
        scheme = call.ref.scheme
        message = f"Source unavailable: {scheme}"
        why = {} if fault.message == message else {"why": fault.message}
        data = {**why, **fault.data, "source": scheme}
        return SourceUnavailable(message, retry_after=fault.retry_after, telling=fault.telling, **data)
    ours = str(call.ref)
    if isinstance(fault, TooLarge | Conflict | InvalidParams) and fault.data.get("uri") == ours != call.uri:
        message, data = fault.message.replace(ours, call.uri), {**fault.data, "uri": call.uri}
        if isinstance(fault, InvalidParams):
            return InvalidParams(message, discreet=fault.discreet.replace(ours, call.uri), **data)
        return type(fault)(message, **data)
    return fault


def forbidden(call: Call, fault: Forbidden) -> Forbidden:
    """The shape of the address, or the source, says no."""
    message = f"Access denied to resource: {call.uri}"
    data: dict[str, Any] = {
        "agent": call.principal.id,
        "required_permission": VERB_OF[call.op],
        "resource": call.uri,
    }
    if not fault.message.startswith("Access denied to resource"):
        ours = str(call.ref)
        spelled = fault.data.get("uri") == ours != call.uri  # the source spoke of it in its own spelling
        data["why"] = fault.message.replace(ours, call.uri) if spelled else fault.message
    else:
        data["hint"] = f"the source does not allow {VERB_OF[call.op]} there; lists show what you may use"
    if extension := fault.data.get("extension"):
        data["extension"] = extension
    return Forbidden(message, **data)
