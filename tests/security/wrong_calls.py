"""Whether every wrong call is told what is wrong, what was expected and what to do next, and never what is hidden.

    python -m tests.security.wrong_calls               every tool and every method, both doors, both eras
    python -m tests.security.wrong_calls --show        the answers as well

The tools come from the registry: one that is new has no sample of good arguments yet, and that is a finding too. Of
each argument what its schema rules out is sent, of each that is an address all that can be wrong with one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import INITIALIZED, META, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.stores.state import StateDirectory

TOGETHER: Final = 24  # calls at once
LEAST: Final = 10  # wrong calls of every tool and every method
HEADERS: Final = -32020
KEY: Final = "key-of-brand-000"
WORD: Final = "zqxmerger"  # in all that the caller may not read
CONFIGURATION: Final = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: [.md, .txt, .json, .csv], write: true}
  mem: {kind: memory, scheme: mem, resources: {open/plan: {text: plan}}}
  handbook: {kind: file, roots: [./handbook], expose: false}
  sops: {kind: sop, store: handbook, path: sops}
toolsets: [files, filesystem, seed, data, people, prompts, process, web]
commands: {programs: {say: {run: echo, args: [{name: text}], input: true}}}
web: {hosts: [{host: api.example.com, methods: [GET, POST], websocket: true}]}
agents: {brand: {key: "${BRAND_KEY}"}}
prompts: {dirs: [./prompts]}
tools: {dirs: [./tools]}
approval: {ask: queue}
limits: {per_principal: "off", read: 64KiB}
policy:
  - {who: brand, may: "*", what: "**"}
  - {who: brand, may: "*", what: "*://hr/*", effect: deny, why: HR records are not for agents}
  - {who: brand, may: "*", what: "*://board/*", effect: deny, hide: true}
  - {who: brand, may: [read, write, delete], what: "*://listed/*", effect: deny}
  - {who: brand, may: "*", what: ["tool://sealed", "prompt://sealed"], effect: deny, hide: true}
  - {who: brand, may: "*", what: ["tool://denied", "prompt://denied"], effect: deny}
"""
TOOLS: Final = '''
from octavo.tools import tool

@tool(read_only=True)
def greet(name: str, times: int = 1) -> str:
    """Greets somebody."""
    return "hello " * times + name

@tool(read_only=True)
def sealed(name: str) -> str:
    """Nobody knows of it."""
    return name

@tool(read_only=True)
def denied(name: str) -> str:
    """Nobody may call it."""
    return name
'''
SOP: Final = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\nfunction: func-brand\n---\n{1}\n"
PROMPT: Final = {
    "description": "Summarises.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string"}, "lang": {"type": "string", "enum": ["ko", "en"]}},
        "required": ["uri"],
    },
    "messages": [{"role": "user", "content": [{"type": "resource", "uri": "{{uri}}"}]}],
}
FILES: Final = {
    "files/open/plan.md": "one\ntwo\ntwo\n",
    "files/open/other.md": "other\n",
    "files/open/data.json": '{"a": 1}',
    "files/open/picture.exe": "MZ",
    "files/hr/pay.md": WORD,
    "files/board/merger.md": WORD,
    "files/board/deep/merger.md": WORD,
    "files/board/merger.exe": WORD,
    "files/listed/seen.md": WORD,
    "handbook/sops/brand/plan.md": SOP.format("plan", "words"),
    "handbook/sops/board/merger.md": SOP.format("merger", WORD),
    **{f"prompts/{name}.json": json.dumps({"id": name, **PROMPT}) for name in ("brief", "sealed", "denied")},
    "tools/own.py": TOOLS,
}
TABLES: Final = ("convert", "profile", "query", "validate")
# What each tool takes, where all is right. Whatever stands in ADDRESSES is one.
GOOD: Final[Mapping[str, Mapping[str, Any]]] = {
    "ask_user": {"question": "Which?"},
    "changes": {"target": "file://open"},
    "conversation": {"action": "begin"},
    "convert": {"target": "file://open/data.json", "to": "yaml"},
    "copy": {"target": "file://open/plan.md", "to": "file://open/new.md"},
    "createDirectory": {"path": "open/made"},
    "create_directory": {"target": "file://open/made"},
    "delete": {"target": "file://open/plan.md"},
    "deleteFile": {"path": "open/plan.md"},
    "directory_tree": {"path": "open"},
    "edit": {"target": "file://open/plan.md", "edits": [{"old": "one", "new": "1"}]},
    "edit_file": {"path": "open/plan.md", "edits": [{"oldText": "one", "newText": "1"}]},
    "feedback": {"about": "the plan"},
    "file-reader": {"path": "open/plan.md"},
    "get_file_info": {"path": "open/plan.md"},
    "get_prompt": {"name": "brief", "arguments": {"uri": "file://open/plan.md"}},
    "greet": {"name": "Ann"},
    "denied": {"name": "Ann"},
    "http_request": {"url": "https://api.example.com/x"},
    "info": {"target": "file://open/plan.md"},
    "list": {"target": "file://open"},
    "list_allowed_directories": {},
    "list_directory": {"path": "open"},
    "list_directory_with_sizes": {"path": "open"},
    "list_processes": {},
    "move": {"target": "file://open/plan.md", "to": "file://open/new.md"},
    "move_file": {"source": "open/plan.md", "destination": "open/new.md"},
    "notify": {"message": "done"},
    "profile": {"target": "file://open/data.json"},
    "query": {"sql": "select 1", "target": "file://open/data.json"},
    "read": {"target": "file://open/plan.md"},
    "readFile": {"path": "open/plan.md"},
    "read_file": {"path": "open/plan.md"},
    "read_media_file": {"path": "open/plan.md"},
    "read_multiple_files": {"paths": ["open/plan.md"]},
    "read_output": {"process": "none"},
    "read_text_file": {"path": "open/plan.md"},
    "run_command": {"program": "say", "args": {"text": "x"}},
    "search": {"query": "one", "target": "file://open"},
    "search_files": {"path": "open", "pattern": "**/*"},
    "start_process": {"program": "say", "args": {"text": "x"}},
    "stop_process": {"process": "none"},
    "undo": {"target": "file://open"},
    "validate": {"target": "file://open/data.json", "schema": {"type": "object"}},
    "websocket": {"action": "connect", "url": "wss://api.example.com/x"},
    "write": {"target": "file://open/new.md", "content": "x"},
    "writeFile": {"path": "open/new.md", "content": "x"},
    "write_file": {"path": "open/new.md", "content": "x"},
    "write_input": {"process": "none", "text": "x"},
}
HIDDEN: Final = (
    ("board/merger.md", "bored/merges.md"),
    ("board", "bored"),
    ("board/deep", "bored/deep"),
    ("board/merger.exe", "bored/merges.exe"),
)
MERGERS: Final = (
    ("board/merger.md", "board/merges.md"),
    ("board/deep", "board/peed"),
    ("board/merger.exe", "board/merges.exe"),
)
ADDRESSES: Final = frozenset(("target", "path", "to", "source", "destination", "schema_target", "save_as"))
FOLDERS: Final = frozenset(
    (
        "changes",
        "createDirectory",
        "create_directory",
        "directory_tree",
        "list",
        "list_directory",
        "search",
        "list_directory_with_sizes",
        "search_files",
        "undo",
        "info",
        "get_file_info",
        "delete",
        "deleteFile",
        "move",
        "move_file",
        "copy",
    )
)
# Tools that make what is not there.
MAKING: Final = frozenset(("write", "writeFile", "write_file", "createDirectory", "create_directory"))
MADE: Final = frozenset(("to", "destination", "save_as"))  # where something is made
CHANGING: Final = frozenset(
    (*MAKING, "copy", "move", "move_file", "delete", "deleteFile", "edit", "edit_file", "convert")
)
# Wrong calls by name, beside those that schemas and addresses give.
FURTHER: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "ask_user": {
        "choices and fields": {"choices": ["a"], "fields": {"x": {"type": "string"}}},
        "a field of no type": {"fields": {"x": {"type": "what"}}},
    },
    "changes": {"a number to come": {"after": 10**9}},
    "conversation": {"unknown": {"action": "show", "conversation": "none"}},
    "convert": {
        "no such format": {"from": "xml"},
        "a file there is": {"save_as": "file://open/plan.md"},
        "a denied end": {"save_as": "file://hr/new.yaml"},
        "what is hidden": {"save_as": "file://board/merger.md"},
    },
    "copy": {"no overwrite": {"to": "file://open/other.md"}, "another source": {"to": "mem://open/new"}},
    "delete": {"stale": {"if_match": "stale"}, "a whole source": {"target": "file://"}},
    "edit": {
        "stale": {"if_match": "stale"},
        "ambiguous": {"edits": [{"old": "two", "new": "2"}]},
        "not found": {"edits": [{"old": "twofold", "new": "2"}]},
        "both": {"patch": "@@"},
        "no patch": {"edits": None, "patch": "not a patch"},
        "nothing": {"edits": None},
        "no change": {"edits": [{"old": "one", "new": "one"}]},
        "empty": {"edits": [{"old": "", "new": "x"}]},
    },
    "edit_file": {
        "ambiguous": {"edits": [{"oldText": "two", "newText": "2"}]},
        "not found": {"edits": [{"oldText": "twofold", "newText": "2"}]},
    },
    "get_prompt": {
        "unknown": {"name": "none"},
        "hidden": {"name": "sealed"},
        "denied": {"name": "denied"},
        "no argument": {"arguments": {}},
        "a wrong argument": {"arguments": {"uri": "file://open/plan.md", "x": "y"}},
        "a wrong value": {"arguments": {"uri": "file://open/plan.md", "lang": "fr"}},
        "a missing resource": {"arguments": {"uri": "file://open/none.md"}},
        "a denied resource": {"arguments": {"uri": "file://hr/pay.md"}},
        "a hidden resource": {"arguments": {"uri": "file://board/merger.md"}},
    },
    "http_request": {
        "another host": {"url": "https://other.example/x"},
        "no URL": {"url": "what"},
        "plain": {"url": "http://api.example.com/x"},
        "another method": {"method": "DELETE"},
        "body and json": {"method": "POST", "body": "x", "json": {}},
        "a header that is set here": {"headers": {"Host": "x"}},
        "no header": {"headers": {"a b": "x"}},
        "a file": {"url": "file:///etc/passwd"},
        "with a password": {"url": "https://a:b@api.example.com/x"},
    },
    "list": {
        "a bad cursor": {"cursor": "AAAA"},
        "an unknown filter": {"filter": {"mimetype": "text/plain"}},
        "an unknown filter of a catalog": {"target": "sop://", "filter": {"statsu": "active"}},
        "a tree with a cursor": {"form": "tree", "cursor": "AAAA"},
    },
    "list_allowed_directories": {f"unknown {n}": {f"x{n}": n} for n in range(8)},
    "list_processes": {f"unknown {n}": {f"x{n}": n} for n in range(8)},
    "move": {
        "stale": {"if_match": "stale"},
        "no overwrite": {"to": "file://open/other.md"},
        "into itself": {"target": "file://open", "to": "file://open/inner"},
    },
    "query": {
        "no SQL": {"sql": "what is this"},
        "a change": {"sql": "drop table data"},
        "no table": {"sql": "select * from none"},
        "a missing table": {"target": None, "tables": {"a": "file://open/none.json"}},
        "nothing": {"target": None},
    },
    "read": {
        "backwards": {"lines": [3, 1]},
        "two parts": {"head": 1, "tail": 1},
        "no section": {"section": "none"},
        "both": {"targets": ["file://open/plan.md"]},
        "nothing": {"target": None},
        "no encoding": {"encoding": "what"},
        "beyond the end": {"lines": [1000, 1001]},
        "no picture": {"as": "image"},
        "below nothing": {"bytes": [-1, 2]},
        "an unknown parameter": {"target": "file://open/plan.md?what=1"},
        "an unknown parameter of a catalog": {"target": "sop://brand/plan?veiw=parsed"},
        "an unknown version": {"target": "sop://brand/plan?version=9.9.9"},
        "an unknown view": {"target": "sop://brand/plan?view=what"},
    },
    "read_file": {"two parts": {"head": 1, "tail": 1}},
    "read_multiple_files": {"none of them": {"paths": ["open/none.md"]}},
    "read_output": {"another": {"process": "b"}, "nothing": {"process": ""}},
    "read_text_file": {"two parts": {"head": 1, "tail": 1}},
    "run_command": {
        "an unknown argument": {"args": {"txt": "x"}},
        "a folder there is not": {"folder": "file://none"},
        "a denied folder": {"folder": "file://hr"},
        "a hidden folder": {"folder": "file://board"},
        "too long": {"seconds": 10**6},
        "no text": {"args": {"text": ["x"]}},
        "no pipe": {"input": 7},
    },
    "start_process": {
        "an unknown argument": {"args": {"txt": "x"}},
        "a folder there is not": {"folder": "file://none"},
        "a denied folder": {"folder": "file://hr"},
        "a hidden folder": {"folder": "file://board"},
        "no text": {"args": {"text": ["x"]}},
    },
    "search": {
        "a bad cursor": {"cursor": "AAAA"},
        "no expression": {"query": "(", "regex": True, "kind": "content"},
        "nothing": {"query": ""},
        "an unknown key": {"where": {"statsu": "active"}, "kind": "ranked"},
        "regex for words": {"query": "x", "regex": True, "kind": "ranked"},
    },
    "undo": {"nothing": {"target": "sop://"}},
    **{name: {f"unknown {n}": {f"x{n}": n} for n in range(6)} for name in ("denied", "feedback", "notify")},
    "validate": {
        "both": {"schema_target": "file://open/data.json"},
        "no schema": {"schema": {"type": "what"}},
        "nothing": {"schema": None},
    },
    "websocket": {
        "another host": {"url": "wss://other.example/x"},
        "no URL": {"url": None},
        "an unknown socket": {"action": "send", "url": None, "socket": "none", "message": "x"},
        "receive of none": {"action": "receive", "url": None, "socket": "none"},
        "no message": {"action": "send", "url": None, "socket": "none"},
        "close of none": {"action": "close", "url": None, "socket": "none"},
        "no socket": {"action": "receive", "url": None},
        "plain": {"url": "ws://api.example.com/x"},
    },
    "write": {
        "stale": {"target": "file://open/plan.md", "if_match": "stale"},
        "there is one": {"target": "file://open/plan.md", "mode": "create"},
        "there is none": {"mode": "overwrite"},
        "both": {"base64": "eA=="},
        "nothing": {"content": None},
        "no base64": {"content": None, "base64": "?"},
        "no encoding": {"encoding": "what"},
        "a whole source": {"target": "file://"},
        "of a memory": {"target": "mem://open/plan"},
        "not in it": {"content": "한", "encoding": "latin-1"},
    },
    "write_input": {"another": {"process": "b"}, "nothing to say": {"text": None}},
    "stop_process": {"another": {"process": "b"}},
}
SEEING: Final = (
    "changes",
    "list",
    "search",
    "info",
    "get_file_info",
    "list_directory",
    "directory_tree",
    "undo",
    "list_directory_with_sizes",
    "search_files",
)
RIGHT: Final = frozenset(
    (
        # What may be listed has a place in lists, and facts; tools can be read like everything else that is served.
        *(
            (f"tool {name}", f"{argument}: {what}")
            for name in SEEING
            for argument in ("target", "path")
            for what in ("no more than listed", "a tool")
        ),
        *(
            (f"tool {name}", f"{argument}: a tool")
            for name in GOOD
            for argument in ("target", "path", "source", "schema_target")
        ),
        ("resources/read", "uri: a tool"),
        ("resources/subscribe", "uri: a tool"),
        # What is not there yet can be made, and be waited for.
        ("resources/subscribe", "uri: missing"),
        ("tool changes", "target: missing"),
        # An edit that changes nothing says so; a part beyond the end of a text is empty.
        ("tool edit", "no change"),
        ("resources/read", "a range beyond"),
        ("tool read", "both"),
        # Whoever gives up a subscription that he has not has what he wants.
        *(
            ("resources/unsubscribe", f"uri: {what}")
            for what in (
                "missing",
                "denied",
                "an unknown scheme",
                "no more than listed",
                "a tool",
                "nothing",
                "text",
                "long",
                "climbing",
                "outside",
                "no address",
                "an unknown parameter",
            )
        ),
        ("subscriptions/listen", "notifications: empty"),
        ("tool changes", "a number to come"),
        # Who may list something may hear that it changes; a part of an address is watched as the whole.
        ("resources/subscribe", "uri: no more than listed"),
        ("resources/subscribe", "uri: an unknown parameter"),
        ("server/config", "without allowedDirectories"),
        ("server/config", "allowedDirectories: null"),
        *(("tool undo", f"target: {what}") for what in ("denied", "missing", "an unknown parameter")),
        ("tool read_multiple_files", "none of them"),  # each of several has a failure of its own
        # A stream is told which of the addresses it will hear of.
        *(("subscriptions/listen", what) for what in ("no address", "an unknown scheme", "climbing")),
    )
)


