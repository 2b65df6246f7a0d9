"""The real program under test: processes, their stderr, and a raw wire for what client libraries hide.

Nothing here sleeps: everything waits for an event, for at most LIMIT seconds.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

LIMIT = 60.0
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = ("modern", "legacy")
EVENT = "dev.octavo/event"
ROOT = Path(__file__).resolve().parents[2]
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "1"},
}
# What the URL types of clients fold, split, decode twice or refuse.
ODD_NAMES = (
    "Docs/Upper Case.MD",
    "한국/새 문서 (초안).md",
    "100%.md",
    "50%25 off.md",
    "a#b.md",
    "what?.md",
    "who?me=you&me#too.md",
    "a+b=c;d,e.md",
    "[draft] 'quoted' \"twice\".md",
    "colon:at@host.md",
    "v1.2..3/..notes.md",
    "caf\u00e9 \N{HOT BEVERAGE}.md",
)
_READY = re.compile(r"octavo: serving MCP at (http://127\.0\.0\.1:\d+/mcp)")
_drafts = itertools.count(1)


def octavo(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "octavo", *map(str, arguments)]


class Place:
    """A directory of a test: what is served, what stands outside, home and state."""

    def __init__(self, base: Path, *, root: bool = True) -> None:
        self.base = base
        self.root = base / "root"
        if root:
            self.root.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
        self.environment = {**kept, "HOME": str(base / "home"), "XDG_STATE_HOME": str(base / "state")}
        (base / "home").mkdir()

    def listed(self, name: str, transport: str = "http") -> str:
        """Its address as lists give it. Served without a configuration on stdio, a folder is known by its path."""
        return f"file://{self.root}/{name}" if transport == "stdio" else f"file:///{self.root.name}/{name}"

    def edit(self, name: str, text: str) -> Path:
        """Puts a whole file in its place at once, as editors do: one change, never a half-written one."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.base / f"draft-{next(_drafts)}"
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
        return file

    def edit_all(self, names: Iterable[str]) -> None:
        """Files that hold their own names."""
        for name in names:
            self.edit(name, f"{name}\n")

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            octavo(*arguments),
            cwd=cwd or self.base,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            timeout=3 * LIMIT,
            check=False,
        )

    @contextlib.contextmanager
    def serve(self, *arguments: str | Path, cwd: Path | None = None) -> Iterator[Server]:
        """`octavo serve … --http 127.0.0.1:0`, ready."""
        with self.start(*octavo("serve", *arguments, "--http", "127.0.0.1:0"), cwd=cwd) as server:
            server.ready()
            yield server

    @contextlib.contextmanager
    def start(self, *command: str, cwd: Path | None = None) -> Iterator[Server]:
        process = subprocess.Popen(
            command,
            cwd=cwd or self.base,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        server = Server(process)
        try:
            yield server
        finally:
            server.stop()

    @contextlib.contextmanager
    def pipe(self, *arguments: str | Path, era: str = "modern", cwd: Path | None = None) -> Iterator[Pipe]:
        """`octavo serve …` on stdio, with the handshake done in the legacy era."""
        process = subprocess.Popen(
            octavo("serve", *arguments),
            cwd=cwd or self.base,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        pipe = Pipe(process, era)
        try:
            if era == "legacy":
                pipe.handshake()
            yield pipe
        finally:
            pipe.close()


class Said:
    """What a process writes, line by line, and a way to wait for it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._collect, args=(stream,), daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def wait_for(self, pattern: str | re.Pattern[str], *, after: int = 0) -> re.Match[str]:
        """The first line from number `after` on in which the pattern is found."""
        end = time.monotonic() + LIMIT
        with self._news:
            while True:
                found = next((hit for line in self._lines[after:] if (hit := re.search(pattern, line))), None)
                if found is not None:
                    return found
                left = end - time.monotonic()
                if self._over or left <= 0:
                    raise AssertionError(f"{pattern} was not said; this was:\n{self.text}")
                self._news.wait(left)

    def end(self) -> None:
        self._thread.join(LIMIT)

    def _collect(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                with self._news:
                    self._lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()


class Server:
    """A process that serves HTTP."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stderr is not None
        self.process = process
        self.out, self.log = Said(process.stdout), Said(process.stderr)
        self.url = ""
        self._asking: list[Asking] = []

    def ready(self) -> str:
        self.url = self.log.wait_for(_READY)[1]
        return self.url

    def asking(self, key: str | None = None, era: str = "modern") -> Asking:
        self._asking.append(Asking(self.url, key, era))
        return self._asking[-1]

    def stop(self) -> None:
        for asking in self._asking:
            asking.hang_up()
        self.process.terminate()
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not stop on SIGTERM:\n{self.log.text}") from None
        finally:
            self.out.end()
            self.log.end()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any  # the JSON-RPC message, or whatever JSON was answered

    @property
    def result(self) -> Any:
        assert "result" in self.body, self.body
        return self.body["result"]

    @property
    def error(self) -> Any:
        assert "error" in self.body, self.body
        return self.body["error"]


class Asking:
    """One HTTP client on one kept-alive connection. Counts what it sends."""

    def __init__(self, url: str, key: str | None, era: str) -> None:
        host, _, self._path = url.removeprefix("http://").partition("/")
        self._connection = http.client.HTTPConnection(host, timeout=LIMIT)
        self._key, self._era, self._session = key, era, ""
        self._ids = itertools.count(1)
        self.requests = 0

    def open(self) -> Asking:
        """The handshake, in the legacy era."""
        if self._era == "legacy":
            self.ask("initialize", _initialize())
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        return self

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Answer:
        self.requests += 1
        params = dict(params or {})
        headers: dict[str, str] = {}
        if self._era == "modern":
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            key = "uri" if method == "resources/read" else "taskId" if method.startswith("tasks/") else "name"
            named = params.get(key)
            if isinstance(named, str):
                headers["Mcp-Name"] = header_value(named)
        return self._send({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}, headers)

    def get(self, path: str) -> Answer:
        """What is no message of the protocol, such as `/readyz`."""
        self._connection.request("GET", path, headers=self._headers({}))
        answer = self._connection.getresponse()
        raw = answer.read()
        return Answer(answer.status, dict(answer.getheaders()), json.loads(raw) if raw else None)

    def close(self) -> int:
        """Ends the session; gives the status."""
        self.requests += 1
        self._connection.request("DELETE", f"/{self._path}", headers=self._headers({}))
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def hang_up(self) -> None:
        self._connection.close()

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"Authorization": f"Bearer {self._key}"} if self._key is not None else {}),
            **({"Mcp-Session-Id": self._session, "MCP-Protocol-Version": LEGACY} if self._session else {}),
            **more,
        }

    def _send(self, message: Mapping[str, Any], more: Mapping[str, str]) -> Answer:
        body = json.dumps(message, ensure_ascii=False).encode()
        self._connection.request("POST", f"/{self._path}", body, self._headers(more))
        answer = self._connection.getresponse()
        raw = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        self._session = headers.get("mcp-session-id", self._session)
        return Answer(answer.status, headers, _message(raw, headers.get("content-type", "")))


