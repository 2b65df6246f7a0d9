"""Tools without code: a YAML file that says which program to run or which address to ask, with typed arguments.

The program is one that the configuration lists, by its name there; the request goes out by the server's own guarded
client. Both come from outside of this module.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Struct, field

from octavo.core.errors import InternalError, InvalidParams, SourceUnavailable, Timeout, TooLarge
from octavo.core.sizes import KIB
from octavo.core.tools import Hints, Text, ToolInfo, ToolResult
from octavo.tools.context import ToolContext
from octavo.tools.data.yaml_text import parse
from octavo.tools.registry import Handler, Tool
from octavo.tools.template import check_url, check_words, completed, filled, leaves, places, url, words

MAX_CHARACTERS: Final = 64 * KIB
_SAFE: Final = ("GET", "HEAD")
_ERRORS: Final = 2_000  # characters of what a program said went wrong


class Ran(Protocol):
    """How a program ended: `exit` is None where a signal or a limit ended it, and `because` says which."""

    @property
    def exit(self) -> int | None: ...
    @property
    def output(self) -> bytes: ...
    @property
    def errors(self) -> bytes: ...
    @property
    def because(self) -> str: ...


class Replied(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class ProgramOrder(Struct, frozen=True):
    """A program by its name, what it is pointed at, and where it works: without a folder, only with what is named."""

    program: str
    paths: tuple[str, ...]
    folder: str | None
    # Its words and its input, from how the program has to name the paths.
    filled: Callable[[Sequence[str]], tuple[Sequence[str], bytes]]


Run: TypeAlias = Callable[[ToolContext, ProgramOrder], Awaitable[Ran]]
Fetch: TypeAlias = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Replied]]  # method, URL, headers, body


class Outside(Struct, frozen=True):
    """What declared tools reach the world by; nothing where the configuration gives nothing."""

    run: Run | None = None
    programs: frozenset[str] = frozenset()
    fetch: Fetch | None = None


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    query: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    json: Any = None  # a body: each text in it may be a template, and what is one argument alone keeps its type

    def texts(self) -> list[str]:
        return [self.url, *self.query.values(), *self.headers.values(), *leaves(self.json)]


class Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file. An argument is a JSON Schema; without a default it is required, unless `optional` names it."""

    name: str
    description: str
    title: str | None = None
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    optional: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    stdin: str = ""
    paths: tuple[str, ...] = ()  # arguments that are files or folders
    folder: str | None = None  # where the program works
    success: tuple[int, ...] = ()  # how the program may exit, where that is not 0 alone
    http: Request | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    permissions: tuple[str, ...] = ()
    timeout: float = 60.0


