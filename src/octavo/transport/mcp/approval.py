"""Putting a question to the person at the client, in the way of each era.

In the modern era the request is answered with the question, and comes again with the answer; a handshake-era client is
asked while its request waits.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from octavo.core.approval import CONSENT, ApprovalQuestion, Verdict, verdict
from octavo.core.errors import ApprovalRequired
from octavo.core.forms import Answer, Form
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.forms import shown, shows_forms

KEY = "approval"  # of the question among those of one result


async def approve(ctx: ServerRequestContext[Any, Any], params: Any, question: ApprovalQuestion) -> Verdict | None:
    """See `core.ports.Channel`."""
    if not shows_forms(ctx):
        return None
    if ctx.protocol_version == wire_names.MODERN:
        said = _said(params) if getattr(params, "request_state", None) == question.state else None
        if said is None:
            raise ApprovalRequired("A human has to allow this first", question=question)
        return said
    answer = await shown(ctx, Form(question.text, CONSENT), lambda given: given if verdict(given) else None)
    return None if answer is None else verdict(answer)


def input_required(question: ApprovalQuestion) -> types.InputRequiredResult:
    shown = types.ElicitRequestFormParams(message=question.text, requested_schema=dict(CONSENT))
    asked = types.ElicitRequest(params=shown)
    return types.InputRequiredResult(input_requests={KEY: asked}, request_state=question.state)


def _said(params: Any) -> Verdict | None:
    answer = (getattr(params, "input_responses", None) or {}).get(KEY)
    return verdict(Answer(answer.action, answer.content or {})) if isinstance(answer, types.ElicitResult) else None
