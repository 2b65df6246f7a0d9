"""A Python function as a tool: its schema from the type hints, its words from the docstring."""

from __future__ import annotations

import dis
import inspect
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from octavo.core.errors import InternalError, InvalidParams
from octavo.core.tools import Audio, Embedded, Image, Link, Text, ToolInfo, ToolResult
from octavo.tools.context import ToolContext
from octavo.tools.decorator import marks_of
from octavo.tools.docstring import said_in
from octavo.tools.registry import Handler, Outcome, Tool
from octavo.tools.schema import pointer
from octavo.tools.threads import in_thread

_BLOCKS: Final = (Text, Image, Audio, Embedded, Link)
_STRICT: Final = ConfigDict(extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=False)
_UNREADABLE: Final = (PydanticSchemaGenerationError, PydanticUserError)

_WAITS: Final = frozenset(("GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "SEND", "YIELD_VALUE"))
_LOOPS: Final = frozenset(("asyncio", "anyio", "create_task", "ensure_future", "get_running_loop", "get_event_loop"))

Answers = Callable[[Any], Outcome]


def tool_of(function: Callable[..., Any], *, max_answer: int = 0) -> Tool:
    """Raises InvalidParams for a function that no model could call: no docstring, a parameter without a type."""
    marks, said = marks_of(function), said_in(function.__doc__)
    name = marks.name or function.__name__
    if not said.description:
        raise InvalidParams(f"{name} has no docstring: say in one what it does, a model reads it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidParams(f"{name} yields: a tool gives one answer, so return a list")
    if marks.cache and not marks.hints.read_only:
        raise InvalidParams(f"{name} has cache= and is not read_only: only what changes nothing can be kept")
    types = _types(function, name)
    context, parameters = _parameters(function, name, types)
    unknown = [one for one in said.parameters if one not in parameters and one != context]
    if unknown:
        raise InvalidParams(f"The docstring of {name} describes {unknown[0]}, which is no parameter of it")
    arguments = _arguments(name, parameters, types, said.parameters)
    output_schema, answer = _output(name, types.get("return", Any))
    info = ToolInfo(
        name=name,
        title=marks.title,
        description=said.description,
        input_schema=_plain(arguments.json_schema()),
        output_schema=output_schema,
        hints=marks.hints,
        permissions=marks.permissions,
        timeout=marks.timeout,
        cache=marks.cache,
        asks="a destructive tool of the operator's own"
        if marks.hints.destructive and not marks.hints.read_only
        else "",
    )
    return Tool(info, _handler(function, name, arguments, context, answer), max_answer=max_answer, rehearses=True)


def _types(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidParams(f"A type hint of {name} cannot be read: {error}") from None


def _parameters(
    function: Callable[..., Any], name: str, types: Mapping[str, Any]
) -> tuple[str | None, dict[str, inspect.Parameter]]:
    """The name of the parameter that wants the context, and those that a model fills."""
    context: str | None = None
    found: dict[str, inspect.Parameter] = {}
    for parameter in inspect.signature(function).parameters.values():
        if types.get(parameter.name) is ToolContext:
            if not inspect.iscoroutinefunction(function):
                raise InvalidParams(f"{name} takes a ToolContext, whose members are awaited: write async def {name}")
            context = parameter.name
        elif parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise InvalidParams(f"{name} takes {parameter}: a model gives arguments by name, so name each of them")
        elif parameter.name not in types:
            hint = "; the context is written ctx: ToolContext" if parameter.name in ("ctx", "context") else ""
            raise InvalidParams(f"The parameter {parameter.name} of {name} has no type hint: write one{hint}")
        else:
            found[parameter.name] = parameter
    return context, found


def _arguments(
    name: str, parameters: Mapping[str, inspect.Parameter], types: Mapping[str, Any], said: Mapping[str, str]
) -> TypeAdapter[dict[str, Any]]:
    fields: dict[str, Any] = {}
    for parameter in parameters.values():
        shown: dict[str, Any] = {}
        optional = parameter.default is not inspect.Parameter.empty
        if optional:
            try:
                shown["default"] = to_jsonable_python(parameter.default)
            except PydanticSerializationError:
                pass  # it has one, and cannot be shown
        words = said.get(parameter.name)
        field = cast("Any", Annotated)[types[parameter.name], Field(description=words, json_schema_extra=shown)]
        fields[parameter.name] = cast("Any", NotRequired)[field] if optional else field
    shape = with_config(_STRICT)(cast("Any", TypedDict)("Arguments", fields))
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        adapter.json_schema()
    except _UNREADABLE as error:
        raise InvalidParams(
            f"The type hints of {name} cannot be told to a model: {_first_line(error)}. "
            "Use str, int, float, bool, list, dict, Literal, Enum, dataclasses, TypedDict or pydantic models"
        ) from None
    return adapter


def _output(name: str, hint: Any) -> tuple[Mapping[str, Any] | None, Answers]:
    """The output schema, and how a value becomes an answer. Only objects can be structured: others are wrapped."""
    if hint in (Any, str, None, type(None), ToolResult) or hint in _BLOCKS or _has_blocks(hint):
        return None, _unannounced
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        schema = _plain(adapter.json_schema(mode="serialization"))
    except _UNREADABLE as error:
        raise InvalidParams(f"The return type of {name} cannot be told to a client: {_first_line(error)}") from None
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    wrapped = schema.get("type") != "object"
    shape = {"type": "object", "properties": {"result": schema}, "required": ["result"]} if wrapped else schema

    def answer(value: Any) -> Outcome:
        try:
            if isinstance(value, Iterator):  # it may have no end
                raise TypeError
            plain = adapter.dump_python(value, mode="json", warnings="none")
        except (PydanticSerializationError, ValueError, TypeError, AttributeError):
            raise InternalError(f"The tool {name} gave an answer of another type than it announced") from None
        if wrapped:
            return {"result": plain}
        if not isinstance(plain, Mapping):
            raise InternalError(f"The tool {name} gave an answer of another type than it announced")
        return cast("Mapping[str, Any]", plain)

    return {**shape, **definitions}, answer


def _unannounced(value: Any) -> Outcome:
    """What was said nothing of before, by what it is."""
    if value is None:
        return ToolResult(content=(Text("Done."),))
    if isinstance(value, (str, ToolResult)):
        return value
    if isinstance(value, _BLOCKS):
        return ToolResult(content=(value,))
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, _BLOCKS) for one in cast("Any", value)):
        return ToolResult(content=tuple(cast("Any", value)))
    try:
        if isinstance(value, Iterator):  # it may have no end
            raise TypeError
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, TypeError):
        raise InternalError("The tool gave an answer that is neither text nor data") from None
    return cast("Outcome", plain if isinstance(plain, dict) else {"result": plain})


def _has_blocks(hint: Any) -> bool:
    return any(one in (*_BLOCKS, ToolResult) or _has_blocks(one) for one in typing.get_args(hint))


def _handler(
    function: Callable[..., Any],
    name: str,
    arguments: TypeAdapter[dict[str, Any]],
    context: str | None,
    answer: Answers,
) -> Handler:
    waits = inspect.iscoroutinefunction(function) and _awaits(function)
    blocks = inspect.iscoroutinefunction(function) and not waits

    async def handler(ctx: ToolContext, asked: Mapping[str, Any]) -> Outcome:
        try:
            given = dict(arguments.validate_python(dict(asked)))
        except ValidationError as error:
            problems = [{"path": pointer([*one["loc"]]), "message": one["msg"]} for one in error.errors()]
            first = problems[0]
            raise InvalidParams(
                f"Invalid parameters for tool {name}: {first['path']}: {first['message']}",
                toolName=name,
                validationErrors=problems,
            ) from None
        ctx.begins()
        if context is not None:
            given[context] = ctx
        if waits:
            return answer(await cast("Awaitable[Any]", function(**given)))
        return answer(await in_thread(lambda: _ended(function(**given)) if blocks else function(**given)))

    return handler


def _awaits(function: Callable[..., Any]) -> bool:
    """Whether an `async def` ever gives way to others. One that does not would hold up everybody for as long as it
    takes, and is run as a plain function; but for one that needs the loop without waiting for it."""
    code = inspect.unwrap(function).__code__
    if not _LOOPS.isdisjoint(code.co_names):
        return True
    return any(step.opname in _WAITS for step in dis.get_instructions(code))


def _ended(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine that waits for nothing returns."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise RuntimeError("an async def without an await waited for something")


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that only repeat names: they cost a model tokens and tell it nothing."""
    return cast("dict[str, Any]", _untitled(schema))


def _untitled(part: Any, *, names: bool = False) -> Any:
    if isinstance(part, Mapping):
        items = cast("Mapping[str, Any]", part).items()
        return {
            key: _untitled(value, names=not names and key in ("properties", "$defs"))
            for key, value in items
            if names or key != "title" or not isinstance(value, str)
        }
    if isinstance(part, list):
        return [_untitled(one) for one in cast("Sequence[Any]", part)]
    return part


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
