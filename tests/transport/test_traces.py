"""Spans, where they are wanted: one a request, below the caller's own."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import mcp.shared._otel
import pytest
from opentelemetry import trace
from tests.gate.doors import Web, modern_headers
from tests.gate.twins import META
from tests.gate.world import KEYS, configuration, house

from octavo.core.errors import SourceUnavailable

pytestmark = pytest.mark.seed("T8")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Noting(trace.NoOpTracer):
    """Notes the name of each span and the trace that it belongs to."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str]] = []

    @contextlib.contextmanager
    def start_as_current_span(self, name: str, context: Any = None, **_: Any) -> Iterator[trace.Span]:
        above = trace.get_current_span(context).get_span_context()
        self.spans.append((name, trace.format_trace_id(above.trace_id)))
        yield trace.INVALID_SPAN


@pytest.mark.anyio
@pytest.mark.parametrize("carrier", ["meta", "header", "none"])
async def test_every_request_is_a_span_below_the_callers(
    folder: Path, carrier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting = Noting()
    monkeypatch.setattr(mcp.shared._otel, "_tracer", noting)
    meta = {**META, "traceparent": PARENT} if carrier == "meta" else META
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file://guide.md", "_meta": meta}}
    headers = modern_headers(body, KEYS["BRAND_KEY"]) + ([("traceparent", PARENT)] if carrier == "header" else [])
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True, traced=True) as web:
        for _ in range(3):  # none of them takes the short way
            assert (await web.ask(json.dumps(body).encode(), headers)).status == 200
    expected = "0" * 32 if carrier == "none" else PARENT.split("-")[1]
    assert noting.spans == [("resources/read", expected)] * 3


def test_without_the_extra_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    from octavo.transport.mcp.traces import export

    with pytest.raises(SourceUnavailable, match="its extra otel"):
        export("http://127.0.0.1:4318/v1/traces")


class Collector(BaseHTTPRequestHandler):
    got: queue.Queue[bytes]

    def do_POST(self) -> None:
        self.got.put(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_with_the_extra_a_collector_gets_the_spans_before_the_process_ends(tmp_path: Path) -> None:
    got: queue.Queue[bytes] = queue.Queue()
    (tmp_path / "guide.md").write_text("guide", encoding="utf-8")
    with HTTPServer(("127.0.0.1", 0), type("Here", (Collector,), {"got": got})) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
        config = {
            "version": 1,
            "sources": {"docs": {"kind": "file", "roots": ["."], "extensions": [".md"]}},
            "serve": {"traces": endpoint},
        }
        (tmp_path / "octavo.yaml").write_text(json.dumps(config), encoding="utf-8")
        params = {"uri": "file://guide.md", "_meta": META}
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}) + "\n"
        command = [sys.executable, "-m", "octavo", "serve", "--config", str(tmp_path / "octavo.yaml")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(asked.encode())
            assert b"guide" in server.stdout.readline()
            server.stdin.close()
            assert server.wait(20) == 0
        collector.shutdown()
    spans = got.get(timeout=5)
    assert b"resources/read" in spans
    assert b"octavo" in spans
