"""Putting a question to the person at the client, in the way of each era.

In the modern era the request is answered with the question, and comes again with the answer; a handshake-era client is
asked while its request waits.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from octavo.core.approval import Question, Verdict
from octavo.core.errors import ApprovalRequired
from octavo.transport.mcp import keys

KEY = "approval"  # of the question among those of one result
_FIELD = "allow"
# Without a default: whoever only presses Enter has allowed nothing.
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {_FIELD: {"type": "boolean", "title": "Allow this, once"}},
    "required": [_FIELD],
}


async def approve(ctx: ServerRequestContext[Any, Any], params: Any, question: Question) -> Verdict | None:
    """See `core.ports.Channel`."""
    if not _shows_forms(ctx):
        return None
    if ctx.protocol_version == keys.MODERN:
        said = _said(params) if getattr(params, "request_state", None) == question.state else None
        if said is None:
            raise ApprovalRequired("A human has to allow this first", question=question)
        return said
    if not ctx.session.can_send_request:
        return None
    while True:
        answer = await ctx.session.elicit_form(question.text, _FORM, related_request_id=ctx.request_id)
        said = _verdict(answer)
        if said is not None:
            return said


def input_required(question: Question) -> types.InputRequiredResult:
    asked = types.ElicitRequest(params=types.ElicitRequestFormParams(message=question.text, requested_schema=_FORM))
    return types.InputRequiredResult(input_requests={KEY: asked}, request_state=question.state)


def _shows_forms(ctx: ServerRequestContext[Any, Any]) -> bool:
    declared = ctx.session.client_capabilities
    able = None if declared is None else declared.elicitation
    return able is not None and (able.form is not None or able.url is None)  # `{}` means forms


def _said(params: Any) -> Verdict | None:
    answer = (getattr(params, "input_responses", None) or {}).get(KEY)
    return _verdict(answer) if isinstance(answer, types.ElicitResult) else None


def _verdict(answer: types.ElicitResult) -> Verdict | None:
    """None for an answer that is none: it is asked again."""
    if answer.action != "accept":
        return "deny" if answer.action == "decline" else "cancel"
    allow = (answer.content or {}).get(_FIELD)
    if not isinstance(allow, bool):
        return None
    return "allow" if allow else "deny"
