"""The one table of operations, and what reads it."""

from __future__ import annotations

from typing import get_args

import pytest

from octavo.core import tools
from octavo.core import values as model
from octavo.core.arguments import (
    PLAIN,
    Arguments,
    DeleteArguments,
    ListArguments,
    OwnArguments,
    WriteArguments,
)
from octavo.core.operations import CHANGING, METHODS, OPERATIONS, act_of, arguments_of
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Principal, Trail
from octavo.transport.mcp.calls import CALLING

GUIDE = Ref.parse("sop://brand/guide")


def test_every_operation_has_one_row_that_bears_its_name() -> None:
    assert {name: row.name for name, row in OPERATIONS.items()} == {name: name for name in get_args(Op)}


def test_a_method_of_the_transport_leads_to_one_operation() -> None:
    told = [method for row in OPERATIONS.values() for method in row.methods]
    assert len(told) == len(set(told)) and set(told) == CALLING
    assert METHODS["resources/read"] == "read"


def test_what_changes_something_is_kept_by_nobody() -> None:
    assert not any(OPERATIONS[op].kept for op in CHANGING)


def test_what_an_operation_gives_is_a_value_of_the_core() -> None:
    from octavo.core import search_results, skill, tasks

    known = [vars(room) for room in (model, tools, search_results, skill, tasks)]
    for name, row in OPERATIONS.items():
        words = row.gives.replace("|", " ").replace("[", " ").replace("]", " ").split()
        strange = [word for word in words if word not in ("None", "bool", "str", "Sequence")]
        assert all(any(word in room for room in known) for word in strange), name


@pytest.mark.parametrize(
    ("op", "values", "made"),
    [
        ("read", {}, PLAIN),
        ("list", {}, PLAIN),
        ("list", {"depth": 2}, ListArguments(depth=2)),
        ("invoke", {"depth": 2}, OwnArguments({"depth": 2})),
        ("delete", {"if_match": "1"}, DeleteArguments(if_match="1")),
    ],
)
def test_arguments_are_made_of_a_record_of_them(op: Op, values: dict[str, object], made: Arguments) -> None:
    assert arguments_of(op, values) == made
    assert dict(made.told()) == values


def test_an_operation_takes_nothing_that_is_not_its_own() -> None:
    with pytest.raises(TypeError, match="depth"):
        arguments_of("read", {"depth": 1})
    call = Call("write", GUIDE, Principal("ann"), Trail(), arguments=ListArguments(depth=1))
    with pytest.raises(TypeError, match="write takes WriteArguments, not ListArguments"):
        call.given(WriteArguments)
    with pytest.raises(TypeError, match="body"):
        call._replace(arguments=PLAIN).given(WriteArguments)


def test_whoever_compares_with_what_is_there_needs_to_read() -> None:
    assert act_of("write", WriteArguments(body="x")).needs == ("write",)
    assert act_of("write", WriteArguments(body="x", mode="append")).needs == ("write", "read")
    assert act_of("delete", DeleteArguments(if_match="1")).needs == ("delete", "read")
