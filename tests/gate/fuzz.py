"""A seeded source of requests that go wrong in every way we could think of.

A message is a tree of (name, text) pairs rather than a dictionary, so that members can be there twice and
values can be no JSON at all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.gate.corpus import CASES
from tests.gate.doors import modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize

Members = list[tuple[str, Any]]  # a value is JSON text or Members

VALUES = (
    "null", "true", "false", "0", "1", "-1", "-0", "1.0", "1e2", "1180591620717411303424", "18446744073709551615",
    '"7"', '""', '"x"', "[]", "{}", "[1]", '{"a":1}', '{"a":1,"a":2}', "NaN", "Infinity", "1e400", r'"\ud800"', r'"\u0000"',
    '"file://guide.md"', '"resources/read"', '"2.0"', '"1.0"', "[" * 70 + "]" * 70, "01", "'x'", "",
)  # fmt: skip
IDS = ("null", "true", "1.0", "1180591620717411303424", "-7", '"7"', '""', "7", r'"é"', '"한글"', "[]", "{}", "18446744073709551616",
       r'"a\u003ab"', '"a:b"')  # fmt: skip
NAMES = ("id", "jsonrpc", "method", "params", "uri", "cursor", "name", "arguments", "_meta", "filter", "inputResponses",
         "requestState", "x", "", r"\u0075ri", "result", "error", "task")  # fmt: skip
META_NAMES = (
    *META, "io.modelcontextprotocol/clientInfo", "progressToken", "io.modelcontextprotocol/logLevel", "dev.octavo/filter",
    "traceparent", "x",
)  # fmt: skip
META_VALUES = (
    *VALUES, '"2026-07-28"', '"2025-11-25"', '"2099-01-01"', '{"name":"n","version":"1"}', '{"name":"n"}',
    '{"elicitation":{}}', '{"roots":{"listChanged":true}}',
)  # fmt: skip


def tree(value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, tree(member)) for name, member in value.items()]
    return json.dumps(value, ensure_ascii=False)


def text(value: Any, random: Random, loose: bool) -> str:
    if isinstance(value, str):
        return value
    blank = (lambda: random.choice(("", " ", "  ", "\t", "\r"))) if loose else (lambda: "")
    members = [f'{blank()}"{name}"{blank()}:{blank()}{text(member, random, loose)}{blank()}' for name, member in value]
    return "{" + ",".join(members) + "}"


def _drop(members: Members, random: Random, names: Any, values: Any) -> None:
    del members[random.randrange(len(members))]


def _double(members: Members, random: Random, names: Any, values: Any) -> None:
    name, member = random.choice(members)
    members.insert(random.randrange(len(members) + 1), (name, random.choice((member, random.choice(values)))))


def _retype(members: Members, random: Random, names: Any, values: Any) -> None:
    at = random.randrange(len(members))
    members[at] = (members[at][0], random.choice(IDS if members[at][0] == "id" else values))


def _add(members: Members, random: Random, names: Any, values: Any) -> None:
    members.insert(random.randrange(len(members) + 1), (random.choice(names), random.choice(values)))


def _shuffle(members: Members, random: Random, names: Any, values: Any) -> None:
    random.shuffle(members)


CHANGES: tuple[Callable[[Members, Random, Any, Any], None], ...] = (_drop, _double, _retype, _add, _shuffle)


def _spoil(line: bytes, random: Random) -> bytes:
    """Below JSON: bytes."""
    at = random.randrange(len(line) + 1)
    return random.choice((
        b"\xef\xbb\xbf" + line,
        line + b"\r",
        line + b" trailing",
        line + line,
        b"[" + line + b"]",
        b"  " + line,
        b"\x0b" + line,
        line[:at],
        line[:at] + b"\xff" + line[at:],
        line[:at] + b"\x00" + line[at:],
        line[:at] + b"\xed\xa0\x80" + line[at:],
        line.replace(b'"2.0"', b'"2.0","deep":' + b"[" * 2000 + b"]" * 2000),
        line.replace(b":", b": ", 1),
        b"",
    ))  # fmt: skip


def message(random: Random, modern: bool) -> tuple[dict[str, Any], bytes]:
    """What the message was meant to be, and what became of it. Three in ten are left as they are."""
    method, params = random.choice([*CASES.values()])
    meant: dict[str, Any] = {"jsonrpc": "2.0", "id": random.choice((1, 7, "7", "x")), "method": method}
    if params is not None or modern:
        meant["params"] = {**(params or {}), **({"_meta": META} if modern else {})}
    members = tree(meant)
    for _ in range(random.choice((0, 0, 0, 1, 1, 1, 1, 1, 2, 3))):
        inner = next((m for name, m in members if name == "params" and isinstance(m, list)), None)
        meta = next((m for name, m in inner or () if name == "_meta" and isinstance(m, list)), None)
        target, names, values = random.choice((
            (members, NAMES, VALUES), (inner, NAMES, VALUES), (meta, META_NAMES, META_VALUES),
        ))  # fmt: skip
        if target:
            random.choice(CHANGES)(target, random, names, values)
    line = text(members, random, random.random() < 0.2).encode("utf-8", "surrogatepass")
    return meant, _spoil(line, random) if random.random() < 0.1 else line


def steps(random: Random, era: str) -> list[list[bytes]]:
    """What a client writes, step by step: mostly one message, sometimes several that meet each other.

    A cancellation is a step of its own: whether it overtakes a call that comes with it is nobody's promise.
    """
    modern = era == "modern"
    meta = {"_meta": META} if modern else {}

    def call(request_id: Any, name: str = "slow") -> bytes:
        return frame("tools/call", {"name": name, **meta}, request_id)

    def cancel(request_id: Any) -> bytes:
        params = {"requestId": request_id}
        return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode()

    one = message(random, modern)[1].replace(b"\n", b"")
    read = frame("resources/read", {"uri": "file://guide.md", **meta}, 7)
    draw = random.random()
    if draw < 0.88:
        return [[one]]
    if draw > 0.998:
        return [[one[:-1] + b" " * (4 << 20) + one[-1:], read]]
    others = message(random, modern)[1].replace(b"\n", b"")
    return random.choice((
        [[call(1)], [cancel(1)]],
        [[call("1")], [cancel(1)]],
        [[call(1)], [cancel("1")]],
        [[call(1)], [cancel(None), cancel(True), cancel(1.0), cancel("one")], [cancel(1)]],
        [[call("None")], [cancel(None)], [cancel("None")]],
        [[call(1), read], [cancel(1)]],
        [[call(1), call(2), call(3)], [cancel(2), read], [cancel(3), cancel(1)]],
        [[read], [cancel(7)]],
        [[cancel(7), read]],
        [[cancel("unknown")]],
        [[read, read]],
        [[read, one]],
        [[one, others]],
        [[frame("resources/read", {"uri": "mem://one", **meta}, i) for i in range(5)]],
        [[initialize("2025-11-25", 5), read]] if modern else [[read]],
        [[initialize(random.choice(("2025-11-25", "2025-06-18", "2024-11-05", "1999-01-01")), 5), *[read] * (not modern)]],
        [[frame("resources/read", {"uri": "file://guide.md", "_meta": META}, 3)]],
        [[INITIALIZED]],
    ))  # fmt: skip


def opening(random: Random) -> list[list[bytes]]:
    """How a connection can begin: requests before the handshake, pipelined with it, and both eras mixed."""
    parts = [
        initialize(random.choice(("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2026-07-28", "x")), 1),
        INITIALIZED,
        frame("ping", {}, 2),
        frame("resources/read", {"uri": "file://guide.md"}, 3),
        frame("resources/read", {"uri": "file://guide.md"}, "3"),
        frame("resources/read", {"uri": "file://guide.md", "_meta": META}, 4),
        frame("resources/read", {"uri": "file://nope.md", "_meta": META}, 5),
        frame("server/discover", {"_meta": META}, 6),
        frame("initialize", {"protocolVersion": 1}, 7),
        frame("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, 8),
        frame("tools/list", {"_meta": {}}, 9),
        b"not json",
    ]
    chosen = [random.choice(parts) for _ in range(random.randint(2, 8))]
    together = random.randint(1, 4)
    return [chosen[i : i + together] for i in range(0, len(chosen), together)]


def exchange(random: Random, key: str) -> tuple[bytes, list[tuple[str, str]], dict[str, Any]]:
    """An HTTP request: body, headers, and how it is sent."""
    meant, body = message(random, True)
    if random.random() < 0.6:
        body = json.dumps(meant, ensure_ascii=random.random() < 0.5).encode()
    headers = modern_headers(meant, key)
    how: dict[str, Any] = {"chunks": random.choice((1, 1, 1, 2, 7))}
    for _ in range(random.choice((0, 0, 1, 1, 1, 2))):
        at = random.randrange(len(headers))
        name, value = headers[at]
        match random.randrange(8):
            case 0:
                del headers[at]
            case 1:
                headers.insert(random.randrange(len(headers) + 1), (name, random.choice((value, "other", ""))))
            case 2:
                headers[at] = (
                    name,
                    random.choice(("", "x", value.upper(), value + " ", " " + value, value + ",x", value[:-1])),
                )
            case 3:
                headers[at] = (name, f"=?base64?{base64.b64encode(value.encode()).decode()}?=")
            case 4:
                headers[at] = (name, random.choice(("=?base64?!!?=", "=?base64?/w==?=", "=?BASE64?eA==?=")))
            case 5:
                headers[at] = (name.swapcase(), value)
            case 6:
                headers.append(random.choice((
                    ("Origin", "http://127.0.0.1:8321"), ("Origin", "https://console.example"), ("Origin", "https://evil.example"),
                    ("Origin", "null"), ("Mcp-Session-Id", "abc"), ("Mcp-Param-Region", "eu"), ("Mcp-Name", "x"),
                    ("Content-Encoding", "gzip"), ("Last-Event-ID", "1"), ("X-Forwarded-Host", "evil"), ("Mcp-Name", ""),
                )))  # fmt: skip
            case _:
                headers[at] = random.choice((
                    ("Host", "octavo.example"), ("Host", "evil.example"), ("Host", "127.0.0.1"),
                    ("Content-Type", "application/json; charset=utf-8"), ("Content-Type", "text/plain"),
                    ("Accept", "*/*"), ("Accept", "application/json"), ("Accept", "text/event-stream"), ("Accept", ""),
                    ("Accept", "text/event-stream;q=0.5, application/json;q=0"), ("Authorization", "Basic eDp5"),
                    ("Authorization", "Bearer wrong"), ("Authorization", f"bearer {key}"), ("Authorization", f"Bearer  {key} "),
                    ("MCP-Protocol-Version", "2099-01-01"), ("MCP-Protocol-Version", ""),
                    ("Mcp-Method", "tools/list"), ("Mcp-Method", "Resources/Read"), ("Mcp-Name", "file://nope.md"),
                ))  # fmt: skip
    if random.random() < 0.03:
        how["method"] = random.choice(("GET", "DELETE", "PUT", "HEAD", "OPTIONS"))
        # A handshake-era GET opens a stream that stays: not a case for the lane.
        headers = [(k, v) for k, v in headers if k.lower() != "mcp-protocol-version"] + [
            ("MCP-Protocol-Version", "2026-07-28")
        ]
    elif not any(k.lower() == "mcp-protocol-version" and v == "2026-07-28" for k, v in headers):
        headers = [(k, v) for k, v in headers if k.lower() != "mcp-protocol-version"] + [
            ("MCP-Protocol-Version", random.choice(("2026-07-28", "2099-01-01", "x")))
        ]
    return body, headers, how
