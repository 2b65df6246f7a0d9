"""A Python function is a tool: its schema from the hints, its words from the docstring (T10)."""

from __future__ import annotations

import asyncio
import enum
import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import BaseModel, Field

from octavo.core.arguments import OwnArguments
from octavo.core.errors import InternalError, InvalidParams, Timeout, TooLarge
from octavo.core.ref import Ref
from octavo.core.tools import Image, Link, Text, ToolResult
from octavo.core.values import Call, Entry, Principal, Trail
from octavo.tools import ToolContext, tool
from octavo.tools.functions import tool_of
from octavo.tools.registry import ToolRegistry
from octavo.tools.schema import compile_schema

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T10")]


async def call(function: Any, max_answer: int = 0, **arguments: Any) -> ToolResult:
    made, registry = tool_of(function, max_answer=max_answer), ToolRegistry()
    registry.register(made)
    asked = Call(
        "invoke", Ref("tool", (made.info.name,)), Principal("agent-brand"), Trail(), arguments=OwnArguments(arguments)
    )
    with anyio.fail_after(10):
        return await registry.invoke(asked)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Sum:
    total: int
    of: list[int]


@tool(read_only=True, title="Add up", permissions=("numbers",), timeout=5)
async def add(
    ctx: ToolContext,
    numbers: list[int],
    point: Point,
    colour: Colour = Colour.RED,
    how: Literal["fast", "slow"] = "fast",
    most: Annotated[int, Field(ge=1, le=9)] = 5,
) -> Sum:
    """Adds numbers up.

    Goes on in a second paragraph.

    Args:
        numbers: What to add,
            in any order.
        point (Point): Where.
        most: At most so many.

    Returns:
        The sum.
    """
    assert isinstance(point, Point) and isinstance(colour, Colour) and ctx.principal.id == "agent-brand"
    return Sum(sum(numbers[:most]) + point.x, numbers)


async def test_hints_and_docstring_become_the_definition() -> None:
    info = tool_of(add).info
    assert (info.name, info.title, info.permissions, info.timeout) == ("add", "Add up", ("numbers",), 5)
    assert info.description == "Adds numbers up.\n\nGoes on in a second paragraph."
    assert info.hints.read_only and info.hints.idempotent and not info.hints.destructive and not info.hints.open_world
    schema = info.input_schema
    assert schema["required"] == ["numbers", "point"] and schema["additionalProperties"] is False
    assert schema["properties"]["numbers"] == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "What to add, in any order.",
    }
    assert schema["properties"]["most"]["maximum"] == 9 and schema["properties"]["most"]["default"] == 5
    assert schema["properties"]["how"]["enum"] == ["fast", "slow"]
    assert "ctx" not in schema["properties"] and "title" not in str(schema)
    assert info.output_schema is not None and set(info.output_schema["properties"]) == {"total", "of"}


async def test_arguments_come_as_the_types_that_were_asked_for_and_the_answer_as_it_was_announced() -> None:
    result = await call(add, numbers=[1, 2], point={"x": 3}, colour="blue")
    assert result.structured == {"total": 6, "of": [1, 2]}


@pytest.mark.parametrize(
    ("arguments", "where", "says"),
    [
        ({"numbers": [1], "pont": {"x": 1}}, "", "did you mean point?"),
        ({"numbers": [1]}, "", '"point" is a required property'),
        ({"numbers": ["1"], "point": {"x": 1}}, "/numbers/0", 'not of type "integer"'),
        ({"numbers": [1], "point": {"x": 1}, "how": "slowly"}, "/how", '"fast" or "slow"'),
        ({"numbers": [1], "point": {"x": 1}, "most": 10}, "/most", "greater than the maximum of 9"),
    ],
)
async def test_wrong_arguments_say_which_what_was_expected_and_what_is_allowed(
    arguments: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(InvalidParams) as caught:
        await call(add, **arguments)
    problems: Any = caught.value.data["validationErrors"]
    assert [problem["path"] for problem in problems if says in problem["message"]] == [where]


async def test_a_plain_function_runs_beside_the_loop() -> None:
    def where(text: str) -> bool:
        """Tells whether it runs in the thread of the loop."""
        return threading.current_thread() is threading.main_thread()

    assert (await call(where, text="x")).structured == {"result": False}


async def test_what_is_not_announced_is_taken_for_what_it_is() -> None:
    answers: list[tuple[Any, ToolResult]] = [
        ("text", ToolResult(content=(Text("text"),))),
        (None, ToolResult(content=(Text("Done."),))),
        (Image(b"x", "image/png"), ToolResult(content=(Image(b"x", "image/png"),))),
        ([Text("a"), Text("b")], ToolResult(content=(Text("a"), Text("b")))),
        ([1, 2], ToolResult(content=(Text('{"result": [1, 2]}'),), structured={"result": [1, 2]})),
        ({"a": Point(x=1)}, ToolResult(content=(Text('{"a": {"x": 1, "y": 0}}'),), structured={"a": {"x": 1, "y": 0}})),
    ]
    for value, expected in answers:

        async def gives(value: Any = value):  # type: ignore[no-untyped-def]
            """Gives it."""
            return value

        gives.__annotations__.pop("return", None)
        assert await call(gives) == expected


def no_words(x: int) -> int:
    return x


def no_type(x) -> int:  # type: ignore[no-untyped-def]
    """Has a parameter without a type."""
    return 0


def starred(*names: str) -> int:
    """Takes what nobody can name."""
    return 0


def of_no_json(x: threading.Lock) -> int:
    """Wants what no model can give."""
    return 0


def of_another(x: int) -> int:
    """Describes what it does not have.

    Args:
        y: Not there.
    """
    return 0


def cannot_ask(ctx: ToolContext) -> int:
    """Wants the context, and cannot await."""
    return 0


def yielding() -> Any:
    """Never comes to an end."""
    while True:
        yield 1


@tool(cache=60)
def kept_and_changing(x: int) -> int:
    """Would be kept."""
    return 0


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_words, "no docstring"),
        (no_type, "x of no_type has no type hint"),
        (starred, "by name"),
        (of_no_json, "cannot be told to a model"),
        (of_another, "describes y"),
        (kept_and_changing, "not read_only"),
        (cannot_ask, "async def"),
        (yielding, "return a list"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_with_the_remedy(function: Any, says: str) -> None:
    with pytest.raises(InvalidParams, match=says):
        tool_of(function)


async def test_of_a_function_that_says_nothing_the_worst_is_assumed() -> None:
    def quiet() -> None:
        """Does something."""

    hints = tool_of(quiet).info.hints
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (False, True, False, True)


class Odd(BaseException):
    """What only its author knows."""


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(1), Odd()])
async def test_a_function_that_wants_to_end_the_process_ends_its_call(error: BaseException) -> None:
    def plain() -> str:
        """Ends."""
        raise error

    async def waiting() -> str:
        """Ends."""
        raise error

    for function in (plain, waiting):
        with pytest.raises(RuntimeError, match=type(error).__name__):
            await call(function)


