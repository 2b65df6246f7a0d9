"""Requests with a name: every hot method, and everything that can become of it."""

from __future__ import annotations

from typing import Any

ERAS = ("modern", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
WITH_LANE = ("modern", "2025-11-25", "2025-06-18")
PRINCIPALS = ("brand", "hr", "nobody", "local")

Case = tuple[str, dict[str, Any] | None]

CASES: dict[str, Case] = {
    "read found": ("resources/read", {"uri": "file://guide.md"}),
    "read missing": ("resources/read", {"uri": "file://nope.md"}),
    "read denied": ("resources/read", {"uri": "file://hr/pay.md"}),
    "read hidden": ("resources/read", {"uri": "file://hidden/plan.md"}),
    "read too large": ("resources/read", {"uri": "file://large.txt"}),
    "read binary": ("resources/read", {"uri": "file://image.png"}),
    "read Hangul": ("resources/read", {"uri": "file://문서/안내.md"}),
    "read Hangul, escaped": ("resources/read", {"uri": "file://%EB%AC%B8%EC%84%9C/안내.md"}),
    "read empty": ("resources/read", {"uri": "file://empty.txt"}),
    "read a blank": ("resources/read", {"uri": "file://notes/a%20b.txt"}),
    "read what looks like an error": ("resources/read", {"uri": "file://error.txt"}),
    "read memory": ("resources/read", {"uri": "mem://one"}),
    "read memory, binary": ("resources/read", {"uri": "mem://bin"}),
    "read memory, denied": ("resources/read", {"uri": "mem://two"}),
    "read a template": ("resources/read", {"uri": "mem://item/가"}),
    "read a folder": ("resources/read", {"uri": "file://notes"}),
    "read climbing": ("resources/read", {"uri": "file://../x"}),
    "read encoded climbing": ("resources/read", {"uri": "file://%2e%2e/x"}),
    "read absolute outside": ("resources/read", {"uri": "file:///etc/passwd"}),
    "read unknown scheme": ("resources/read", {"uri": "what://x"}),
    "read no URI": ("resources/read", {"uri": "weird"}),
    "read nothing": ("resources/read", {"uri": ""}),
    "read with a query": ("resources/read", {"uri": "mem://one?version=2"}),
    "read a long address": ("resources/read", {"uri": "file://" + "x" * 30_000}),
    "read a tool": ("resources/read", {"uri": "tool://show"}),
    "read without address": ("resources/read", {}),
    "read null": ("resources/read", {"uri": None}),
    "list": ("resources/list", {}),
    "list without params": ("resources/list", None),
    "list null cursor": ("resources/list", {"cursor": None}),
    "list empty cursor": ("resources/list", {"cursor": ""}),
    "list bad cursor": ("resources/list", {"cursor": "AAAA"}),
    "list with a name": ("resources/list", {"name": "x"}),
    "list filtered": ("resources/list", {"filter": {"mimeType": "text/markdown"}}),
    "list under": ("resources/list", {"filter": {"under": "file://notes"}}),
    "list under the whole source": ("resources/list", {"filter": {"under": "file://"}}),
    "list under tools": ("resources/list", {"filter": {"under": "tool://"}}),
    "templates": ("resources/templates/list", {}),
    "templates page 2": ("resources/templates/list", {"cursor": "x"}),
    "tools": ("tools/list", {}),
    "prompts": ("prompts/list", {}),
    "tool reads": ("tools/call", {"name": "show", "arguments": {"uri": "mem://one"}}),
    "tool reads binary": ("tools/call", {"name": "show", "arguments": {"uri": "file://image.png"}}),
    "tool reads missing": ("tools/call", {"name": "show", "arguments": {"uri": "mem://none"}}),
    "tool reads denied": ("tools/call", {"name": "show", "arguments": {"uri": "file://hr/pay.md"}}),
    "tool without its argument": ("tools/call", {"name": "show", "arguments": {}}),
    "tool with bad arguments": ("tools/call", {"name": "show", "arguments": {"uri": 7}}),
    "tool with null arguments": ("tools/call", {"name": "sum", "arguments": None}),
    "tool without arguments": ("tools/call", {"name": "sum"}),
    "tool structured": ("tools/call", {"name": "sum", "arguments": {"n": 41}}),
    "tool structured, bad": ("tools/call", {"name": "sum", "arguments": {"n": 1.5}}),
    "tool structured, integral": ("tools/call", {"name": "sum", "arguments": {"n": 1.0}}),
    "tool media": ("tools/call", {"name": "media"}),
    "tool odd values": ("tools/call", {"name": "odd"}),
    "tool no JSON": ("tools/call", {"name": "broken"}),
    "tool crash": ("tools/call", {"name": "boom"}),
    **{f"tool refusal {n}": ("tools/call", {"name": "refuse", "arguments": {"n": n}}) for n in range(4)},
    "tool denied": ("tools/call", {"name": "secret"}),
    "tool unknown": ("tools/call", {"name": "nothing"}),
    "tool unknown, odd name": ("tools/call", {"name": "../x"}),
    "tool unsafe": ("tools/call", {"name": "unsafe"}),
    "tool with a header": ("tools/call", {"name": "region", "arguments": {"region": "eu"}}),
    "tool deep arguments": ("tools/call", {"name": "sum", "arguments": {"n": 1, "deep": [[[[[[[[[[[]]]]]]]]]]]}}),
    "prompt": ("prompts/get", {"name": "greet", "arguments": {"who": "세계"}}),
    "prompt without arguments": ("prompts/get", {"name": "greet"}),
    "prompt with undeclared": ("prompts/get", {"name": "greet", "arguments": {"x": "y"}}),
    "prompt with a number": ("prompts/get", {"name": "greet", "arguments": {"who": 7}}),
    "prompt of a file": ("prompts/get", {"name": "summarise", "arguments": {"uri": "mem://one"}}),
    "prompt reads denied": ("prompts/get", {"name": "summarise", "arguments": {"uri": "file://hr/pay.md"}}),
    "prompt missing argument": ("prompts/get", {"name": "summarise"}),
    "prompt unknown": ("prompts/get", {"name": "nothing"}),
    "ping": ("ping", {}),
    "unknown method": ("no/such", {}),
    "discover": ("server/discover", {}),
    "completion": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "summarise"}, "argument": {"name": "lang", "value": "k"}},
    ),
    "level": ("logging/setLevel", {"level": "info"}),
}

HOT = frozenset(
    ("resources/read", "resources/list", "resources/templates/list", "tools/list", "tools/call", "prompts/list",
     "prompts/get")
)  # fmt: skip
