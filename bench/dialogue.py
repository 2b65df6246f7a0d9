"""One server over one folder of its own, asked with a deadline; what it answered, and what it cost."""

import contextlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from candidates import Json, line
from dialects import Asked, Dialect, Pair

_GOES_ON = ("// truncated", "[more", "[cut here")  # in the words of the servers


class Unanswered(Exception):
    """The server did not answer in time, or its end of the connection is gone."""


class CannotBeAsked(Exception):
    """The server has no tool for it."""


class Answer(NamedTuple):
    ok: bool
    text: str
    size: int  # bytes of the line on the wire
    more: bool  # it says how to go on

    @property
    def complaint(self) -> str:
        """The first line of a refusal, short enough for a table."""
        text = self.text.strip()
        if text.startswith('{"code"'):  # Octavo tells the whole error of the protocol
            text = json.loads(text)["message"]
        first = text.splitlines()[0] if text else "(no text)"
        return first if len(first) <= 90 else first[:89] + "…"


class Dialogue:
    """Sends tool calls and reads answers; never waits longer than its patience."""

    def __init__(self, process: "subprocess.Popen[bytes]", peer: Dialect, patience: float) -> None:
        assert process.stdin and process.stdout
        self.peer, self.patience = peer, patience
        self._process, self._in, self._out = process, process.stdin, process.stdout.fileno()
        self._watch = selectors.DefaultSelector()
        self._watch.register(self._out, selectors.EVENT_READ)
        self._rest = bytearray()
        self._sent = 0

    def open(self) -> None:
        hello, ready = self.peer.opening()
        self._answers([hello])
        self._in.write(line(ready))
        self._in.flush()

    def ask(self, asked: Asked | None) -> Answer:
        return self.ask_together([asked])[0]

    def ask_together(self, asked: Sequence[Asked | None]) -> list[Answer]:
        """All requests are on the wire before the first answer is read."""
        requests = []
        for one in asked:
            if one is None:
                raise CannotBeAsked
            requests.append(self.peer.request("tools/call", {"name": one[0], "arguments": one[1]}))
        return [_answer(raw) for raw in self._answers(requests)]

    def read(self, name: str) -> Answer:
        return self.ask(self.peer.reading(name))

    def edit(self, name: str, *edits: Pair) -> Answer:
        return self.ask(self.peer.editing(name, edits))

    def peak_mb(self) -> int:
        """Peak memory of the process, in MB; 0 when it is gone."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return 0
        rows = [row.split()[1] for row in status.splitlines() if row.startswith("VmHWM")]
        return int(rows[0]) // 1024 if rows else 0

    def _answers(self, requests: Sequence[Json]) -> list[bytes]:
        numbers = []
        lines = b""
        for request in requests:
            self._sent += 1
            numbers.append(self._sent)
            lines += line(request | {"id": self._sent})
        try:
            self._in.write(lines)
            self._in.flush()
        except BrokenPipeError:
            raise Unanswered("the connection was gone") from None
        found: dict[int, bytes] = {}
        until = time.monotonic() + self.patience
        while any(number not in found for number in numbers):
            raw = self._line(until)
            message = json.loads(raw)
            if "method" not in message:
                found[message.get("id")] = raw
        return [found[number] for number in numbers]

    def _line(self, until: float) -> bytes:
        begin = 0
        while (end := self._rest.find(b"\n", begin)) < 0:
            begin = len(self._rest)
            if not self._watch.select(max(0.0, until - time.monotonic())):
                raise Unanswered(f"no answer in {self.patience:.0f} s")
            chunk = os.read(self._out, 1 << 20)
            if not chunk:
                raise Unanswered("the server ended instead of answering")
            self._rest += chunk
        first = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return first


def _answer(raw: bytes) -> Answer:
    message = json.loads(raw)
    if "error" in message:
        return Answer(False, str(message["error"].get("message", "")), len(raw), False)
    result = message["result"]
    text = "\n".join(block["text"] for block in result.get("content", ()) if block.get("type") == "text")
    facts = {**result.get("_meta", {}), **(result.get("structuredContent") or {})}
    more = any(key in facts for key in ("cursor", "nextCursor")) or any(mark in text for mark in _GOES_ON)
    return Answer(not result.get("isError", False), text, len(raw), more)


@contextlib.contextmanager
def dialogue(peer: Dialect, home: Path, patience: float) -> Iterator[Dialogue]:
    """A fresh process, with its own home and state, killed when it does not end with its input."""
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    with (
        (home / "stderr.log").open("ab") as stderr,
        subprocess.Popen(
            peer.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment, cwd=home
        ) as process,
    ):
        try:
            talk = Dialogue(process, peer, max(patience, 30.0))  # a slow start is not what is judged
            talk.open()
            talk.patience = patience
            yield talk
        finally:
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