async def test_a_function_that_hangs_is_told_as_late_in_either_colour() -> None:
    over = threading.Event()

    @tool(timeout=0.01)
    def plain() -> str:
        """Hangs."""
        over.wait(10)
        return ""

    @tool(timeout=0.01)
    async def waiting() -> str:
        """Hangs."""
        await asyncio.Event().wait()
        return ""

    for function in (plain, waiting):
        with pytest.raises(Timeout):
            await call(function)
    over.set()


async def test_an_answer_of_gigabytes_is_refused_with_what_to_do() -> None:
    def much(size: int) -> str:
        """Gives so many letters."""
        return "x" * size

    assert (await call(much, 1_000, size=1_000)).content == (Text("x" * 1_000),)
    with pytest.raises(TooLarge, match="ask it for less"):
        await call(much, 1_000, size=50_000_000)


async def test_the_size_of_an_answer_is_counted_in_bytes_and_links_count_too() -> None:
    def korean() -> str:
        """Gives 400 letters of three bytes each."""
        return "가" * 400

    def links() -> list[Link]:
        """Gives addresses alone."""
        ref = Ref.parse("file://a.md")
        return [Link(Entry(ref=ref, name="a.md"), str(ref))] * 100

    for function in (korean, links):
        with pytest.raises(TooLarge):
            await call(function, 1_000)


async def test_an_answer_without_an_end_is_a_fault_of_the_tool_and_holds_nobody_up() -> None:
    def counted() -> Iterable[int]:
        """Counts."""
        return itertools.count()

    def unsaid() -> Any:
        """Counts."""
        return itertools.count()

    for function in (counted, unsaid):
        with pytest.raises(InternalError):
            await call(function)


async def test_an_answer_of_another_type_is_a_fault_of_the_tool() -> None:
    def number() -> int:
        """Gives no number."""
        return "one"  # type: ignore[return-value]

    def shape() -> Sum:
        """Gives no sum."""
        return 5  # type: ignore[return-value]

    def odd() -> Any:
        """Gives nothing that can be said."""
        return object()

    for function in (number, shape, odd):
        with pytest.raises(InternalError):
            await call(function)


def test_docstrings_of_other_styles_say_the_same() -> None:
    def sphinx(a: int, b: int) -> int:
        """Adds.

        :param a: the first
        :param int b: the second,
            as it goes on
        :returns: the sum
        """
        return a + b

    def numpy(a: int, b: int) -> int:
        """Adds.

        Parameters
        ----------
        a : int
            the first
        b : int
            the second,
            as it goes on

        Returns
        -------
        int
        """
        return a + b

    for function in (sphinx, numpy):
        info = tool_of(function).info
        assert info.description == "Adds."
        said = {name: shape["description"] for name, shape in info.input_schema["properties"].items()}
        assert said == {"a": "the first", "b": "the second, as it goes on"}


async def test_an_async_def_that_awaits_nothing_holds_up_nobody() -> None:
    """It would keep the event loop to itself for as long as it takes."""
    threads: list[int] = []

    async def computes(number: int) -> int:
        """Computes for long."""
        threads.append(threading.get_ident())
        return number + 1

    async def waits(number: int) -> int:
        """Gives way to others."""
        threads.append(threading.get_ident())
        await asyncio.sleep(0)
        return number + 1

    async def begins(number: int) -> int:
        """Needs the loop, and waits for nothing."""
        threads.append(threading.get_ident())
        asyncio.get_running_loop().call_soon(int)
        return number + 1

    here = threading.get_ident()
    for function, moved in ((computes, True), (waits, False), (begins, False)):
        tools = ToolRegistry()
        tools.register(tool_of(function, max_answer=1000))
        call = Call(
            "invoke", Ref("tool", (function.__name__,)), Principal("a"), Trail(), "", OwnArguments({"number": 1})
        )
        assert (await tools.invoke(call)).structured == {"result": 2}
        assert (threads.pop() != here) is moved, function.__name__


def test_of_many_unknown_names_only_the_first_are_compared_with_the_known_ones() -> None:
    """To look for what was meant takes long, on the loop that everybody shares."""
    check = compile_schema({"type": "object", "properties": {"target": {}, "lines": {}}, "additionalProperties": False})
    told = check({f"targ{number}": 1 for number in range(8)})[0]["message"]
    assert told.count("did you mean") == 5 and told.endswith("known are: target, lines")
    assert check({f"targ{number}": 1 for number in range(2000)})[0]["message"].startswith("there are more than 1000")
