"""Asking a house as one of its agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio

from octavo.app import Octavo
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Trail


async def ask(house: Octavo, who: str | None, op: Op, uri: str, arguments: Mapping[str, Any] = {}, **more: Any) -> Any:
    call = Call(
        op, Ref.parse(uri), house.works.identity.launched(who), Trail(), uri, arguments_of(op, arguments), **more
    )
    with anyio.fail_after(30):
        return await house.works.ask(call)


async def told(house: Octavo, who: str, uri: str) -> Any:
    return json.loads((await ask(house, who, "read", uri)).body)
