"""Sockets that send byte by byte, or never read, while a good client goes on.

    python -m tests.security.slow_sockets --sockets 2000

A server of its own is started on a free port of the loopback. Prints one line of JSON: how many of each kind the server
closed, after how many seconds the last one, and what the good client noticed. `held` must be 0.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

MODERN = "2026-07-28"
KEYS = {"slow": "key-of-the-slow-one", "good": "key-of-the-good-one"}
INTERVAL = 1.0  # seconds between two bytes
BYTES = 200_000  # of the answer that is never read
GRACE = 30.0  # seconds above all deadlines, after which a socket counts as held


@dataclass
class Figures:
    sockets: int
    closed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("headers", "body", "reader"), 0))
    held: int = 0
    longest_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("headers", "body", "reader"), 0.0))
    good: int = 0
    failed: int = 0
    answers: dict[str, int] = field(default_factory=dict)  # what the good client was told instead
    p50_ms: float = 0.0
    p99_ms: float = 0.0


def request(name: str, who: str = "slow") -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "slow", "version": "1"},
    }
    uri = f"file://{name}"
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri, "_meta": meta}}
    body = json.dumps(asked).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\n"
        f"Authorization: Bearer {KEYS[who]}\r\n"
        f"Mcp-Protocol-Version: {MODERN}\r\nMcp-Method: resources/read\r\nMcp-Name: {uri}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=made, limit=1024)


async def trickle(port: int, sent: bytes) -> None:
    """Until the server ends it."""
    reader, writer = await connect(port)
    try:
        over = asyncio.ensure_future(ended(reader))
        for at in range(len(sent)):
            writer.write(sent[at : at + 1])
            done, _ = await asyncio.wait({over}, timeout=INTERVAL)
            if done:
                break
        await over
    finally:
        writer.transport.abort()


async def ended(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1024):
            pass
    except ConnectionError:
        pass


async def slow_headers(port: int) -> None:
    await trickle(port, b"POST /mcp HTTP/1.1\r\nHost: localhost:1\r\nX-Slow: " + b"a" * 10_000)


async def slow_body(port: int) -> None:
    head = request("small.md").partition(b"\r\n\r\n")[0].replace(b"Content-Length: ", b"Content-Length: 9")
    reader, writer = await connect(port)
    writer.write(head + b"\r\n\r\n")
    over = asyncio.ensure_future(ended(reader))
    try:
        while not over.done():
            writer.write(b" ")
            await asyncio.wait({over}, timeout=INTERVAL)
    finally:
        writer.transport.abort()


async def never_reads(port: int) -> None:
    _, writer = await connect(port)
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    try:
        writer.write(request("large.md") * 8)  # more than all buffers of the system hold
        while not writer.is_closing():
            # Asking for more tells whether the other side is still there.
            writer.write(request("large.md"))
            await asyncio.sleep(INTERVAL)
    finally:
        transport.abort()


KINDS: dict[str, Callable[[int], Awaitable[None]]] = {
    "headers": slow_headers,
    "body": slow_body,
    "reader": never_reads,
}


async def good_client(port: int, figures: Figures, took: list[float]) -> None:
    wanted = request("small.md", "good")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            begun = time.perf_counter()
            writer.write(wanted)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length
            body = await reader.readexactly(int(length[1]))
            took.append(time.perf_counter() - begun)
            if b"200 OK" in head and b"small" in body:
                figures.good += 1
            else:
                figures.failed += 1
                told = (head + body)[:200].decode("latin-1")
                figures.answers[told] = figures.answers.get(told, 0) + 1
            await asyncio.sleep(0.005)
    finally:
        writer.transport.abort()


async def attack(port: int, count: int, limit: float) -> Figures:
    figures = Figures(count)
    took: list[float] = []
    good = asyncio.ensure_future(good_client(port, figures, took))

    async def one(number: int) -> None:
        kind = "reader" if number % 10 == 9 else "headers" if number % 2 else "body"
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(limit):
                await KINDS[kind](port)
        except TimeoutError:
            figures.held += 1
            return
        except ConnectionError:
            pass
        figures.closed[kind] += 1
        figures.longest_s[kind] = max(figures.longest_s[kind], round(time.perf_counter() - begun, 1))

    await asyncio.gather(*(one(number) for number in range(count)))
    good.cancel()
    await asyncio.wait({good})
    if not good.cancelled():
        good.result()
    took.sort()
    figures.p50_ms = round(1000 * took[len(took) // 2], 2)
    figures.p99_ms = round(1000 * took[int(len(took) * 0.99)], 2)
    return figures


async def run(count: int, *, headers: float, body: float, send: float) -> Figures:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "docs").mkdir()
        (folder / "docs" / "small.md").write_text("small", encoding="utf-8")
        (folder / "docs" / "large.md").write_text("large " * (BYTES // 6), encoding="utf-8")
        deadlines = f"{{headers: {headers}s, body: {body}s, send: {send}s}}"
        sources = "version: 1\nsources: {docs: {kind: file, roots: [./docs]}}\nlimits: {per_principal: 'off'}\n"
        sources += "agents: {slow: {key: '${SLOW}'}, good: {key: '${GOOD}'}}\n"
        file = folder / "octavo.yaml"
        file.write_text(f"{sources}serve: {{http: {{deadlines: {deadlines}}}}}\n", encoding="utf-8")
        command = ["-m", "octavo", "serve", "--config", str(file), "--http", "127.0.0.1:0"]
        server = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "SLOW": KEYS["slow"], "GOOD": KEYS["good"]},
        )
        assert server.stderr is not None
        try:
            told = b""
            while not (found := re.search(rb":(\d+)/mcp", told)):
                line = await server.stderr.readline()
                assert line, told.decode()
                told += line
            return await attack(int(found[1]), count, max(headers, body, send) + GRACE)
        finally:
            server.send_signal(signal.SIGTERM)
            _, said = await server.communicate()
            assert b"Traceback" not in said, said.decode()[-2000:]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sockets", type=int, default=2000)
    options.add_argument("--headers", type=float, default=10.0, help="deadline of the server, in seconds")
    options.add_argument("--body", type=float, default=30.0)
    options.add_argument("--send", type=float, default=30.0)
    given = options.parse_args()
    figures = asyncio.run(run(given.sockets, headers=given.headers, body=given.body, send=given.send))
    print(json.dumps(asdict(figures)))
    sys.exit(1 if figures.held or figures.failed else 0)


if __name__ == "__main__":
    main()
