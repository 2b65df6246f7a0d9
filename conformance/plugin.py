"""The tools and the one prompt that the official conformance suite expects of a server.

It shows what a plugin can do. The plain fixtures need nothing but `octavo`; the others speak the
raw protocol by `ctx.wire`, for which the configuration must say `protocol: true`. `ctx.wire.context` is
the SDK's request context, `ctx.wire.params` the validated parameters, `ctx.wire.modern` the era.
"""

from __future__ import annotations

import asyncio
import json
import struct
import warnings
import zlib
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPDeprecationWarning

from octavo import (
    Audio,
    Content,
    Embedded,
    Entry,
    Hints,
    Image,
    Plugin,
    PromptInfo,
    PromptMessage,
    PromptResult,
    ProtocolError,
    Ref,
    Text,
    ToolContext,
    ToolResult,
)

# Logging, sampling and roots are deprecated since 2026-07-28; the suite still asks for them.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

PAUSE = 0.05  # seconds between notifications, so that a client sees them one by one
HARMLESS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)

Arguments = Mapping[str, Any]


def _png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _wav() -> bytes:
    sound = b"\0\0" * 8  # one millisecond of silence at 8 kHz
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack("<I", len(sound))
    return b"RIFF" + struct.pack("<I", len(head) + len(sound)) + head + sound


def _embedded(uri: str, mime_type: str, text: str) -> Embedded:
    entry = Entry(ref=Ref.parse(uri), name=uri, mime_type=mime_type)
    return Embedded(Content(entry=entry, body=text), uri)


def register(octavo: Plugin) -> None:
    _plain(octavo)
    _legacy_channel(octavo)
    _changes(octavo)
    _input_required(octavo)
    _tasks(octavo)


