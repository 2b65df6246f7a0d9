"""The tasks extension of the modern era: a call of a tool that lasts is answered with a handle.

`tasks/get`, `tasks/update` and `tasks/cancel` are calls of the pipeline at the address of the tool, so the policy, the
limits and the audit are those of calling it. A handle that is not the caller's is answered as one that never was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import ConfigDict

from octavo.core.arguments import NOTHING
from octavo.core.clock import iso
from octavo.core.errors import InternalError, NotFound, OctavoError, ProtocolError
from octavo.core.forms import Answer
from octavo.core.ports.chain import Reply
from octavo.core.tasks import Ended, Lost, Task
from octavo.core.tools import ToolInfo, ToolResult, unknown_task
from octavo.core.values import Call, Principal
from octavo.transport.mcp import eras, wire_names
from octavo.transport.mcp.calls import Calls, incident
from octavo.transport.mcp.channel import McpChannel
from octavo.transport.mcp.forms import elicitation

Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], Principal]

POLL_MS = 1000
_REQUIRED: Mapping[str, Any] = {"extensions": {wire_names.TASKS_EXTENSION: {}}}
_ACTIONS = frozenset(("accept", "decline", "cancel"))


class TaskParams(types.RequestParams):
    model_config = ConfigDict(defer_build=True)

    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class TasksExtension:
    def __init__(self, calls: Calls, who: Who) -> None:
        self._calls, self._who = calls, who
        self._tasks = calls.server.tasks
        self._tasks.speaks = self._spoken
        self._tasks.wake()

    def call(self, ctx: Context, info: ToolInfo, arguments: Mapping[str, Any], channel: McpChannel) -> Call:
        """Of a tool that lasts. It becomes no task for a client that knows none."""
        who = self._who(ctx)
        channel.lasts = declared(ctx)
        call = self._calls.build.invoke(who, info.name, arguments, channel)
        if info.task == "must" and not channel.lasts and self._calls.works.policy.allows(who, "invoke", call.ref):
            return call._replace(fault=_undeclared())  # told to nobody who may not know of the tool
        return call

    async def get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        return {"resultType": "complete", **detailed(await self._ask("poll", ctx, params))}

    async def update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        answers = {key: answer for key, said in params.input_responses.items() if (answer := _answer(said)) is not None}
        await self._ask("answer", ctx, params, answers)
        return {"resultType": "complete"}

    async def cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        await self._ask("cancel", ctx, params)
        return {"resultType": "complete"}

    async def _ask(
        self,
        op: Literal["poll", "answer", "cancel"],
        ctx: Context,
        params: TaskParams,
        answers: Mapping[str, Answer] = NOTHING,
    ) -> Any:
        """What is wrong with the request walks the pipeline too, and so is counted."""
        if ctx.protocol_version != wire_names.MODERN:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        fault = None if declared(ctx) else _undeclared()
        headers = getattr(ctx.request, "headers", None)  # none on stdio
        if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
            why = "The header Mcp-Name must be the taskId of the request"
            fault = ProtocolError(why, code=types.HEADER_MISMATCH, reason="header_mismatch")
        call = await self._calls.task(op, self._who(ctx), params.task_id, fault, answers)
        try:
            return await self._calls.ask(call)
        except NotFound:  # the tool is hidden from the caller by now, and so is what became of it
            raise unknown_task(params.task_id) from None

    def _spoken(self, tool: str, reply: Reply | BaseException) -> Ended:
        """As a call that was answered at once would tell it."""
        if not isinstance(reply, BaseException | ToolResult):
            reply = InternalError(f"The tool {tool} gave an answer that is no tool result", toolName=tool)
        try:
            if isinstance(reply, ToolResult):
                return Ended("completed", _encoded(self._calls.tool_result(tool, reply)))
        except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as fault:  # foreign values
            reply = incident(fault)
        error = reply if isinstance(reply, OctavoError) else incident(reply)
        wire = self._calls.codes.encode(error, modern=True)
        if isinstance(error, ProtocolError | Lost):
            told = {"code": wire.code, "message": wire.message, "data": wire.data}
            return Ended("failed", msgspec.json.encode(told), wire.message)
        return Ended("completed", _encoded(self._calls.tool_error(tool, wire)))


def created(task: Task) -> dict[str, Any]:
    """The answer to the call that has become a task."""
    return {"resultType": "task", **_facts(task)}


def detailed(task: Task) -> dict[str, Any]:
    told = _facts(task)
    if task.status == "completed":
        told["result"] = msgspec.json.decode(task.outcome)
    elif task.status == "failed":
        told["error"] = msgspec.json.decode(task.outcome)
    elif task.status == "input_required":
        told["inputRequests"] = {key: elicitation(form) for key, form in task.questions.items()}
    return told


def _facts(task: Task) -> dict[str, Any]:
    told: dict[str, Any] = {
        "taskId": task.id,
        "status": task.status,
        "createdAt": iso(task.created),
        "lastUpdatedAt": iso(task.updated),
        "ttlMs": math.ceil(task.ttl * 1000),
        "pollIntervalMs": POLL_MS,
    }
    return {**told, "statusMessage": task.message} if task.message else told


def _encoded(shape: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(eras.tool_result(dict(shape), wire_names.MODERN))


def _answer(said: Any) -> Answer | None:
    """None for what is no answer to a form: its question goes on waiting."""
    if not isinstance(said, Mapping) or said.get("action") not in _ACTIONS:
        return None
    content = said.get("content")
    if content is not None and not isinstance(content, Mapping):
        return None
    return Answer(said["action"], dict(content or {}))


def declared(ctx: Context) -> bool:
    able = ctx.session.client_capabilities if ctx.protocol_version == wire_names.MODERN else None
    return able is not None and wire_names.TASKS_EXTENSION in (able.extensions or {})


def _undeclared() -> ProtocolError:
    return ProtocolError(
        "The client has not declared the extension for tasks: "
        f"send {wire_names.TASKS_EXTENSION} among its capabilities",
        reason="missing_capability",
        code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        requiredCapabilities=_REQUIRED,
    )
