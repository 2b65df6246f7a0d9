"""The ranked search of a real server: from its start over what it was made of to a change that is found.

    python bench/served.py                          100,000 files
    python bench/served.py --documents 10000        a short look
    python bench/served.py --catalog                the same as documents of a catalog, with front matter

Everything is made in a temporary folder and removed at the end. The server is asked over stdio, one request at a time,
under one policy rule, with redaction and audit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fulltext import QUESTIONS, documents

RULES = 'policy: [{who: "*", may: [list, read, search, watch, invoke], what: "**"}]\nsearch: {documents: 1000000}\n'
FILES = "version: 1\nsources: {work: {kind: file, roots: [./work]}}\n"
CATALOG = """version: 1
sources:
  store: {kind: file, roots: [./work], expose: false}
  docs: {kind: catalog, scheme: doc, store: store, path: "", files: "{function}/{name}.md"}
"""


class Server:
    """`octavo serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "octavo", "serve", "--config", str(folder / "octavo.yaml")]
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._number = 0
        self.ask("initialize", about)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None and pipe_out is not None
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        pipe_in.write(json.dumps(asked).encode() + b"\n")
        pipe_in.flush()
        while (answer := json.loads(pipe_out.readline())).get("id") != self._number:
            pass
        if "result" not in answer:
            raise SystemExit(f"{method}: {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    def search(self, text: str, **asked: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": "search", "arguments": {"query": text, "kind": "ranked", **asked}})
        found: dict[str, Any] = result["structuredContent"]
        return found

    def memory(self) -> str:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) / 1000 for line in status if line.startswith("Vm")}
        return f"{sizes['VmRSS']:.0f} MB, at most {sizes['VmHWM']:.0f} MB"

    def end(self, how: int = signal.SIGTERM) -> None:
        self._process.send_signal(how)
        self._process.communicate()


def fill(work: Path, count: int, catalog: bool) -> float:
    size = 0
    for one in documents(count):
        file = work / one.ref.segments[0] / f"{one.ref.name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        facts = {"title": one.title, **one.metadata}
        front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items())
        text = f"---\n{front}\n---\n" if catalog else ""
        size += file.write_text(f"{text}# {one.title}\n\n{one.text}\n", encoding="utf-8")
    return size / 1e6


def spread(times: list[float]) -> str:
    times = sorted(times)
    return f"p50 {times[len(times) // 2]:.1f} ms, p99 {times[int(len(times) * 0.99)]:.1f} ms"


def timed(server: Server, method: str, params: dict[str, Any], runs: int) -> str:
    return spread([since(lambda: server.ask(method, params)) for _ in range(runs)])


def since(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def built(server: Server, count: int, name: str, reading: dict[str, Any]) -> None:
    begun = time.perf_counter()
    reads: list[float] = []
    while server.search("예산", limit=1).get("incomplete"):
        reads += [since(lambda: server.ask("resources/read", reading)) for _ in range(20)]
    spent = time.perf_counter() - begun
    print(f"{name}: {spent:.1f} s, {count / spent:,.0f} documents/s", flush=True)
    if len(reads) > 100:
        print(f"  a read meanwhile: {spread(reads)}")


def changed(server: Server, work: Path, runs: int) -> None:
    times: list[float] = []
    for number in range(runs):
        draft = work.parent / "draft"
        draft.write_text(f"# 새 문서\n\n새말{number}번째 문서\n", encoding="utf-8")
        begun = time.perf_counter()
        draft.replace(work / "brand" / f"new-{number}.md")
        while not any("new-" in one["uri"] for one in server.search(f'"새말{number}번째"', limit=1)["results"]):
            pass
        times.append(1000 * (time.perf_counter() - begun))
    times.sort()
    print(f"from a change of a file to its finding: p50 {times[runs // 2]:.0f} ms, the longest {times[-1]:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=50, help="of each question")
    parser.add_argument("--catalog", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octavo-served-") as name:
        folder = Path(name)
        work = folder / "work"
        size = fill(work, options.documents, options.catalog)
        (folder / "octavo.yaml").write_text((CATALOG if options.catalog else FILES) + RULES, encoding="utf-8")
        print(f"{options.documents:,} documents, {size:.0f} million characters")
        server = Server(folder)
        begun = time.perf_counter()
        page = server.ask("resources/list", {})
        print(f"first page of the list after the start: {1000 * (time.perf_counter() - begun):.0f} ms")
        reading = {"uri": page["resources"][0]["uri"]}
        print(f"memory before any search: {server.memory()}")
        built(server, options.documents, "index built", reading)
        every: list[float] = []
        for kind, text in QUESTIONS.items():
            times = [since(lambda text=text, n=n: server.search(text.format(n=n % 100))) for n in range(options.runs)]
            every += times
            print(f"  {kind:<30}{spread(times)}")
        print(f"  {'all':<30}{spread(every)}")
        print(f"a page of the list: {timed(server, 'resources/list', {}, 50)}")
        print(f"a read: {timed(server, 'resources/read', reading, 200)}")
        changed(server, work, 20)
        print(f"memory: {server.memory()}")
        disk = sum(file.stat().st_size for file in (folder / ".octavo" / "search").iterdir())
        print(f"disk: {disk / 1e6:.0f} MB", flush=True)
        server.end(signal.SIGKILL)
        server = Server(folder)
        built(server, options.documents, "compared after a kill", reading)
        server.end()
        said = (folder / "log").read_text(encoding="utf-8").strip()
        print("\n".join(said.splitlines()[:10]) if said else "nothing was logged")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    main()
