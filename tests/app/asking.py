"""Asking a house as one of its agents."""

from __future__ import annotations

import json
from typing import Any

import anyio

from octavo.app import Octavo
from octavo.core.model import Call, Op, Trail
from octavo.core.ref import Ref


async def ask(house: Octavo, who: str, op: Op, uri: str, **more: Any) -> Any:
    call = Call(op, Ref.parse(uri), house.works.identity.launched(who), Trail(), uri, **more)
    with anyio.fail_after(30):
        return await house.works.ask(call)


async def told(house: Octavo, who: str, uri: str) -> Any:
    return json.loads((await ask(house, who, "read", uri)).body)
