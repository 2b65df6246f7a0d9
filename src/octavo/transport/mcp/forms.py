"""Putting a form to the person at the client, in the way of each era.

In the modern era the request is answered with the form, and comes again with what was filled in; a handshake-era client
is asked while its request waits.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from octavo.core.errors import InputRequired
from octavo.core.forms import Answer, Form
from octavo.transport.mcp import wire_names

TRIES = 3  # of a user who is asked while his request waits
_PREFIX = "ask-"

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


def shows_forms(ctx: Context) -> bool:
    declared = ctx.session.client_capabilities
    able = None if declared is None else declared.elicitation
    if able is None or (able.form is None and able.url is not None):  # `{}` means forms
        return False
    return ctx.protocol_version == wire_names.MODERN or ctx.session.can_send_request


async def ask(ctx: Context, params: Any, form: Form) -> Answer | None:
    """See `core.ports.Channel`."""
    if not shows_forms(ctx):
        return None
    if ctx.protocol_version == wire_names.MODERN:
        return _brought(params, form)
    return await shown(ctx, form, form.taken)


async def shown(ctx: Context, form: Form, taken: Callable[[Answer], Answer | None]) -> Answer | None:
    """What the user of a handshake-era client says. None for a client that cannot ask him after all; whoever gives
    nothing that fits, again and again, has put the question away."""
    for _ in range(TRIES):
        try:
            said = await ctx.session.elicit_form(form.text, dict(form.schema), related_request_id=ctx.request_id)
        except (MCPError, ValidationError) as error:
            logger.warning("a client that shows forms has not shown one: %s", type(error).__name__)
            return None
        answer = taken(Answer(said.action, said.content or {}))
        if answer is not None:
            return answer
    return Answer("cancel")


def elicitation(form: Form) -> dict[str, Any]:
    params = {"mode": "form", "message": form.text, "requestedSchema": dict(form.schema)}
    return {"method": "elicitation/create", "params": params}


def input_required(asked: InputRequired) -> types.InputRequiredResult:
    assert asked.form is not None
    shown = types.ElicitRequestFormParams(message=asked.form.text, requested_schema=dict(asked.form.schema))
    return types.InputRequiredResult(
        input_requests={asked.key: types.ElicitRequest(params=shown)}, request_state=asked.state
    )


def _brought(params: Any, form: Form) -> Answer:
    """The answer that came with the request. Raises InputRequired, with earlier ones, where there is none."""
    key = f"{_PREFIX}{hashlib.sha256(msgspec.json.encode(form, order='sorted')).hexdigest()[:16]}"
    answers = _before(params)
    for name, said in (getattr(params, "input_responses", None) or {}).items():
        if name.startswith(_PREFIX) and isinstance(said, types.ElicitResult):
            answers[name] = Answer(said.action, said.content or {})
    if key in answers and (taken := form.taken(answers[key])) is not None:
        return taken
    answers.pop(key, None)
    state = msgspec.json.encode(answers).decode()
    raise InputRequired("A person has to answer a question first", form=form, key=key, state=state)


def _before(params: Any) -> dict[str, Answer]:
    """The state was sealed on its way out and checked on its way in: here are our own words, or those of another."""
    try:
        return msgspec.json.decode(getattr(params, "request_state", None) or "{}", type=dict[str, Answer])
    except msgspec.MsgspecError:
        return {}
