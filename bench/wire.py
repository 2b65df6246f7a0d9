"""The two clients: a slow one in Python that checks answers, and the compiled one that measures (client.c)."""

import contextlib
import http.client
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from candidates import CURSOR, HERE, Candidate, Json, headers, line, post
from corpus import DENIED, Corpus

PATIENCE = 30.0


class Wrong(Exception):
    """A server answered something else than the data; timing it would be meaningless."""


def compiler() -> list[str]:
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    if subprocess.run([sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False).returncode == 0:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise SystemExit("the load client needs a C compiler: install cc, or pip install ziglang")


def build() -> Path:
    source, binary = HERE / "client.c", HERE / ".build" / "client"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(exist_ok=True)
        subprocess.run([*compiler(), "-O2", "-std=gnu11", "-o", str(binary), str(source)], check=True)
    return binary


class Conversation:
    """One server, one request at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]", candidate: Candidate) -> None:
        assert process.stdin and process.stdout
        self._in, self._out, self._candidate = process.stdin, process.stdout.fileno(), candidate
        self._watch = selectors.DefaultSelector()
        self._watch.register(self._out, selectors.EVENT_READ)
        self._rest = b""
        self._sent = 0

    def _line(self, until: float) -> bytes:
        while b"\n" not in self._rest:
            if not self._watch.select(max(0.0, until - time.monotonic())):
                raise Wrong(f"{self._candidate.name}: no answer in {PATIENCE:.0f} s")
            chunk = os.read(self._out, 1 << 20)
            if not chunk:
                raise Wrong(f"{self._candidate.name}: ended instead of answering")
            self._rest += chunk
        first, _, self._rest = self._rest.partition(b"\n")
        return first

    def ask(self, request: Json) -> Json:
        if "id" in request:
            self._sent += 1
            request = request | {"id": self._sent}
        self._in.write(line(request))
        self._in.flush()
        until = time.monotonic() + PATIENCE
        while "id" in request:
            answer = json.loads(self._line(until))
            if answer.get("id") == self._sent and "method" not in answer:
                return answer
        return {}

    def result(self, request: Json) -> Json:
        answer = self.ask(request)
        result = answer.get("result")
        if result is None or result.get("isError"):
            raise Wrong(f"{self._candidate.name}: {request['method']} was answered with {str(answer)[:400]}")
        return result


@contextlib.contextmanager
def conversation(candidate: Candidate, log: Path) -> Iterator[Conversation]:
    with (
        log.open("ab") as stderr,
        subprocess.Popen(candidate.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        try:
            talk = Conversation(process, candidate)
            for request in candidate.opening():
                talk.ask(request) if "id" not in request else talk.result(request)
            yield talk
        finally:
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def verify_http(candidate: Candidate, corpus: Corpus, log: Path, sample: int) -> Json:
    """The same for a server on a port, reads only."""
    names = list(corpus.files)
    names = names[:: max(1, len(names) // sample)]
    with log.open("ab") as out, subprocess.Popen(candidate.command, stdout=out, stderr=out) as process:
        try:
            for name in names:
                request = candidate.read(corpus, name)
                answer = ask_http(candidate, request, process)
                if candidate.text(answer.get("result") or {"contents": [{"text": answer}]}) != corpus.files[name]:
                    raise Wrong(f"{candidate.name}: {name} does not read as its file: {str(answer)[:400]}")
            if candidate.name.startswith("octavo"):
                code = ask_http(candidate, candidate.read(corpus, DENIED), process).get("error", {}).get("code")
                if code != -32003:
                    raise Wrong(f"{candidate.name}: the policy is not on: {DENIED} was answered with {code}")
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
    return {"reads": len(names), "listed": 0, "pages": 0}


def ask_http(candidate: Candidate, request: Json, process: "subprocess.Popen[bytes]") -> Json:
    until = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", candidate.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/mcp", line(request)[:-1], headers(request))
            answer: Json = json.loads(connection.getresponse().read())
            return answer
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > until:
                raise Wrong(f"{candidate.name}: nobody listens on port {candidate.port}") from None
            time.sleep(0.05)
        except ValueError:
            raise Wrong(f"{candidate.name}: an answer that is no JSON") from None
        finally:
            connection.close()


def verify(candidate: Candidate, corpus: Corpus, log: Path, sample: int) -> Json:
    """Every answer equals its file and the listing is complete, or `Wrong`."""
    if candidate.port:
        return verify_http(candidate, corpus, log, sample)
    names = list(corpus.files)
    names = names[:: max(1, len(names) // sample)]
    with conversation(candidate, log) as talk:
        for name in names:
            text = candidate.text(talk.result(candidate.read(corpus, name)))
            if text != corpus.files[name] and not candidate.constant:
                raise Wrong(f"{candidate.name}: {name} does not read as its file")
        listed: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor:
            result = talk.result(candidate.page(corpus, cursor))
            listed += candidate.names(result)
            cursor = result.get("nextCursor")
            pages += 1
        if sorted(listed) != sorted(corpus.files):
            raise Wrong(f"{candidate.name}: lists {len(listed)} entries ({len(set(listed))} different), not the files")
        if candidate.name.startswith("octavo"):
            refused = talk.ask(candidate.read(corpus, DENIED)).get("error", {})
            if refused.get("code") != -32003:
                raise Wrong(f"{candidate.name}: the policy is not on: {DENIED} was answered with {refused}")
    return {"reads": len(names), "listed": len(listed), "pages": pages}


def measure(candidate: Candidate, requests: Sequence[Json], log: Path, *options: object) -> Json:
    """Run client.c against a fresh process of the candidate; `options` are those at the head of client.c."""
    with tempfile.TemporaryDirectory(prefix="octavo-bench-lines-") as folder:
        opening, lines = Path(folder, "opening"), Path(folder, "lines")
        if candidate.port:
            lines.write_bytes(b"\x01".join(post(request, candidate.port) for request in requests))
            words = ["--http", candidate.port, "--lines", lines, "--log", log, *options, "--", *candidate.command]
            return client(candidate.name, words, log)
        opening.write_bytes(b"".join(map(line, candidate.opening())))
        lines.write_bytes(b"".join(map(line, requests)))
        words = ["--init", opening, "--lines", lines, "--log", log, *options, "--", *candidate.command]
        return client(candidate.name, words, log)


def client(name: str, words: Sequence[object], log: Path) -> Json:
    done = subprocess.run([str(build()), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-600:] if log.exists() else ""
        raise Wrong(f"{name}: {done.stderr.strip()}\n{tail}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def reads(candidate: Candidate, corpus: Corpus) -> list[Json]:
    return [candidate.read(corpus, name) for name in corpus.files]


def listing(candidate: Candidate, corpus: Corpus) -> list[Json]:
    return [candidate.page(corpus), candidate.page(corpus, CURSOR)]