class Pipe:
    """One stdio client that can send many requests before it looks at an answer."""

    def __init__(self, process: subprocess.Popen[bytes], era: str) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.process, self.era = process, era
        self._stdin, self._stdout = process.stdin, process.stdout
        self.log = Said(process.stderr)
        self.notifications: list[Any] = []
        self._next = itertools.count(1)
        self.requests = 0

    def handshake(self) -> None:
        self.ask("initialize", _initialize())
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A request with its own id, not sent yet."""
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {**ENVELOPE, **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": next(self._next), "method": method, "params": params}

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        return self.ask_all([self.request(method, params)])[0]

    def ask_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        """All of them at once; their answers, in the order of the requests."""
        answers = {answer["id"]: answer for answer in self.exchange(requests)}
        return [answers[request["id"]] for request in requests]

    def exchange(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        """All of them at once; as many answers, in the order in which they come."""
        answers: list[Any] = []
        with _watchdog(self.process):
            writer = threading.Thread(target=self._write, args=(requests,))
            writer.start()
            while len(answers) < len(requests):
                message = self.next_message()
                (self.notifications if "method" in message else answers).append(message)
            writer.join()
        self.requests += len(requests)
        return answers

    def tell(self, message: Mapping[str, Any]) -> None:
        self._write([message])

    def next_message(self) -> Any:
        line = self._stdout.readline()
        assert line, f"the server ended its output:\n{self.log.text}"
        return json.loads(line)

    def rest(self) -> list[bytes]:
        """The whole lines that are left after the process ended."""
        self.process.wait(LIMIT)
        return [line for line in self._stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]

    def close(self) -> int:
        if not self._stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._stdin.close()
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end with its input:\n{self.log.text}") from None
        finally:
            self._stdout.close()
            self.log.end()
        return code

    def _write(self, messages: Iterable[Mapping[str, Any]]) -> None:
        for message in messages:
            self._stdin.write(json.dumps(message).encode() + b"\n")
        self._stdin.flush()


def _initialize() -> dict[str, Any]:
    return {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}


def _message(raw: bytes, content_type: str) -> Any:
    if content_type.startswith("text/event-stream"):
        data = [line[5:].strip() for line in raw.decode().splitlines() if line.startswith("data:")]
        return next(message for text in reversed(data) if text and "id" in (message := json.loads(text)))
    return json.loads(raw) if raw else None


def header_value(text: str) -> str:
    """As the protocol wants it where a header cannot carry the text as it is."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


@contextlib.contextmanager
def _watchdog(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A read that would block for ever ends with the process."""
    timer = threading.Timer(6 * LIMIT, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# -- Node


def conformance() -> ModuleType:
    """conformance/run.py, which knows how the Node tools are put in place."""
    spec = importlib.util.spec_from_file_location("conformance_run", ROOT / "conformance" / "run.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules.setdefault("conformance_run", importlib.util.module_from_spec(spec))
    if not hasattr(module, "install"):
        spec.loader.exec_module(module)
    return module


def node_clients() -> Path:
    folder: Path = conformance().install("clients")
    return folder


def ran(place: Place, command: list[str]) -> str:
    """What a client of another language printed; it must end well."""
    done = subprocess.run(
        command,
        cwd=place.base,
        env={**conformance().environment(), **place.environment},
        capture_output=True,
        encoding="utf-8",
        timeout=3 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def node_command(*arguments: str | Path) -> list[str]:
    return [str(conformance().node()), *map(str, arguments)]


# -- audit


def audit_records(state: Path) -> list[dict[str, Any]]:
    """Every record below a state directory, the lines of the chain itself left out."""
    lines = [
        json.loads(line)
        for file in sorted(state.rglob("audit/*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [line for line in lines if "chain" not in line]