class Wrong(NamedTuple):
    """One wrong call. `twin`: the same of something that is not there, where this one is of something hidden."""

    of: str  # the method, or tool NAME
    name: str
    method: str
    params: Any
    twin: Any = None
    names: tuple[str, str] = ("", "")  # the hidden one and the other

    @property
    def tool(self) -> str:
        return self.of.partition(" ")[2]


class Finding(NamedTuple):
    of: str
    name: str
    why: str
    answer: str


def bad_values(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a schema of one argument rules out."""
    kind = schema.get("type")
    if kind == "string":
        yield "a number", 7
        yield "an object", {}
    elif kind in ("integer", "number"):
        yield "text", "many"
        yield "a list", [1]
        if "minimum" in schema or "exclusiveMinimum" in schema:
            yield "too small", schema.get("minimum", 0) - 1
        if "maximum" in schema:
            yield "too large", schema["maximum"] + 1
        if kind == "integer":
            yield "half", 1.5
    elif kind == "boolean":
        yield "text", "yes"
        yield "a number", 1
    elif kind == "array":
        yield "text", "one"
        yield "an object", {}
        if "items" in schema:
            yield "wrong items", [None]
        if "maxItems" in schema:
            yield "too many", ["x"] * (schema["maxItems"] + 1)
    elif kind == "object":
        yield "text", "x"
        yield "a list", ["x"]
    if "enum" in schema:
        yield "none of them", "what"
        yield "a number", 7
    if schema.get("minLength"):
        yield "nothing", ""
    if "maxLength" in schema:
        yield "too long", "x" * (schema["maxLength"] + 1)


def bad_addresses(folder: bool) -> Iterator[tuple[str, str]]:
    yield "missing", "file://open/none.md"
    yield "an unknown scheme", "what://open/plan.md"
    yield "no address", "file://open/\0.md"
    yield "climbing", "file://../etc/passwd"
    yield "outside", "file:///etc/passwd"
    yield "denied", "file://hr/pay.md"
    yield "no more than listed", "file://listed/seen.md"
    yield "a tool", "tool://read"
    yield "an unknown parameter", "file://open/plan.md?what=1"
    if not folder:
        yield "a folder", "file://open"
        yield "an extension that is not served", "file://open/picture.exe"


def of_tool(name: str, schema: Mapping[str, Any]) -> Iterator[Wrong]:
    good, properties = GOOD[name], schema.get("properties", {})

    def call(what: str, arguments: Any, twin: Any = None, names: tuple[str, str] = ("", "")) -> Wrong:
        other = None if twin is None else {"name": name, "arguments": twin}
        return Wrong(f"tool {name}", what, "tools/call", {"name": name, "arguments": arguments}, other, names)

    def with_(**changed: Any) -> dict[str, Any]:
        return {key: value for key, value in {**good, **changed}.items() if value is not None}

    yield call("arguments as a list", [])
    yield call("arguments as text", "x")
    yield call("an unknown argument", {**good, "no_such_argument": 1})
    if properties:
        known = next(iter(properties))
        yield call(
            "an argument mistyped", {**{key: one for key, one in good.items() if key != known}, f"{known}s_": "x"}
        )
    for required in schema.get("required", ()):
        yield call(f"without {required}", {key: value for key, value in good.items() if key != required})
    for argument, shape in properties.items():
        for what, value in bad_values(shape):
            if value != "" or argument in schema.get("required", ()):  # else it is not given
                yield call(f"{argument}: {what}", {**good, argument: value})
    for argument in ADDRESSES.intersection(properties):
        for what, uri in bad_addresses(name in FOLDERS):
            if what == "missing" and (name in MAKING or argument in MADE):
                continue  # it can be made
            yield call(f"{argument}: {what}", {**good, argument: uri})
        # Where something is made, what is hidden is compared with a place as hidden in which there is nothing.
        for hidden, other in MERGERS if name in MAKING or argument in MADE else HIDDEN:
            yield call(
                f"{argument}: hidden {hidden}",
                {**good, argument: f"file://{hidden}"},
                {**good, argument: f"file://{other}"},
                (hidden, other),
            )
    for what, changed in FURTHER.get(name, {}).items():
        yield call(what, with_(**changed))


def of_method(method: str) -> Iterator[Wrong]:
    """All that can be wrong with the params of one method of the protocol."""

    def call(what: str, params: Any, twin: Any = None, names: tuple[str, str] = ("", "")) -> Wrong:
        return Wrong(method, what, method, params, twin, names)

    good: dict[str, Any] = dict(METHODS[method])
    for member, value in good.items():
        yield call(f"without {member}", {key: one for key, one in good.items() if key != member})
        for what, wrong in (("a number", 7), ("null", None), ("a list", [[]]), ("true", True)):
            if not (wrong is None and member in ("cursor", "arguments", "filter", "context")):
                yield call(f"{member}: {what}", {**good, member: wrong})
        if isinstance(value, dict):
            yield call(f"{member}: empty", {**good, member: {}})
    if method in PAGED:
        for what, cursor in (
            ("made up", "AAAA"),
            ("no base64", "☃"),
            ("long", "A" * 5000),
            ("nothing", ""),
            ("a path", "../../x"),
        ):
            yield call(f"cursor: {what}", {**good, "cursor": cursor})
        for what, wrong in (("a number", 7), ("a list", []), ("an object", {}), ("true", True), ("half", 1.5)):
            yield call(f"cursor: {what}", {**good, "cursor": wrong})
    if "uri" in good:
        for what, uri in (
            *bad_addresses(method != "resources/read"),
            ("nothing", ""),
            ("text", "weird"),
            ("long", "file://" + "x" * 30_000),
        ):
            yield call(f"uri: {what}", {**good, "uri": uri})
        for hidden, other in HIDDEN:
            yield call(
                f"uri: hidden {hidden}",
                {**good, "uri": f"file://{hidden}"},
                {**good, "uri": f"file://{other}"},
                (hidden, other),
            )
    for what, params in WORSE.get(method, {}).items():
        yield call(what, params)


PAGED: Final = frozenset(
    (
        "resources/list",
        "resources/templates/list",
        "tools/list",
        "prompts/list",
        "skills/list",
        "resources/directory/read",
    )
)
_TEMPLATE: Final = {"type": "ref/resource", "uri": "sop://{function}/{name}"}
_OF_PROMPT: Final = {"type": "ref/prompt", "name": "brief"}
_NAME: Final = {"name": "name", "value": "p"}
METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "file://open/plan.md"},
    "resources/subscribe": {"uri": "file://open/plan.md"},
    "resources/unsubscribe": {"uri": "file://open/plan.md"},
    "resources/directory/read": {"uri": "file://open"},
    "tools/list": {},
    "tools/call": {"name": "greet", "arguments": {"name": "Ann"}},
    "prompts/list": {},
    "prompts/get": {"name": "brief", "arguments": {"uri": "file://open/plan.md"}},
    "completion/complete": {"ref": _TEMPLATE, "argument": _NAME},
    "skills/list": {},
    "skills/get": {"uri": "skill://none"},
    "tasks/get": {"taskId": "none"},
    "tasks/update": {"taskId": "none", "inputResponses": {}},
    "tasks/cancel": {"taskId": "none"},
    "subscriptions/listen": {"notifications": {"resourceSubscriptions": ["file://open/*"]}},
    "logging/setLevel": {"level": "info"},
    "server/config": {"allowedDirectories": ["open"]},
    "no/such": {},
}
ERA_OF: Final = {
    "resources/subscribe": "2025-11-25",
    "resources/unsubscribe": "2025-11-25",
    "logging/setLevel": "2025-11-25",
    "server/config": "2025-11-25",
    "subscriptions/listen": "modern",
    "tasks/get": "modern",
    "tasks/update": "modern",
    "tasks/cancel": "modern",
}
WORSE: Final[Mapping[str, Mapping[str, Any]]] = {
    "resources/list": {
        "filter: text": {"filter": "x"},
        "filter: a list": {"filter": ["x"]},
        "filter: an unknown key": {"filter": {"mimetype": "text/plain"}},
        "filter: another unknown key": {"filter": {"undr": "file://open"}},
        "filter: under a number": {"filter": {"under": 7}},
        "filter: under no address": {"filter": {"under": "x"}},
        "filter: under tools": {"filter": {"under": "tool://"}},
        "filter: a number": {"filter": {"mimeType": 7}},
        "filter: under an unknown scheme": {"filter": {"under": "what://"}},
        "filter: climbing": {"filter": {"under": "file://.."}},
        "filter: by _meta": {"_meta": {"dev.octavo/filter": {"mimetype": "x"}}},
    },
    "resources/read": {
        "an unknown parameter of a catalog": {"uri": "sop://brand/plan?veiw=parsed"},
        "an unknown view": {"uri": "sop://brand/plan?view=what"},
        "an unknown version": {"uri": "sop://brand/plan?version=9.9.9"},
        "an unknown parameter of a collection": {"uri": "sop://?statsu=active"},
        "a bad range": {"uri": "file://open/plan.md?range=x"},
        "a range beyond": {"uri": "file://open/plan.md?range=900-901"},
        "a fragment": {"uri": "file://open/plan.md#x"},
    },
    "resources/subscribe": {"a bad pattern": {"uri": "file://open/*?x=1"}},
    "tools/call": {
        "unknown": {"name": "gret"},
        "empty": {"name": ""},
        "long": {"name": "x" * 500},
        "climbing": {"name": "../x"},
        "hidden": {"name": "sealed", "arguments": {"name": "x"}},
        "denied": {"name": "denied", "arguments": {"name": "x"}},
    },
    "prompts/get": {
        "unknown": {"name": "breif"},
        "hidden": {"name": "sealed"},
        "denied": {"name": "denied"},
        "empty": {"name": ""},
        "long": {"name": "x" * 500},
        "no argument": {"name": "brief"},
        "a number": {"name": "brief", "arguments": {"uri": 7}},
        "an unknown argument": {"name": "brief", "arguments": {"uri": "file://open/plan.md", "ur": "x"}},
        "none of them": {"name": "brief", "arguments": {"uri": "file://open/plan.md", "lang": "fr"}},
        "a missing resource": {"name": "brief", "arguments": {"uri": "file://open/none.md"}},
        "a denied resource": {"name": "brief", "arguments": {"uri": "file://hr/pay.md"}},
        "a hidden resource": {"name": "brief", "arguments": {"uri": "file://board/merger.md"}},
        "no address": {"name": "brief", "arguments": {"uri": "x"}},
    },
    "completion/complete": {
        "an unknown prompt": {"ref": {"type": "ref/prompt", "name": "none"}, "argument": _NAME},
        "a hidden prompt": {"ref": {"type": "ref/prompt", "name": "sealed"}, "argument": _NAME},
        "an unknown argument of a prompt": {"ref": _OF_PROMPT, "argument": {"name": "none", "value": ""}},
        "an unknown argument of a template": {"ref": _TEMPLATE, "argument": {"name": "none", "value": ""}},
        "an unknown template": {"ref": {"type": "ref/resource", "uri": "sop://{what}"}, "argument": _NAME},
        "an unknown scheme": {"ref": {"type": "ref/resource", "uri": "what://{name}"}, "argument": _NAME},
        "no template": {"ref": {"type": "ref/resource", "uri": "what"}, "argument": _NAME},
        "an unknown kind": {"ref": {"type": "ref/what", "uri": "sop://{name}"}, "argument": _NAME},
        "a value that is no text": {"ref": _TEMPLATE, "argument": {"name": "name", "value": 7}},
    },
    "skills/get": {"unknown": {"uri": "skill://none"}, "of a file": {"uri": "file://open/plan.md"}},
    "subscriptions/listen": {
        "no address": {"notifications": {"resourceSubscriptions": ["x"]}},
        "an unknown scheme": {"notifications": {"resourceSubscriptions": ["what://x"]}},
        "numbers": {"notifications": {"resourceSubscriptions": [7]}},
        "text": {"notifications": "x"},
        "climbing": {"notifications": {"resourceSubscriptions": ["file://../x"]}},
    },
    "logging/setLevel": {f"{level!r}": {"level": level} for level in ("what", "", "INFO", "trace", [], {}, 1.5)},
    "server/config": {
        "outside": {"allowedDirectories": ["/etc"]},
        "numbers": {"allowedDirectories": [7]},
        "text": {"allowedDirectories": "open"},
        "unknown": {"allowed": ["open"]},
        "climbing": {"allowedDirectories": [".."]},
        "extensions of numbers": {"allowedDirectories": ["open"], "allowedExtensions": [7]},
    },
    "no/such": {f"params {n}": {"n": n} for n in range(12)},
    **{
        method: {f"an id {n}": {"taskId": f"none-{n}"} for n in range(8)}
        for method in ("tasks/get", "tasks/update", "tasks/cancel")
    },
    **{method: {"cursor: null in a list": {"cursor": [None]}} for method in PAGED if method != "resources/list"},
}


class Door(Protocol):
    """A connection to a house, of one era."""

    async def ask(self, calls: Sequence[tuple[str, Any]]) -> list[Any]:
        """The answers, each a result or an error."""
        ...


class Stdio:
    def __init__(self, pipe: Pipe, modern: bool) -> None:
        self._pipe, self._modern, self._ids = pipe, modern, count(1)

    async def ask(self, calls: Sequence[tuple[str, Any]]) -> list[Any]:
        ids = [next(self._ids) for _ in calls]
        for request, (method, params) in zip(ids, calls, strict=True):
            await self._pipe.write(frame(method, _dressed(params, self._modern), request) + b"\n")
        lines = [json.loads(line) for line in await self._pipe.until(len(calls))]
        found = {line.pop("id"): line for line in lines if "id" in line}
        return [found.get(request, {"result": "heard"}) for request in ids]


class Http:
    def __init__(self, web: Web, session: Sequence[tuple[str, str]] | None) -> None:
        self._web, self._session, self._ids = web, session, count(1)

    async def ask(self, calls: Sequence[tuple[str, Any]]) -> list[Any]:
        return await asyncio.gather(*(self._one(method, params) for method, params in calls))

    async def _one(self, method: str, params: Any) -> Any:
        body = {
            "jsonrpc": "2.0",
            "id": next(self._ids),
            "method": method,
            "params": _dressed(params, self._session is None),
        }
        gone = asyncio.Event()
        asked = asyncio.ensure_future(
            self._web.ask(json.dumps(body).encode(), self._session or _headers(body), leave=gone)
        )
        if method == "subscriptions/listen":  # what is taken for right stays open
            await asyncio.wait({asked}, timeout=0.2)
            gone.set()
        reply = await asked
        if dict(reply.headers).get("content-type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in reply.body.splitlines() if line.startswith("data:") and line[5:].strip()]
            told = [json.loads(line) for line in lines]
            return next((line for line in told if line.pop("id", None) == body["id"]), {"result": "heard"})
        return {key: value for key, value in reply.json.items() if key != "id"}


def _headers(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    task = body["params"].get("taskId")
    return [*modern_headers(body, KEY), *([("Mcp-Name", task)] if isinstance(task, str) else [])]


def _dressed(params: Any, modern: bool) -> Any:
    return {**params, "_meta": {**META, **params.get("_meta", {})}} if modern else params


def lay_out(base: Path) -> None:
    for name in ("new.md", "none.md", "made"):
        made = base / "files" / "open" / name
        made.rmdir() if made.is_dir() else made.unlink(missing_ok=True)
    for name, text in FILES.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text, encoding="utf-8")
    (base / "state").mkdir(mode=0o700, exist_ok=True)


@asynccontextmanager
async def house(base: Path) -> AsyncIterator[Octavo]:
    lay_out(base)
    loaded = load_text(CONFIGURATION, file=base / "octavo.yaml", environ={"BRAND_KEY": KEY})
    async with Octavo(loaded, state=StateDirectory(base / "state", b"s" * 32)) as octavo:
        yield octavo


@asynccontextmanager
async def door(octavo: Octavo, kind: str, era: str) -> AsyncIterator[Door]:
    modern = era == "modern"
    if kind == "stdio":
        async with Pipe(octavo, octavo.works.identity.launched("brand"), lane=True) as pipe:
            if not modern:
                await pipe.ask(initialize(era))
                await pipe.ask(INITIALIZED)
            yield Stdio(pipe, modern)
        return
    async with Web(octavo, lane=True) as web:
        yield Http(web, None if modern else await _session(web, era))


async def _session(web: Web, era: str) -> list[tuple[str, str]]:
    old = [(k, v) for k, v in modern_headers({"method": "initialize"}, KEY) if not k.lower().startswith("mcp-")]
    reply = await web.ask(initialize(era), old)
    session = [*old, ("Mcp-Session-Id", dict(reply.headers)["mcp-session-id"])]
    await web.ask(INITIALIZED, session)
    return session


# -- the rules

_STEP: Final = re.compile(
    r"\b(use|read|list|choose|give|try|send|call|write|ask|wait|add|remove|leave|name|take|set|start|look|correct|copy|"
    r"begin|repeat|known (here )?are|did you mean|expected|needs?|must|one of|only|serves?|is not of type|valid|"
    r"required|say|numbered from|at (least|most)|less than|more than|longer than|shorter than|has no|is not one of|"
    r"is (greater|less|longer|shorter)|"
    r"served|there (is|are)|an? .{1,40} is\b)",
    re.IGNORECASE,
)


def failure(answer: Any) -> Mapping[str, Any] | None:
    """Code, message and data of what was refused; None where something was answered."""
    if "error" in answer:
        error: Mapping[str, Any] = answer["error"]
        return error
    result = answer.get("result", {})
    if not isinstance(result, dict) or not result.get("isError"):
        return None
    told: Mapping[str, Any] | None = result.get("_meta", {}).get("dev.octavo/error")
    return told or {"message": result["content"][0]["text"]}


def faults(wrong: Wrong, told: Mapping[str, Any], root: str) -> Iterator[str]:
    """By which rules an answer is not good enough."""
    data, message = told.get("data"), told.get("message", "")
    text = json.dumps(told, ensure_ascii=False)
    if WORD in text or root in text:
        yield "it tells what nobody may know"
    if told.get("code") == -32603:
        yield "a fault of ours"
    if told.get("code") == HEADERS:
        return  # the transport compares headers with the body before anybody looks at either
    if not isinstance(data, dict):
        yield "no data"
        return
    if message.startswith(("Resource not found: ", "ENOENT: ")):  # the second in the words of the official server
        if {*data} != {"uri"}:
            yield "NotFound has exactly a uri"
    elif not isinstance(data.get("reason"), str):
        yield "no reason"
    elif message.startswith(("Access denied to resource: ", "Unknown prompt: ")) and len(data) > 1:
        pass  # in the words and with the data of the seeds: the verb that is missing, and where a rule must allow it
    elif not _STEP.search(
        " ".join([message, *(str(data[key]) for key in ("why", "hint", "validationErrors") if key in data)])
    ):
        yield "nothing about what was expected, or what to do"
    if (
        wrong.tool
        and wrong.tool not in (data.get("toolName"), told.get("toolName"))
        and data.get("reason") != "malformed"
    ):
        yield "no toolName"
    if data.get("reason") == "forbidden" and not data.keys() & {"required_permission", "approval", "host", "directory"}:
        yield "no word of the verb that is missing"
    if data.get("validationErrors") == []:
        yield "no validation errors"


def veiled(answer: Any, name: str) -> str:
    return re.sub(
        r"\b(?:[0-9a-f]{10,12}|\d{16})\b", "#", json.dumps(answer, sort_keys=True, ensure_ascii=False)
    ).replace(name, "*")


class Walk(NamedTuple):
    findings: list[Finding]
    asked: Counter[str]
    reasons: Counter[str]
    answers: dict[str, list[str]]


async def walk(
    octavo: Octavo, base: Path, at: Door, era: str, *, most: int | None = None, methods: bool = True
) -> Walk:
    """With `most`, so many of each tool and method, from the first to the last of them."""
    seen = Walk([], Counter(), Counter(), defaultdict(list))
    served = [method for method in METHODS if ERA_OF.get(method, era) == era] if methods else []
    groups = [[*of_method(method)] for method in served]
    for name in octavo.works.tools.names:
        info = octavo.works.tools.tool(name)
        if name == "sealed" or info is None:
            continue
        if name not in GOOD:
            seen.findings.append(Finding(f"tool {name}", "", "it has no sample of good arguments here", ""))
            continue
        groups.append([*of_tool(name, info.input_schema)])
    calls = [one for group in groups for one in _some(group, most)]
    for first in range(0, len(calls), TOGETHER):
        await _judged(calls[first : first + TOGETHER], at, base, seen)
    for of, asked in seen.asked.items():
        if asked < LEAST:
            seen.findings.append(Finding(of, "", f"only {asked} wrong calls", ""))
    return seen


def _some(calls: Sequence[Wrong], most: int | None) -> Sequence[Wrong]:
    if most is None or len(calls) <= most:
        return calls
    return [calls[number * len(calls) // most] for number in range(most)]


async def _judged(calls: Sequence[Wrong], at: Door, base: Path, seen: Walk) -> None:
    twins = [one for one in calls if one.twin is not None]
    asked = [(one.method, one.params) for one in calls] + [(one.method, one.twin) for one in twins]
    answers = await at.ask(asked)
    others = dict(zip(map(id, twins), answers[len(calls) :], strict=True))
    for wrong, answer in zip(calls, answers, strict=False):
        seen.asked[wrong.of] += 1
        shown = json.dumps(answer, ensure_ascii=False)[:700]
        seen.answers[wrong.of].append(f"{wrong.name}: {shown}")
        for why in _why(wrong, answer, others.get(id(wrong)), str(base), seen):
            seen.findings.append(Finding(wrong.of, wrong.name, why, shown))
        if failure(answer) is None and wrong.tool in CHANGING:
            lay_out(base)


def _why(wrong: Wrong, answer: Any, other: Any, root: str, seen: Walk) -> Iterator[str]:
    if other is not None:
        hidden, absent = wrong.names
        if veiled(answer, hidden) != veiled(other, absent):
            yield f"what is hidden answers otherwise than what is not there: {json.dumps(other)[:400]}"
    told = failure(answer)
    if told is None:
        if WORD in json.dumps(answer):
            yield "it tells what nobody may know"
        if wrong.twin is None and (wrong.of, wrong.name) not in RIGHT:
            yield "it was taken for right"
        return
    data = told.get("data")
    seen.reasons[str(data.get("reason", "not_found")) if isinstance(data, dict) else "none"] += 1
    yield from faults(wrong, told, root)


async def everything(kinds: Sequence[tuple[str, str]], show: bool) -> int:
    bad = 0
    for kind, era in kinds:
        with tempfile.TemporaryDirectory(prefix="octavo-wrong-") as folder:
            begun = time.perf_counter()
            base = Path(folder)
            async with house(base) as octavo, door(octavo, kind, era) as at:
                seen = await walk(octavo, base, at, era)
            if show:
                for of, answers in seen.answers.items():
                    print(of, *answers, sep="\n    ")
            for one in seen.findings:
                print(f"{one.of}, {one.name}: {one.why}\n    {one.answer}")
            reasons = ", ".join(f"{times} {reason}" for reason, times in seen.reasons.most_common())
            print(
                f"{kind} {era}: {sum(seen.asked.values())} wrong calls of {len(seen.asked)} tools and methods, "
                f"{len(seen.findings)} findings ({reasons}), {time.perf_counter() - begun:.0f} s"
            )
            bad += len(seen.findings)
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--door", choices=("stdio", "http"))
    parser.add_argument("--era", choices=("modern", "2025-11-25"))
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    kinds = [
        (kind, era)
        for kind in ("stdio", "http")
        for era in ("modern", "2025-11-25")
        if options.door in (None, kind) and options.era in (None, era)
    ]
    return asyncio.run(everything(kinds, options.show))


if __name__ == "__main__":
    sys.exit(main())
