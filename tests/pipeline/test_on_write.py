"""What goes along with an act is decided again when a human has taken his time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from octavo.core.arguments import UndoArguments
from octavo.core.errors import Forbidden
from octavo.core.ref import Ref
from octavo.core.values import Call, Past, Principal, Trail
from octavo.pipeline.policy.on_write import WritePolicy, arrange
from octavo.pipeline.policy.refusals import Refused
from octavo.pipeline.policy.rules import CLOSED, OPEN, Decision

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T5")]


class Changing:
    """Allows everything until a human was asked."""

    def __init__(self) -> None:
        self._asked = False

    async def judged(self, *_: Any) -> Decision:
        return CLOSED if self._asked else OPEN

    def hidden_above(self, *_: Any) -> None:
        return None

    def unchangeable(self, *_: Any) -> None:
        return None

    def refusal(self, *_: Any) -> Forbidden:
        return Forbidden("no")

    async def consent(self, *_: Any) -> bool:
        self._asked = True
        return True


async def test_a_right_to_undo_that_ends_while_a_human_thinks_has_ended() -> None:
    done: list[Call] = []

    def below(call: Call) -> Any:
        if call.given(UndoArguments).look:
            return [Past("write", Ref("file", ("a.md",)), None, 0.0, undone=False)]
        done.append(call)
        return ()

    call = Call("undo", Ref("file"), Principal("agent-ann"), Trail(), "file://")
    with pytest.raises(Refused):
        await arrange(cast("WritePolicy", Changing()), call, below, page=0)
    assert done == []
