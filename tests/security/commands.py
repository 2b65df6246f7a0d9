"""Injections into every text argument of every tool, under a trace of all programs that are started.

    python -m tests.security.commands --strings 2000

A real server on stdio, with all toolsets. The kernel tells each program that it or a descendant executes: only the
interpreter (for the launcher) and the listed programs may be among them, and each listed one with exactly the words
that were given. No text may leave a file behind in the canary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.security.injections import strings
from tests.security.tracing import Started, Trace

CONFIGURATION = """
version: 1
sources: {{work: {{kind: file, roots: [./work], extensions: ["*"], write: true}}}}
toolsets: [files, filesystem, seed, process, data, prompts]
tools: {{dirs: [./tools]}}
policy: [{{who: "*", may: "*", what: "**", approve: never}}]
limits: {{in_flight: 100000, total: 100000}}
commands:
  at_once: 4
  programs:
    say:
      run: [{echo}, said]
      input: true
      args:
        - {{name: text, dashes: true, longest: 5000}}
        - {{name: one, flag: -x, longest: 5000}}
        - {{name: two, flag: "--two=", longest: 5000}}
        - {{name: all, many: true, longest: 5000}}
    show:
      run: {cat}
      args:
        - {{name: file, type: path}}
        - {{name: kind, type: choice, choices: [a, b]}}
        - {{name: count, type: integer}}
        - {{name: word, pattern: "[a-z]+"}}
        - {{name: short, longest: 3}}
"""
DECLARED = """
name: relay
description: A tool without code.
arguments: {word: {type: string}}
command: [say, "--label={word}", "--", "{word}"]
stdin: "{word}"
"""
# Where the text goes: each is a call with the text in one place, or in all of one program's.
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "injections", "version": "1"},
}


class Figures(NamedTuple):
    strings: int
    calls: int
    started: int  # listed programs
    unlisted: list[Started]
    changed: list[Started]  # listed programs with words that nobody gave
    canaries: list[str]
    incidents: int  # answers that say the fault is ours

    @property
    def good(self) -> bool:
        return not self.unlisted and not self.changed and not self.canaries and not self.incidents and self.started > 0


class Wire:
    """Requests and answers, one a line, several under way."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._room = threading.Semaphore(32)
        self._last = 0
        self.answers: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def ask(self, method: str, params: Mapping[str, Any]) -> int:
        assert self._room.acquire(timeout=120), "no answer"
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": {**params, "_meta": ENVELOPE}}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return self._last

    def all_answered(self) -> None:
        for _ in range(32):
            assert self._room.acquire(timeout=120), "no answer"
        for _ in range(32):
            self._room.release()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._thread.join(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "id" in message and "method" not in message:
                self.answers[message["id"]] = message.get("result", message.get("error"))
                self._room.release()


def run(folder: Path, *, count: int) -> Figures:
    (folder / "work").mkdir()
    (folder / "work" / "a.txt").write_text("a\n", encoding="utf-8")
    (folder / "tools").mkdir()
    (folder / "tools" / "relay.yaml").write_text(DECLARED, encoding="utf-8")
    canary = folder / "canary"
    canary.mkdir()
    echo, cat = (os.path.realpath(f"/bin/{name}") for name in ("echo", "cat"))
    file = folder / "octavo.yaml"
    file.write_text(CONFIGURATION.format(echo=echo, cat=cat), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "octavo", "serve", "--config", str(file)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
    )
    trace = Trace(process.pid)
    wire = Wire(process)
    listing = wire.ask("tools/list", {})
    wire.all_answered()
    tools = wire.answers[listing]["tools"]
    assert "relay" in {tool["name"] for tool in tools}
    calls, given = 1, set[tuple[str, ...]]()
    for number, text in enumerate(strings(count, str(canary))):
        for name, arguments in _calls(tools, text, number):
            wire.ask("tools/call", {"name": name, "arguments": arguments})
            calls += 1
        given |= _words(echo, cat, text)
    wire.all_answered()
    wire.close()
    started = trace.ended()
    known = {os.path.realpath(sys.executable), echo, cat}
    listed = [one for one in started if one.program in (echo, cat)]
    return Figures(
        count,
        calls,
        len(listed),
        [one for one in started if one.program not in known],
        [one for one in listed if one.argv not in given],
        sorted(os.listdir(canary)),
        sum('"incident"' in json.dumps(answer) for answer in wire.answers.values()),
    )


def _calls(tools: list[dict[str, Any]], text: str, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """One that puts the text into all free arguments of a program, one for each strict one; and, for some of the
    texts, one for each text argument of every tool."""
    free = {"text": text, "two": text, "all": [text, text]} | ({} if text.startswith("-") else {"one": text})
    yield "run_command", {"program": "say", "args": free, "input": text}
    for strict in ("file", "kind", "count", "word", "short", "one", text[:50]):
        yield "run_command", {"program": "show", "args": {strict: text}}
    yield "relay", {"word": text}
    yield "run_command", {"program": text, "args": {}}
    yield "run_command", {"program": "show", "args": {"kind": "a"}, "folder": text}
    if number % 20:
        return
    for tool in tools:
        properties: dict[str, Any] = tool["inputSchema"]["properties"]
        for name, schema in properties.items():
            if schema.get("type") == "string":
                others = {key: _filled(properties[key]) for key in tool["inputSchema"].get("required", ())}
                yield tool["name"], {**others, name: text}


def _filled(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "a.txt", "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}[schema["type"]]


def _words(echo: str, cat: str, text: str) -> set[tuple[str, ...]]:
    """All that a listed program may be given: what the configuration says, with the text as single words."""
    names = [name for name in text.split("/") if name not in ("", ".")]
    return {
        (echo, "said", text, *(() if text.startswith("-") else ("-x", text)), f"--two={text}", text, text),
        (echo, "said"),
        (echo, "said", f"--label={text}", "--", text),
        (cat, "a"),
        (cat, "/".join((".", *names))),
        *([(cat, text)] if len(text) <= 3 else []),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Injections under a trace of started programs.")
    parser.add_argument("--strings", type=int, default=2000)
    count = parser.parse_args().strings
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), count=count)
    print(
        f"{figures.strings} strings, {figures.calls} calls, {figures.started} listed programs started, "
        f"{len(figures.unlisted)} unlisted, {len(figures.changed)} with other words, {len(figures.canaries)} canaries, "
        f"{figures.incidents} incidents"
    )
    for one in (*figures.unlisted[:5], *figures.changed[:5]):
        print(one)
    sys.exit(not figures.good)


if __name__ == "__main__":
    main()
