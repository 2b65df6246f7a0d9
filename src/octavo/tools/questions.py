"""Asking a person on behalf of a tool: at the client, or where somebody looks at what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from octavo.core.clock import iso
from octavo.core.errors import InputRequired
from octavo.core.forms import Answer, Form, Questions, form
from octavo.core.ports.client import Channel
from octavo.core.seal import Seal
from octavo.core.values import Call

SECONDS: Final = 3600.0  # that a question waits for somebody
_LOOK: Final = 1.0  # seconds between two looks whether somebody has answered
_NO_FIELDS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}

Where = Callable[[], Questions] | None


async def ask(
    call: Call, question: str, schema: Mapping[str, Any], where: Where, seal: Seal, shown: Callable[[Any], Any]
) -> Answer:
    """`shown` is what may be kept of a text: who looks at what waits sees no more than the client would."""
    wanted = form(question, schema)
    channel = _channel(call)
    answer = None if channel is None else await channel.ask(wanted)
    return answer if answer is not None else await _elsewhere(call, wanted, where, seal, shown, channel)


async def notify(call: Call, message: str, where: Where, seal: Seal, shown: Callable[[Any], Any]) -> Answer | None:
    notice = form(message, _NO_FIELDS)
    channel = _channel(call)
    answer = None if channel is None else await channel.ask(notice)
    if answer is None and where is not None:
        await where().ask(call.principal.id, *_facts(call, notice, seal, shown), seconds=SECONDS)
    return answer


async def _elsewhere(
    call: Call, wanted: Form, where: Where, seal: Seal, shown: Callable[[Any], Any], channel: Channel | None
) -> Answer:
    if where is None:
        raise InputRequired("Nobody can be asked here: the client shows no forms")
    questions, facts = where(), _facts(call, wanted, seal, shown)
    while True:
        answer = await questions.take(facts[2])
        if answer is not None:
            return answer
        asked = await questions.ask(call.principal.id, *facts, seconds=SECONDS)
        if channel is None or not channel.waits:
            raise InputRequired(
                f"Question {asked.id} waits for somebody who answers it by `octavo questions answer {asked.id}`. Wait "
                "for that, then call again with exactly the same arguments",
                question=asked.id,
                expires=iso(asked.expires),
            )
        await asyncio.sleep(_LOOK)


def _facts(call: Call, wanted: Form, seal: Seal, shown: Callable[[Any], Any]) -> tuple[str, Form, str]:
    """The tool, the question as it is kept, and a digest of all that makes the request what it is."""
    asked = [call.principal.id, str(call.ref), call.values, wanted.text, wanted.schema]
    text = json.dumps(asked, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    return call.ref.path, wanted.told(shown), seal.digest(text)


def _channel(call: Call) -> Channel | None:
    while call.channel is None and call.parent is not None:
        call = call.parent
    channel: Channel | None = call.channel
    return channel