def _plain(octavo: Plugin) -> None:
    @octavo.tool("test_simple_text", description="Answers with a text.", hints=HARMLESS)
    async def simple_text(ctx: ToolContext, arguments: Arguments) -> str:
        return "This is a simple text response for testing."

    @octavo.tool("test_image_content", description="Answers with an image.", hints=HARMLESS)
    async def image_content(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        return ToolResult(content=(Image(_png(), "image/png"),))

    @octavo.tool("test_audio_content", description="Answers with a sound.", hints=HARMLESS)
    async def audio_content(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        return ToolResult(content=(Audio(_wav(), "audio/wav"),))

    @octavo.tool("test_embedded_resource", description="Answers with an embedded resource.", hints=HARMLESS)
    async def embedded_resource(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        text = "This is an embedded resource content."
        return ToolResult(content=(_embedded("test://embedded-resource", "text/plain", text),))

    @octavo.tool("test_multiple_content_types", description="Answers with text, image and resource.", hints=HARMLESS)
    async def multiple_content_types(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        return ToolResult(
            content=(
                Text("Multiple content types test:"),
                Image(_png(), "image/png"),
                _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
            )
        )

    @octavo.tool("test_error_handling", description="Always fails.", hints=HARMLESS)
    async def error_handling(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        return ToolResult(content=(Text("This tool intentionally returns an error for testing"),), is_error=True)

    @octavo.tool("test_tool_with_progress", description="Reports progress three times.", hints=HARMLESS)
    async def tool_with_progress(ctx: ToolContext, arguments: Arguments) -> str:
        for done in (0, 50, 100):
            await ctx.progress(done, 100, f"Completed step {done} of 100")
            await asyncio.sleep(PAUSE)
        return "Progress was reported."

    @octavo.tool(
        "test_x_mcp_header",
        description="Mirrors an argument into a header.",
        hints=HARMLESS,
        input_schema={
            "type": "object",
            "properties": {
                "region": {"type": "string", "description": "Where the work runs", "x-mcp-header": "Region"}
            },
        },
    )
    async def x_mcp_header(ctx: ToolContext, arguments: Arguments) -> str:
        return f"Region: {arguments.get('region', '')}"

    @octavo.tool(
        "json_schema_2020_12_tool",
        description="Tool with JSON Schema 2020-12 features",
        hints=HARMLESS,
        input_schema=JSON_SCHEMA_2020_12,
    )
    async def json_schema(ctx: ToolContext, arguments: Arguments) -> str:
        return json.dumps(dict(arguments))


JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _legacy_channel(octavo: Plugin) -> None:
    """What the handshake era does by requests and messages of the server's own."""

    async def three_logs(ctx: ToolContext, arguments: Arguments) -> str:
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.wire.log("info", text)  # only if the client asked for messages of this level
            await asyncio.sleep(PAUSE)
        return "Tool with logging executed successfully"

    for name in ("test_tool_with_logging", "test_logging_tool"):
        octavo.tool(name, three_logs, description="Sends three log messages.", hints=HARMLESS)

    @octavo.tool(
        "test_sampling",
        description="Asks the model of the client.",
        hints=HARMLESS,
        input_schema={
            "type": "object",
            "properties": {"prompt": {"type": "string", "description": "The prompt to send to the LLM"}},
            "required": ["prompt"],
        },
    )
    async def sampling(ctx: ToolContext, arguments: Arguments) -> ToolResult | str:
        request = ctx.wire.context
        if not request.session.check_client_capability(SAMPLING):
            return _refusal("The client does not support sampling")
        reply = await request.session.create_message(
            [types.SamplingMessage(role="user", content=types.TextContent(text=arguments["prompt"]))],
            max_tokens=100,
            related_request_id=request.request_id,
        )
        return f"LLM response: {getattr(reply.content, 'text', '')}"

    @octavo.tool(
        "test_elicitation",
        description="Asks the user of the client.",
        hints=HARMLESS,
        input_schema={
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The message to show the user"}},
            "required": ["message"],
        },
    )
    async def elicitation(ctx: ToolContext, arguments: Arguments) -> ToolResult | str:
        properties = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        form = {"type": "object", "properties": properties, "required": ["username", "email"]}
        return await _elicit(ctx, arguments["message"], form, "User response: action={action}, content={content}")

    @octavo.tool("test_elicitation_sep1034_defaults", description="Asks with default values.", hints=HARMLESS)
    async def elicitation_defaults(ctx: ToolContext, arguments: Arguments) -> ToolResult | str:
        properties: dict[str, Any] = {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }
        form = {"type": "object", "properties": properties, "required": []}
        return await _elicit(ctx, "Please check the values", form, COMPLETED)

    @octavo.tool("test_elicitation_sep1330_enums", description="Asks with all kinds of choices.", hints=HARMLESS)
    async def elicitation_enums(ctx: ToolContext, arguments: Arguments) -> ToolResult | str:
        titled = [
            {"const": "value1", "title": "First Option"},
            {"const": "value2", "title": "Second Option"},
            {"const": "value3", "title": "Third Option"},
        ]
        options = ["option1", "option2", "option3"]
        properties: dict[str, Any] = {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }
        form = {"type": "object", "properties": properties, "required": []}
        return await _elicit(ctx, "Please choose", form, COMPLETED)

    @octavo.tool("test_reconnection", description="Closes its stream before it answers.", hints=HARMLESS)
    async def reconnection(ctx: ToolContext, arguments: Arguments) -> str:
        close = ctx.wire.context.close_sse_stream
        if close is not None:
            await close()
        await asyncio.sleep(2 * PAUSE)
        return "Reconnection test completed successfully."


COMPLETED = "Elicitation completed: action={action}, content={content}"
SAMPLING = types.ClientCapabilities(sampling=types.SamplingCapability())
ELICITATION = types.ClientCapabilities(elicitation=types.ElicitationCapability())
ROOTS = types.ClientCapabilities(roots=types.RootsCapability())


async def _elicit(ctx: ToolContext, message: str, form: dict[str, Any], answer: str) -> ToolResult | str:
    request = ctx.wire.context
    if not request.session.check_client_capability(ELICITATION):
        return _refusal("The client does not support elicitation")
    reply = await request.session.elicit_form(message, form, related_request_id=request.request_id)
    return answer.format(action=reply.action, content=json.dumps(reply.content))


def _refusal(text: str) -> ToolResult:
    return ToolResult(content=(Text(text),), is_error=True)


def _changes(octavo: Plugin) -> None:
    @octavo.tool("test_trigger_tool_change", description="Tells that the list of tools changed.", hints=HARMLESS)
    async def tool_change(ctx: ToolContext, arguments: Arguments) -> str:
        ctx.wire.list_changed("tools")
        return "The change of the tools was told."

    @octavo.tool("test_trigger_prompt_change", description="Tells that the list of prompts changed.", hints=HARMLESS)
    async def prompt_change(ctx: ToolContext, arguments: Arguments) -> str:
        ctx.wire.list_changed("prompts")
        return "The change of the prompts was told."


def _form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def _question(text: str, max_tokens: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


NEEDS = {"elicitation/create": ELICITATION, "sampling/createMessage": SAMPLING, "roots/list": ROOTS}


def _ask(ctx: ToolContext, questions: dict[str, types.InputRequest], state: str | None = None) -> Any:
    """The questions for the user, or the error -32021: what a client has not declared it must not be asked."""
    for question in questions.values():
        _require(ctx, NEEDS[question.method])
    return types.InputRequiredResult(input_requests=questions, request_state=state)


def _require(ctx: ToolContext, capability: types.ClientCapabilities) -> None:
    if not ctx.wire.modern:
        raise ProtocolError("This fixture needs protocol 2026-07-28", code=types.INVALID_REQUEST)
    if not ctx.wire.context.session.check_client_capability(capability):
        raise ProtocolError(
            "The client has not declared a capability that this needs",
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            requiredCapabilities=capability.model_dump(by_alias=True, mode="json", exclude_none=True),
        )


def _answer(ctx: ToolContext, key: str, field: str) -> Any:
    """What the user put into `field`, or None: then the question is asked again. Other answers are ignored."""
    reply = (ctx.wire.params.input_responses or {}).get(key)
    if not isinstance(reply, types.ElicitResult) or reply.action != "accept":
        return None
    return (reply.content or {}).get(field)


def _given(ctx: ToolContext, key: str, kind: type[Any]) -> Any:
    reply = (ctx.wire.params.input_responses or {}).get(key)
    return reply if isinstance(reply, kind) else None


def _state(ctx: ToolContext) -> dict[str, Any]:
    """Sealed on the way out and checked on the way in by the server: a handler sees its own words only."""
    text = ctx.wire.params.request_state
    return dict(json.loads(text)) if text else {}


def _input_required(octavo: Plugin) -> None:
    ask_name = _form("What is your name?", "name")
    ask_greeting = _question("Generate a greeting", 50)

    @octavo.tool("test_missing_capability", description="Needs a client that declares sampling.", hints=HARMLESS)
    async def missing_capability(ctx: ToolContext, arguments: Arguments) -> Any:
        _require(ctx, SAMPLING)
        return "The client declares sampling."

    async def elicitation(ctx: ToolContext, arguments: Arguments) -> Any:
        name = _answer(ctx, "user_name", "name")
        return f"Hello, {name}!" if name else _ask(ctx, {"user_name": ask_name})

    octavo.tool("test_input_required_result_elicitation", elicitation, description="Asks for a name.", hints=HARMLESS)

    @octavo.tool("test_streaming_elicitation", description="Streams, then asks for a name.", hints=HARMLESS)
    async def streaming_elicitation(ctx: ToolContext, arguments: Arguments) -> Any:
        await ctx.progress(0, 1, "Asking")
        return await elicitation(ctx, arguments)

    @octavo.tool("test_input_required_result_sampling", description="Asks the model for a capital.", hints=HARMLESS)
    async def sampling(ctx: ToolContext, arguments: Arguments) -> Any:
        reply = _given(ctx, "capital_question", types.CreateMessageResult)
        if reply is None:
            return _ask(ctx, {"capital_question": _question("What is the capital of France?", 100)})
        return f"LLM response: {getattr(reply.content, 'text', '')}"

    @octavo.tool("test_input_required_result_list_roots", description="Asks for the roots.", hints=HARMLESS)
    async def list_roots(ctx: ToolContext, arguments: Arguments) -> Any:
        reply = _given(ctx, "client_roots", types.ListRootsResult)
        if reply is None:
            return _ask(ctx, {"client_roots": types.ListRootsRequest()})
        return "Roots: " + ", ".join(str(root.uri) for root in reply.roots)

    async def with_state(ctx: ToolContext, arguments: Arguments) -> Any:
        ok = _answer(ctx, "confirm", "ok")
        if ok is None or _state(ctx).get("asked") != "confirm":
            questions: dict[str, types.InputRequest] = {"confirm": _form("Please confirm", "ok", "boolean")}
            return _ask(ctx, questions, json.dumps({"asked": "confirm"}))
        return "state-ok"

    for name in ("test_input_required_result_request_state", "test_input_required_result_tampered_state"):
        octavo.tool(name, with_state, description="Asks, and remembers that it asked.", hints=HARMLESS)

    @octavo.tool("test_input_required_result_multiple_inputs", description="Asks three things.", hints=HARMLESS)
    async def multiple_inputs(ctx: ToolContext, arguments: Arguments) -> Any:
        name = _answer(ctx, "user_name", "name")
        greeting = _given(ctx, "greeting", types.CreateMessageResult)
        roots = _given(ctx, "client_roots", types.ListRootsResult)
        if not name or greeting is None or roots is None:
            questions: dict[str, types.InputRequest] = {
                "user_name": ask_name,
                "greeting": ask_greeting,
                "client_roots": types.ListRootsRequest(),
            }
            return _ask(ctx, questions, json.dumps({"asked": [*questions]}))
        return f"{name}: {getattr(greeting.content, 'text', '')} ({len(roots.roots)} roots)"

    @octavo.tool("test_input_required_result_multi_round", description="Asks twice in turn.", hints=HARMLESS)
    async def multi_round(ctx: ToolContext, arguments: Arguments) -> Any:
        state = _state(ctx)
        name = state.get("name") or _answer(ctx, "step1", "name")
        if not state or not name:
            return _ask(ctx, {"step1": _form("Step 1: What is your name?", "name")}, json.dumps({"round": 1}))
        color = _answer(ctx, "step2", "color") if state.get("round") == 2 else None
        if not color:
            question = _form("Step 2: What is your favorite color?", "color")
            return _ask(ctx, {"step2": question}, json.dumps({"round": 2, "name": name}))
        return f"{name} likes {color}"

    @octavo.tool(
        "test_input_required_result_capabilities", description="Asks only what the client can answer.", hints=HARMLESS
    )
    async def capabilities(ctx: ToolContext, arguments: Arguments) -> Any:
        wanted: dict[str, types.InputRequest] = {
            "user_name": ask_name,
            "greeting": ask_greeting,
            "client_roots": types.ListRootsRequest(),
        }
        session = ctx.wire.context.session
        possible = {key: one for key, one in wanted.items() if session.check_client_capability(NEEDS[one.method])}
        if not possible or ctx.wire.params.input_responses:
            return f"The client can be asked for: {', '.join(possible) or 'nothing'}"
        return _ask(ctx, possible)

    async def prompt(ctx: ToolContext, arguments: Arguments) -> Any:
        context = _answer(ctx, "user_context", "context")
        if not context:
            return _ask(ctx, {"user_context": _form("What context should the prompt use?", "context")})
        return PromptResult(messages=(PromptMessage("user", Text(f"Use this context: {context}")),))

    octavo.prompt(
        PromptInfo(name="test_input_required_result_prompt", description="A prompt that asks for its context."), prompt
    )


def _tasks(octavo: Plugin) -> None:
    """Calls that become tasks: after a moment, or when they ask."""

    @octavo.tool("greet", description="Says hello.", hints=HARMLESS, input_schema=_takes(name="string"))
    async def greet(ctx: ToolContext, arguments: Arguments) -> str:
        return f"Hello, {arguments['name']}!"

    @octavo.tool(
        "slow_compute",
        description="Takes as many seconds as it is told.",
        hints=HARMLESS,
        input_schema=_takes(seconds="number", label="string"),
        timeout=600.0,
        task="may",
    )
    async def slow_compute(ctx: ToolContext, arguments: Arguments) -> str:
        await asyncio.sleep(arguments["seconds"])
        return f"{arguments['label']}: done after {arguments['seconds']} s"

    @octavo.tool("failing_job", description="Fails as a tool does.", hints=HARMLESS, task="must")
    async def failing_job(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        await asyncio.sleep(1)
        return _refusal("The job has failed")

    @octavo.tool("protocol_error_job", description="Fails as a server does.", hints=HARMLESS, task="must")
    async def protocol_error_job(ctx: ToolContext, arguments: Arguments) -> ToolResult:
        await asyncio.sleep(1)
        raise ProtocolError("The job could not be done", code=types.INTERNAL_ERROR)

    @octavo.tool(
        "confirm_delete",
        description="Asks before it would delete.",
        hints=HARMLESS,
        input_schema=_takes(filename="string"),
        task="must",
    )
    async def confirm_delete(ctx: ToolContext, arguments: Arguments) -> str:
        answer = await ctx.ask_user(f"Delete {arguments['filename']}?", _takes(confirm="boolean"))
        return f"{arguments['filename']}: {answer.content.get('confirm', False)}"

    @octavo.tool("multi_input", description="Asks two things at once.", hints=HARMLESS, task="must")
    async def multi_input(ctx: ToolContext, arguments: Arguments) -> str:
        form = {"type": "object", "properties": {"name": {"type": "string"}, "confirm": {"type": "boolean"}}}
        first, second = await asyncio.gather(ctx.ask_user("Who is first?", form), ctx.ask_user("Who is next?", form))
        return f"{first.content.get('name')} and {second.content.get('name')}"

    @octavo.tool("test_tool_with_task", description="Asks for a name, then works.", hints=HARMLESS, task="must")
    async def tool_with_task(ctx: ToolContext, arguments: Arguments) -> Any:
        name = _answer(ctx, "user_name", "name")
        if not name:
            return _ask(ctx, {"user_name": _form("What is your name?", "name")})
        await asyncio.sleep(1)
        return f"Hello, {name}!"


def _takes(**kinds: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": [*kinds]}
