"""Raw requests that once told lane and SDK apart, or would if one check of the lane were missing."""

from __future__ import annotations

import json
from typing import Any

from tests.gate.doors import modern_headers
from tests.gate.twins import META, frame, initialize

_OPEN = json.dumps(META)
_FILTERED = json.dumps({**META, "dev.octavo/filter": {"mimeType": "text/markdown"}})
_PROGRESS = json.dumps({**META, "progressToken": 1})
_OLD = json.dumps({**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"})


def _line(
    params: str, *, head: str = '"jsonrpc":"2.0","id":1,', method: str = "resources/read", tail: str = ""
) -> bytes:
    return f'{{{head}"method":"{method}","params":{{{params}}}{tail}}}'.encode()


def lines(era: str) -> list[list[bytes]]:
    """Step by step, what a client writes at once."""
    meta = f',"_meta":{_OPEN}' if era == "modern" else ""
    alone = meta[1:]
    uri = f'"uri":"file://guide.md"{meta}'
    one = [
        _line(uri),
        _line(uri, tail=',"x":1'),
        _line(uri, tail=',"result":{}'),
        _line(uri + ',"x":1'),
        _line(f'"filter":{{"mimeType":"text/markdown"}}{meta}', method="resources/list"),
        _line(uri + ',"inputResponses":{}'),
        *(_line(uri, head=f'"jsonrpc":{version},"id":1,') for version in ('"1.0"', "2.0", "null")),
        _line(uri, head='"id":1,'),
        *(
            _line(uri, head=f'"jsonrpc":"2.0","id":{request_id},')
            for request_id in (
                "7",
                "007",
                "0",
                "00",
                "-0",
                "+7",
                " 8",
                "8 ",
                "null",
                "true",
                "1.0",
                "1.5",
                str(1 << 70),
                str(1 << 64),
                '""',
                '"7"',
                "7",
                "[]",
                '"a:b"',
            )
        ),
        _line(uri, head='"jsonrpc":"2.0",'),
        _line(uri, head='"jsonrpc":"2.0","id":1,"id":2,'),
        _line('"uri":"mem://one",' + uri),
        _line(uri + ',"uri":null'),
        _line(r'"uri":"file\u003a//guide.md"' + meta),
        _line(r'"uri":"x","uri":"file\u003a//guide.md"' + meta),
        _line(f'"name":"sum","arguments":{{"n":1,"n":2}}{meta}', method="tools/call"),
        _line(f'"name":"sum","arguments":{{"n":{1 << 70}}}{meta}', method="tools/call"),
        _line(f'"name":"sum","arguments":{{"x":{"[" * 70}{"]" * 70}}}{meta}', method="tools/call"),
        _line(f'"name":"sum","arguments":[]{meta}', method="tools/call"),
        _line(f'"name":"sum","arguments":"x"{meta}', method="tools/call"),
        _line(f'"name":"unsafe"{meta}', method="tools/call"),
        _line(f'"name":"refuse","arguments":{{"n":3}}{meta}', method="tools/call"),
        _line(f'"name":"boom"{meta}', method="tools/call"),
        _line(f'"name":"greet","arguments":{{"who":7}}{meta}', method="prompts/get"),
        _line(f'"name":"greet","arguments":{{"who":null}}{meta}', method="prompts/get"),
        _line(f'"uri":"file://nope.md"{meta}'),
        _line(f'"_meta":{_FILTERED}', method="resources/list"),
        _line(f'"_meta":{_FILTERED}', method="resources/list"),
        _line(f'"uri":"file://guide.md","_meta":{_PROGRESS}'),
        _line(f'"name":"unsafe","_meta":{_PROGRESS}', method="tools/call"),
        _line(f'"uri":"file://guide.md","_meta":{_OLD}'),
        _line(f'"uri":"file://guide.md","_meta":{_OLD}'),
        _line(f'"uri":"file://guide.md","_meta":{_OPEN}'),
        _line('"uri":"file://guide.md"'),
        _line('"uri":"file://guide.md","_meta":{}'),
        _line(alone, method="tools/list"),
    ]
    slow = {"name": "slow", **({"_meta": META} if era == "modern" else {})}
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
    steps = [[line] for line in one]
    steps += [[frame("tools/call", slow, 1)], [cancel % b'"1"'], [frame("tools/call", slow, "1")], [cancel % b"1"]]
    if era == "modern":  # two with one id: the answer to one says nothing about the envelope of the other
        half = json.dumps({"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
        good = _line(f'"_meta":{_FILTERED}', head='"jsonrpc":"2.0","id":"x",', method="resources/list")
        bad = _line(f'"uri":"file://guide.md","_meta":{half}', head='"jsonrpc":"2.0","id":"x",')
        steps += [[good, bad], [bad]]
    if era != "modern":
        media = frame("tools/call", {"name": "media"}, 4)
        steps += [[initialize("2024-11-05", 2), media], [media], [initialize("2025-11-25", 3), media], [media]]
    return steps


Exchange = tuple[bytes, list[tuple[str, str]]]


def exchanges(key: str, other: str) -> list[Exchange]:
    """HTTP requests in an order in which a forgetful memo would give something away."""
    body: dict[str, Any] = {
        "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file://guide.md", "_meta": META},
    }  # fmt: skip
    good = modern_headers(body, key)

    def but(name: str, value: str | None, *, twice: bool = False) -> list[tuple[str, str]]:
        kept = good if twice else [(k, v) for k, v in good if k.lower() != name.lower()]
        return [*kept, *([] if value is None else [(name, value)])]

    raw = json.dumps(body).encode()
    nothing = json.dumps({**body, "params": {"uri": "", "_meta": META}}).encode()
    missing = {**body, "params": {"uri": "file://nope.md", "_meta": META}}
    listing = {**body, "method": "tools/list", "params": {"_meta": META}}
    region = {
        **body,
        "method": "tools/call",
        "params": {"name": "region", "arguments": {"region": "eu"}, "_meta": META},
    }
    made: list[Exchange] = [(raw, but("Accept", "application/json")), (raw, but("Accept", "application/json"))]
    made += [(raw, good)] * 3
    for name, value in (
        ("Accept", "application/json"), ("Accept", None), ("Host", "evil.example"), ("Host", None),
        ("Origin", "https://evil.example"), ("Content-Type", "text/plain"), ("Content-Type", None), ("Authorization", None),
        ("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {other}"), ("Mcp-Method", "tools/list"), ("Mcp-Method", None),
        ("Mcp-Name", "file://nope.md"), ("Mcp-Name", None), ("Mcp-Name", ""), ("Mcp-Name", "=?base64?ZmlsZTovL2d1aWRlLm1k?="),
        ("Mcp-Name", "=?base64?!?="), ("MCP-Protocol-Version", "2099-01-01"),
    ):  # fmt: skip
        made.append((raw, but(name, value)))
    for name, value in (
        ("Mcp-Name", "file://guide.md"), ("Mcp-Name", "file://nope.md"), ("Mcp-Method", "resources/read"), ("Accept", "x"),
        ("MCP-Protocol-Version", "2026-07-28"), ("Host", "evil.example"), ("Authorization", "Bearer wrong"),
    ):  # fmt: skip
        made.append((raw, but(name, value, twice=True)))
        made.append((raw, [(name, value), *good]))
    made += [(json.dumps(one).encode(), modern_headers(one, key)) for one in (missing, listing, region)]
    made += [(json.dumps(listing).encode(), [*modern_headers(listing, key), ("Mcp-Name", "")])]
    made += [(nothing, but("Mcp-Name", None)), (nothing, but("Mcp-Name", ""))]
    made += [(raw, modern_headers(body, other))]
    made += [(line, good) for (line, *rest) in lines("modern")[:30] if not rest]
    return made
