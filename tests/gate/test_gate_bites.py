"""A gate that cannot fail is decoration: a lane with one check taken out must not pass it (performance.md §6)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from tests.gate import doors, fuzz, tricky
from tests.gate.corpus import CASES
from tests.gate.doors import modern_headers
from tests.gate.twins import META, Differs, frame, houses, stdio_twins, web_twins
from tests.gate.world import KEYS

from octavo.core.ports.server import Server
from octavo.transport.http import auth
from octavo.transport.http import front as http
from octavo.transport.http import serve as serve_http
from octavo.transport.http.exchange import App
from octavo.transport.mcp.fast_path import Lane
from octavo.transport.stdio import serve as serve_stdio

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock")]

LANE, HTTP, STDIO = "mcp.fast_path", "http.front", "stdio.streams"
ENTRY, EXCHANGE = "http.auth", "http.exchange"
_MARK = ("found[0]", "found[1]", "found[2]", "found[3]", "digest", "scope.get(PEER)")
_MARKED = f"return {', '.join(_MARK)}"
MUTANTS: dict[str, tuple[str, str, str]] = {
    # Unknown members are refused twice over, by the structs and by the count of the colons: "the bounds" takes
    # out the count, and the struct alone then still refuses them.
    "unknown members of a message": (LANE, "class _Frame(msgspec.Struct, forbid_unknown_fields=True)", "class _Frame(msgspec.Struct)"),
    "unknown members of params": (LANE, "class _FrameParams(msgspec.Struct, forbid_unknown_fields=True)", "class _FrameParams(msgspec.Struct)"),
    "the version of JSON-RPC": (LANE, 'jsonrpc: Literal["2.0"]', "jsonrpc: Any"),
    "the type of the id": (LANE, "    id: int | str\n    method: str\n    params: _FrameParams", "    id: int | str | bool\n    method: str\n    params: _FrameParams"),
    "_meta of the modern era": (LANE, "if meta not in self._envelopes if modern else meta:", "if False if modern else meta:"),
    "_meta of the handshake era": (LANE, "if meta not in self._envelopes if modern else meta:", "if meta not in self._envelopes if modern else False:"),
    "only the envelope is learnt": (LANE, "set(said) <= _ENVELOPE", "True"),
    "the bounds": (LANE, "if not (_is_shortest(frame, request, params, meta) or _within_bounds(frame, request, params, meta)):", "if False:"),
    "zeros before a number": (LANE, "if digits[0] != _ZERO or len(digits) == 1 else (b\"\", b\"\")", ""),
    "the digits of a number": (LANE, "or not digits.isdigit() ", ""),
    "the shortest frame": (LANE, "        and len(frame)\n        == _SHORTEST", "        and 0 < _SHORTEST"),
    "integers of 64 bits": (LANE, "elif not _LEAST < request_id < _MOST:", "elif False:"),
    "a colon as an escape": (LANE, ' and b"\\\\u003" not in frame', ""),
    "tools that are not for the lane": (LANE, "if info is None or not info.lane_safe:", "if info is None:"),
    "tools that mirror headers": (LANE, "composition.tools.header_schema(name) is not None", "False"),
    "the bounds of arguments": (LANE, "frames.check_value(bytes(raw), around=2)", "msgspec.json.decode(bytes(raw))"),
    "arguments are an object": (LANE, "if not isinstance(arguments, dict):", "if False:"),
    "arguments of prompts are text": (LANE, 'if method == "prompts/get" and not all(', "if False and not all("),
    "one _meta in a result": (LANE, '{**shape.get("_meta", {}), **self._server_info}', "self._server_info"),
    "the era of an error": (LANE, "encode(error, modern=taken.asked.modern)", "encode(error, modern=not taken.asked.modern)"),
    "errors of the protocol in tools": (LANE, " and not isinstance(error, ProtocolError)", ""),
    "the pipeline is asked": (LANE, "self._calls.server.works.begin(taken.call)", "self._calls.server.works.begin(taken.call._replace(parent=taken.call))"),
    "the version header": (HTTP, "or routing[0] != _MODERN", ""),
    "headers agree with the body": (HTTP, "if taken is None or not _says_the_same(routing, taken):", "if taken is None:"),
    "the name header": (HTTP, "return name is not None and decode_header_value(name.decode(\"latin-1\")) == asked", "return True"),
    "an empty name header is none": (HTTP, "return name is not None and decode_header_value(name.decode(\"latin-1\")) == asked", "return decode_header_value((name or b\"\").decode(\"latin-1\")) == asked"),
    "headers that are there twice": (EXCHANGE, "                return None\n            found[name]", "                pass\n            found[name]"),
    "what the client accepts": (ENTRY, " or not all(check_accept_headers(Request(scope)))", ""),
    "the status of an error": (HTTP, "status = 200 if answers[0].code is None else ERROR_CODE_HTTP_STATUS.get(answers[0].code, 200)", "status = 200"),
    **{
        f"{name} is part of who asks": (ENTRY, _MARKED, _MARKED.replace(part, "None"))
        for name, part in zip(("host", "origin", "content-type", "accept", "authorization"), _MARK, strict=False)
    },
    "old clients": (STDIO, '_OLDEST_LANE_VERSION = "2025-06-18"', '_OLDEST_LANE_VERSION = ""'),
    "a second handshake": (STDIO, "            self.modern = None  # what follows", "            pass  # what follows"),
    "only what the SDK accepted is learnt": (STDIO, "if envelope is not None and succeeded:", "if envelope is not None:"),
    "cancellation by either spelling": (STDIO, "if coerce_request_id(taken.id) == wanted:", "if False:"),
}  # fmt: skip


@contextmanager
def mutant(module: str, old: str, new: str) -> Iterator[ModuleType]:
    """The module with one piece of its text replaced."""
    original = importlib.import_module(f"octavo.transport.{module}")
    source = Path(str(original.__file__)).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{module} no longer has {old!r} once: say what to take out instead"
    if "forbid_unknown_fields" in old:
        source = source.replace(
            "or _within_bounds(frame, request, params, meta)):",
            "or b'\"x\"' in frame or _within_bounds(frame, request, params, meta)):",
        )
    name = f"octavo.transport.{module}_mutant"
    spec = importlib.util.spec_from_loader(name, loader=None)
    assert spec is not None
    changed = importlib.util.module_from_spec(spec)
    sys.modules[name] = changed  # dataclasses and msgspec look themselves up there
    try:
        exec(compile(source.replace(old, new), f"{module}.py with {new!r}", "exec"), changed.__dict__)
        yield changed
    finally:
        del sys.modules[name]


async def stdio_gate(folder: Path) -> None:
    """The gate in small: the named cases, the corpus once, and a few hundred fuzzed ones."""
    random = Random(7)
    for era in ("modern", "2025-11-25", "2024-11-05"):
        async with houses(folder) as pair, stdio_twins(pair, "brand") as twins:
            await twins.open(era)
            await twins.script(tricky.lines(era))
            for method, params in CASES.values():
                await twins.same(frame(method, {**(params or {}), **({"_meta": META} if era == "modern" else {})}))
            for _ in range(100):
                await twins.script(fuzz.steps(random, era))


async def web_gate(folder: Path) -> None:
    async with houses(folder) as pair, web_twins(pair) as web:
        for body, headers in tricky.exchanges(KEYS["BRAND_KEY"], KEYS["NOBODY_KEY"]):
            await web.same(body, headers)
        for method, params in CASES.values():
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": META}}
            await web.same(fuzz.json.dumps(message).encode(), modern_headers(message, KEYS["HR_KEY"]))


async def test_the_small_gate_passes_as_things_are(folder: Path) -> None:
    await stdio_gate(folder)
    await web_gate(folder)


@pytest.mark.parametrize("name", MUTANTS)
async def test_without_one_check_the_gate_fails(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new = MUTANTS[name]
    with mutant(module, old, new) as changed:
        match module:
            case "mcp.fast_path":
                for door in (serve_http, serve_stdio):
                    monkeypatch.setattr(door, "Lane", changed.Lane)
            case "http.front":
                sound = serve_http.Front  # the oracle keeps it
                monkeypatch.setattr(
                    serve_http,
                    "Front",
                    lambda app, house, lane, *a, **k: (changed.Front if lane._on else sound)(app, house, lane, *a, **k),
                )
            case "http.auth":
                behind = serve_http.Front

                def front(app: App, house: Server, lane: Lane, *a: Any, **k: Any) -> http.Front:
                    with monkeypatch.context() as only:
                        if lane._on:  # the oracle keeps the sound one
                            only.setattr(http, "Authenticator", changed.Authenticator)
                        return behind(app, house, lane, *a, **k)

                monkeypatch.setattr(serve_http, "Front", front)
            case "http.exchange":
                for user in (http, auth):
                    monkeypatch.setattr(user, "headers", changed.headers)
            case _:
                monkeypatch.setattr(serve_stdio, "streams", changed)
        monkeypatch.setattr(doors, "LIMIT", 5.0)  # some are found by an answer that never comes
        halves = (web_gate, stdio_gate) if module in (HTTP, ENTRY, EXCHANGE) else (stdio_gate, web_gate)
        # An answer that is no JSON is a difference as well.
        with pytest.raises((Differs, AssertionError, TimeoutError, JSONDecodeError)):
            for half in halves:
                await half(folder)
