"""Putting a form to the person at the client, in the way of each era.

In the modern era the request is answered with the form, and comes again with what was filled in; a handshake-era client
is asked while its request waits.
"""

from __future__ import annotations

import hashlib
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext

from octavo.core.asking import Answer, Form
from octavo.core.errors import InputRequired
from octavo.transport.mcp import keys

_PREFIX = "ask-"

Context = ServerRequestContext[Any, Any]


def shows_forms(ctx: Context) -> bool:
    declared = ctx.session.client_capabilities
    able = None if declared is None else declared.elicitation
    if able is None or (able.form is None and able.url is not None):  # `{}` means forms
        return False
    return ctx.protocol_version == keys.MODERN or ctx.session.can_send_request


async def ask(ctx: Context, params: Any, form: Form) -> Answer | None:
    """See `core.ports.Channel`."""
    if not shows_forms(ctx):
        return None
    if ctx.protocol_version == keys.MODERN:
        return _brought(params, form)
    while True:
        said = await ctx.session.elicit_form(form.text, dict(form.schema), related_request_id=ctx.request_id)
        answer = Answer(said.action, said.content or {})
        if form.fits(answer):
            return answer


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
    if key in answers and form.fits(answers[key]):
        return answers[key]
    answers.pop(key, None)
    state = msgspec.json.encode(answers).decode()
    raise InputRequired("A person has to answer a question first", form=form, key=key, state=state)


def _before(params: Any) -> dict[str, Answer]:
    """The state was sealed on its way out and checked on its way in: here are our own words, or those of another."""
    try:
        return msgspec.json.decode(getattr(params, "request_state", None) or "{}", type=dict[str, Answer])
    except msgspec.MsgspecError:
        return {}
