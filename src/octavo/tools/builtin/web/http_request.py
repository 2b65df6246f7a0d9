"""The tool `http_request`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from octavo.core.errors import InvalidParams
from octavo.core.external import Fetcher, HttpReply, HttpRequest
from octavo.core.ref import Ref
from octavo.core.tools import Audio, Block, Embedded, Hints, Image, Text, ToolInfo, ToolResult
from octavo.core.values import Content, Entry
from octavo.text.tokens import fit
from octavo.tools.builtin import schema_dsl as d
from octavo.tools.builtin.answer_budget import Budget, Media
from octavo.tools.context import ToolContext
from octavo.tools.registry import Tool

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ACTS: Final = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
_TOLD: Final = ("content-type", "last-modified", "etag", "link", "retry-after", "content-range", "allow")
_TEXTUAL: Final = ("json", "xml", "javascript", "yaml", "csv", "x-www-form-urlencoded", "graphql")
_QUEUE: Final = 300.0  # seconds that a request may wait for its turn, beside its own time


def http_request_tool(fetcher: Fetcher, hosts: str, *, seconds: float, budget: Budget, media: Media) -> Tool:
    """`hosts` says what may be asked, for the description."""

    async def http_request(ctx: ToolContext, asked: Mapping[str, Any]) -> ToolResult:
        body, kind = _body(asked)
        headers = {**kind, **asked.get("headers", {})}
        request = HttpRequest(url=asked["url"], method=asked.get("method", "GET"), headers=headers, body=body)
        fetcher.refuse(request)
        ctx.begins()
        return _answer(await fetcher.fetch(request), budget, media)

    info = ToolInfo(
        name="http_request",
        title="HTTP request",
        description=f"Asks a web server. Allowed: {hosts}.",
        input_schema={
            **d.an_object(
                {
                    "url": d.TEXT,
                    "method": d.one_of(*METHODS),
                    "headers": {"type": "object", "additionalProperties": d.TEXT, "maxProperties": 20},
                    "body": d.TEXT,
                    "json": d.said({}, "a body, instead of body"),
                },
                ["url"],
            ),
            "additionalProperties": False,
        },
        output_schema=d.an_object(
            {
                "status": d.WHOLE,
                "url": d.TEXT,
                "type": d.TEXT,
                "size": d.WHOLE,
                "headers": {"type": "object"},
                "text": d.TEXT,
            },
            ["status", "url", "size"],
        ),
        hints=ACTS,
        asks="it sends something to another machine",
        quiet=_only_asks,
        timeout=seconds + _QUEUE,
    )
    return Tool(info, http_request, rehearses=True)


def _only_asks(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("method", "GET") in ("GET", "HEAD") and not {"body", "json"}.intersection(arguments)


def _body(asked: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Of the request, and the header that goes with it."""
    if "body" in asked and "json" in asked:
        raise InvalidParams("Give body or json, not both")
    try:
        if "json" in asked:
            return json.dumps(asked["json"], ensure_ascii=False).encode(), {"content-type": "application/json"}
        return asked.get("body", "").encode(), {"content-type": "text/plain; charset=utf-8"}
    except UnicodeEncodeError:
        raise InvalidParams("The body must be text that UTF-8 can write") from None


def _answer(reply: HttpReply, budget: Budget, media: Media) -> ToolResult:
    kind = reply.headers.get("content-type", "application/octet-stream" if reply.body else "")
    mime, _, parameters = kind.partition(";")
    head = f"{reply.status} {reply.url}" + (f", {mime.strip()}, {len(reply.body):,} bytes" if reply.body else "")
    told = {name: reply.headers[name][:500] for name in _TOLD if name in reply.headers}
    blocks: list[Block] = [Text(head)]
    text: dict[str, str] = {}
    if reply.body:
        room = budget.told_twice.beside(head, *told.values())
        shown = _shown(reply, mime.strip().lower(), parameters, room, media)
        blocks.append(shown)
        text = {"text": shown.text} if isinstance(shown, Text) else {}
    return ToolResult(
        content=tuple(blocks),
        structured={
            "status": reply.status,
            "url": reply.url,
            "type": mime.strip(),
            "size": len(reply.body),
            "headers": told,
            **text,
        },
        is_error=reply.status >= 400,
    )


def _shown(reply: HttpReply, mime: str, parameters: str, budget: Budget, media: Media) -> Block:
    text = _text(reply.body, mime, parameters)
    if text is not None:
        fitted = fit(text, *budget)
        cut = "" if fitted.cut_at_line is None else f"\n[cut: {len(fitted.rest):,} more characters]"
        return Text(f"{fitted.text}{cut}")
    if len(reply.body) > media.max_bytes:
        return Text(f"[{len(reply.body):,} bytes of {mime}, more than an answer may hold ({media.max_bytes:,})]")
    if mime.startswith("image/"):
        return Image(reply.body, mime)
    if mime.startswith("audio/"):
        return Audio(reply.body, mime)
    ref = Ref.of("https", ("answer",))
    return Embedded(Content(entry=Entry(ref=ref, name="answer", mime_type=mime), body=reply.body), reply.url)


def _text(body: bytes, mime: str, parameters: str) -> str | None:
    """None for what is none."""
    named = parameters.lower().partition("charset=")[2].strip().strip('"').partition(";")[0]
    if not mime.startswith("text/") and not any(word in mime for word in _TEXTUAL) and not named:
        return None
    try:
        return body.decode(named or "utf-8", "replace")
    except (LookupError, UnicodeError):  # no encoding, or one that replaces nothing
        return body.decode("utf-8", "replace")
