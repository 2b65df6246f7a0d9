"""The tool `websocket`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from octavo.core.errors import InvalidParams, SourceUnavailable
from octavo.core.external import Connector, Socket
from octavo.core.tools import Text, ToolInfo, ToolResult
from octavo.text.tokens import fit
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.answer_budget import Budget
from octavo.tools.builtin.handles import Handles
from octavo.tools.builtin.web.http_request import ACTS
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

_LONGEST_WAIT: Final = 60.0
_NEEDS: Final = {"connect": "url", "send": "message", "receive": "socket", "close": "socket"}


def websocket_tool(connector: Connector, sockets: Handles[Socket], hosts: str, *, budget: Budget) -> Tool:
    async def websocket(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        action, owner = asked["action"], ctx.principal.id
        for needed in {_NEEDS[action], *(("socket",) if action != "connect" else ())}:
            if needed not in asked:
                raise InvalidParams(f"{action} needs {needed}")
        if action == "connect":
            connector.refuse(asked["url"])
            ctx.begins()
            name, _ = await sockets.open(owner, lambda: connector.connect(asked["url"]))
            return d.result(f"Open: socket {name}", {"socket": name})
        name = asked["socket"]
        if action == "close":
            sockets.get(owner, name)
            ctx.begins()
            await sockets.close(owner, name)
            return d.result(f"Closed {name}", {"socket": name})
        socket = sockets.get(owner, name)
        ctx.begins()
        try:
            if action == "send":
                await socket.send(asked["message"])
                return d.result("Sent", {"socket": name})
            return await _received(socket, name, asked.get("seconds", 5), budget)
        except SourceUnavailable:
            await sockets.close(owner, name)
            raise

    info = ToolInfo(
        name="websocket",
        title="WebSocket",
        description="Opens a WebSocket, sends a message, receives the next one, closes it. "
        f"connect gives the socket that the others need. Allowed: {hosts}.",
        input_schema={
            **d.an_object(
                {
                    "action": d.one_of(*_NEEDS),
                    "url": d.FILLED,
                    "socket": d.FILLED,
                    "message": d.TEXT,
                    "seconds": d.said({"type": "number", "minimum": 0, "maximum": _LONGEST_WAIT}, "to wait; 5"),
                },
                ["action"],
            ),
            "additionalProperties": False,
        },
        output_schema=d.an_object({"socket": d.TEXT, "kind": d.TEXT, "size": d.WHOLE, "message": d.TEXT}, ["socket"]),
        hints=ACTS,
        asks="it talks to another machine",
        quiet=lambda arguments: arguments.get("action") in ("receive", "close"),
        timeout=_LONGEST_WAIT + 30,
    )
    return Tool(info, websocket, rehearses=True)


async def _received(socket: Socket, name: str, seconds: float, budget: Budget) -> ToolResult:
    message = await socket.receive(seconds)
    if message is None:
        return d.result(f"Nothing came within {seconds:g} s", {"socket": name, "kind": "none"})
    content = message.content
    if isinstance(content, bytes):
        return d.result(
            f"{len(content):,} bytes that are no text", {"socket": name, "kind": "binary", "size": len(content)}
        )
    fitted = fit(content, *budget.told_twice.beside(name))
    cut = () if fitted.cut_at_line is None else (Text(f"[cut: {len(fitted.rest):,} more characters]"),)
    told = {"socket": name, "kind": "text", "size": len(content.encode()), "message": fitted.text}
    return ToolResult(content=(Text(fitted.text), *cut), structured={**told, **({"cut": True} if cut else {})})