def declared(text: str, outside: Outside, *, max_answer: int = 0) -> Tool:
    """Raises InvalidParams for a file that says nothing usable, SourceUnavailable for what the server does not have."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidParams(f"is longer than {MAX_CHARACTERS} characters")
    try:
        one = msgspec.convert(parse(text), Declared)
    except msgspec.ValidationError as error:
        raise InvalidParams(str(error).replace("`", "").replace("$.", "")) from None
    except ValueError as error:
        raise InvalidParams(f"is no YAML: {error}") from None
    if bool(one.command) is (one.http is not None):
        raise InvalidParams("needs exactly one of command and http")
    _check_arguments(one)
    handler = _runs(one, outside) if one.command else _asks(one, cast("Request", one.http), outside)
    safe = one.http is not None and one.http.method in _SAFE
    info = ToolInfo(
        name=one.name,
        title=one.title,
        description=one.description,
        input_schema={
            "type": "object",
            "properties": one.arguments,
            "required": [name for name, shape in one.arguments.items() if not _optional(one, name, shape)],
            "additionalProperties": False,
        },
        hints=_hints(one, safe),
        permissions=one.permissions,
        timeout=one.timeout,
        asks="" if safe else "a command" if one.command else f"a {cast('Request', one.http).method} request",
    )
    return Tool(info, handler, max_answer=max_answer)


def _optional(one: Declared, name: str, shape: Mapping[str, Any]) -> bool:
    return "default" in shape or name in one.optional


def _hints(one: Declared, safe: bool) -> Hints:
    reads = safe if one.read_only is None else one.read_only
    return Hints(
        read_only=reads,
        destructive=not reads if one.destructive is None else one.destructive,
        idempotent=reads if one.idempotent is None else one.idempotent,
        open_world=True if one.open_world is None else one.open_world,
    )


def _check_arguments(one: Declared) -> None:
    texts = [*one.command, one.stdin, *(one.http.texts() if one.http is not None else ())]
    used = {name for text in texts for name in places(text)}
    if unknown := sorted(used - set(one.arguments)):
        raise InvalidParams(f"uses {{{unknown[0]}}}, which is not under arguments")
    if idle := sorted(set(one.arguments) - used):
        raise InvalidParams(f"has the argument {idle[0]} and does not use it: write {{{idle[0]}}} where it belongs")
    if (one.paths or one.folder is not None or one.success) and not one.command:
        raise InvalidParams("has paths, a folder or success, which belong to a command")
    if stray := sorted(set(one.paths) - set(one.arguments)):
        raise InvalidParams(f"has {stray[0]} under paths, which is not under arguments")
    check_words(one.command[1:], one.arguments, one.optional)
    for name, shape in one.arguments.items():
        whole = f"{{{name}}}" in one.command
        if name in one.paths and shape.get("type") not in ("string", "array"):
            raise InvalidParams(f"the argument {name} is under paths, so its type is string, or array of them")
        if shape.get("type") not in ("string", "integer", "number", "boolean", *(("array",) if whole else ())):
            raise InvalidParams(
                f"the argument {name} needs a type: string, integer, number or boolean; "
                "array only where it is a word of the command by itself"
            )


def _filled_in(one: Declared, asked: Mapping[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(asked, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidParams("An argument must be text that UTF-8 can write", toolName=one.name) from None
    return {name: asked.get(name, shape.get("default")) for name, shape in one.arguments.items()}


def _order(one: Declared, given: Mapping[str, Any]) -> ProgramOrder:
    named = {name: given[name] for name in one.paths if given[name] is not None}
    flat = [path for value in named.values() for path in (value if isinstance(value, list) else (value,))]
    if not all(isinstance(path, str) for path in flat):
        raise InvalidParams("A path is a text", toolName=one.name)

    def fill(paths: Sequence[str]) -> tuple[Sequence[str], bytes]:
        left = iter(paths)
        placed = {
            name: [next(left) for _ in value] if isinstance(value, list) else next(left)
            for name, value in named.items()
        }
        full = {**given, **placed}
        return words(one.command[1:], full), filled(one.stdin, full).encode()

    return ProgramOrder(one.command[0], tuple(flat), one.folder, fill)


def _runs(one: Declared, outside: Outside) -> Handler:
    run, program = outside.run, one.command[0]
    if places(program):
        raise InvalidParams("lets a caller choose the program: the first word of command is fixed")
    if run is None or program not in outside.programs:
        raise SourceUnavailable(f"runs {program}, which the configuration does not list under commands.programs")

    async def handler(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        given = _filled_in(one, asked)
        ran = await run(ctx, _order(one, given))
        if ran.because == "time":
            raise Timeout(f"{program} did not end in time", toolName=one.name, telling=False)
        if ran.because == "output":
            raise TooLarge(f"{program} printed more than is allowed; ask for less", toolName=one.name)
        said = ran.output.decode("utf-8", "replace")
        if ran.exit in (one.success or (0,)):
            return ToolResult(content=(Text(said),))
        errors = ran.errors.decode("utf-8", "replace")[-_ERRORS:]
        how = (
            f"ended with {ran.exit}"
            if ran.exit is not None
            else f"was ended{f': {ran.because}' if ran.because else ''}"
        )
        return ToolResult(content=(Text(f"{program} {how}\n{errors or said[-_ERRORS:]}".strip()),), is_error=True)

    return handler


def _asks(one: Declared, request: Request, outside: Outside) -> Handler:
    fetch = outside.fetch
    check_url(request.url)
    if fetch is None:
        raise SourceUnavailable("sends a request, and the configuration allows none: list the host in the section web")

    async def handler(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        given = _filled_in(one, asked)
        headers = {name: filled(text, given) for name, text in request.headers.items()}
        if any(character in value for value in headers.values() for character in "\r\n\0"):
            raise InvalidParams("A header cannot hold a line end")
        body = b"" if request.json is None else msgspec.json.encode(completed(request.json, given))
        if body:
            headers.setdefault("Content-Type", "application/json")
        reply = await fetch(request.method, url(request.url, request.query, given), headers, body)
        if not 200 <= reply.status < 300:
            raise InternalError(
                f"The service behind {one.name} answered with {reply.status}",
                toolName=one.name,
                externalErrorCode=reply.status,
            )
        return ToolResult(content=(Text(reply.body.decode("utf-8", "replace")),))

    return handler
