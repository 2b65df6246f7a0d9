"""Roots that are replaced while a real server serves them: files, a catalog over files and one over a git repository.

    python -m tests.sources.file.replacements --ways 50 --seed 1

Another folder is put in the place of one by a rename, by a link that is flipped, by deleting and copying back, by a
mount over it and its end, on a file system that is full in between, and twice within a second; with a reader, a writer
and a subscriber at work. Afterwards what is served is what the path leads to, what was told is the difference, nothing
was written to a folder that no path leads to, and readiness is true. The server runs in namespaces of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.audit.disks import SmallDisk, small_disk
from tests.e2e.harness import ENVELOPE, MODERN, Asking, Place, Server, octavo
from tests.sources.git.clones import Clone

CONFIGURATION = """
version: 1
sources:
  work: {kind: file, uris: relative, roots: [./cur], write: true}
  book: {kind: file, roots: [./book], expose: false}
  sops: {kind: sop, store: book, path: ""}
  repo: {kind: git, path: ./repo, expose: false}
  gits: {kind: sop, scheme: gits, store: repo, path: ""}
toolsets: [files]
limits: {in_flight: 1000, per_principal: "off"}
serve: {landlock: "off"}
"""
LIMIT = 20.0  # seconds until what is served and told is right
NAMES = [f"ops/n{number}" for number in range(6)]
EVENT = "dev.octavo/event"
WAYS = ("rename", "flip", "copy back", "mount", "full disk", "twice")
Texts = dict[str, str]  # by name, without an ending


class Figures(NamedTuple):
    ways: Counter[str]
    reads: int
    writes: int
    unavailable: int
    events: int
    faults: list[str]

    def __str__(self) -> str:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(self.ways.items()))
        return (
            f"{self.ways.total()} replacements ({ways}), {self.reads} reads, {self.writes} writes, "
            f"{self.unavailable} unavailable meanwhile, {self.events} events, {len(self.faults)} faults"
        )


class Target(NamedTuple):
    """A path that is served, and how names of it are addresses."""

    path: Path
    scheme: str
    git: bool = False

    def uri(self, name: str) -> str:
        return f"{self.scheme}://{name}.md" if self.scheme == "file" else f"{self.scheme}://{name}"

    def fill(self, folder: Path, texts: Texts) -> None:
        files = {f"{name}.md": f"---\ntitle: {name}\n---\n{text}\n" for name, text in texts.items()}
        if self.git:
            Clone(folder).commit(files)
            return
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


class Subscriber:
    """Remembers of each address what was told of it last."""

    def __init__(self, url: str, patterns: list[str]) -> None:
        host, _, path = url.removeprefix("http://").partition("/")
        self._connection = http.client.HTTPConnection(host, timeout=3600)
        params = {"notifications": {"resourceSubscriptions": patterns}, "_meta": ENVELOPE}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params})
        headers = {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen",
        }  # fmt: skip
        self._connection.request("POST", f"/{path}", body, headers)
        self._answer = self._connection.getresponse()
        self.last: dict[str, str] = {}
        self.events = 0
        self._begun = threading.Event()
        threading.Thread(target=self._hear, daemon=True).start()
        assert self._begun.wait(LIMIT), "the subscription was not acknowledged"

    def _hear(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in self._answer:
                if not line.startswith(b"data: {"):
                    continue
                message = json.loads(line[6:])
                self._begun.set()
                told = message.get("params", {}).get("_meta", {}).get(EVENT)
                if told is not None and message["method"] == "notifications/resources/updated":
                    self.events += 1
                    if "from" in told:
                        self.last[told["from"]] = "deleted"
                    self.last[told["uri"]] = told["type"].partition("/")[2].replace("renamed", "created")

    def close(self) -> None:
        self._connection.close()


class Siege:
    def __init__(self, base: Path, disk: SmallDisk, chance: random.Random) -> None:
        self._base, self._disk, self._chance = base, disk, chance
        self.targets = [Target(base / "cur", "file"), Target(base / "book", "sop"), Target(base / "repo", "gits", True)]
        self.now: dict[Target, Texts] = {}
        self.ever: dict[str, set[str]] = {}  # every text that an address ever had
        self.left: dict[Path, list[str]] = {}  # folders that no path leads to any more, and what was in them
        self.ways, self.counts, self.faults = Counter[str](), Counter[str](), list[str]()
        self._number = 0
        self._stop = threading.Event()

    def texts(self, now: Texts) -> Texts:
        """Some the same, some changed, some gone, some new; never none."""
        made = {}
        for name in NAMES:
            kind = self._chance.random()
            if kind < 0.35 and name in now:
                made[name] = now[name]
            elif kind < 0.75:
                self._number += 1
                made[name] = f"text {self._number}"
        return made or self.texts(now)

    def fresh(self, target: Target, texts: Texts) -> Path:
        self._number += 1
        folder = self._base / f"{target.path.name}-{self._number}"
        target.fill(folder, texts)
        return folder

    def begin(self, target: Target) -> None:
        texts = self.texts({})
        target.fill(target.path, texts)
        self._stands(target, texts)

    def _stands(self, target: Target, texts: Texts) -> None:
        self.now[target] = texts
        for name, text in texts.items():
            self.ever.setdefault(target.uri(name), set()).add(text)

    # -- ways

    def replace(self, target: Target, way: str, told: Subscriber, asking: Asking) -> None:
        before, texts = self.now[target], self.texts(self.now[target])
        told.last.clear()
        self.ways[way] += 1
        label = f"{way} of {target.scheme}://"
        if way == "mount":
            folder = self.fresh(target, texts)
            self._stands(target, texts)
            self._within("mount", "--bind", str(folder), str(target.path))
            self.check(label, target, before, texts, told, asking)
            told.last.clear()
            self._stands(target, before)
            self._within("umount", "--lazy", str(target.path))
            self.left[folder] = _names(folder)
            self.check(f"end of a {label}", target, texts, before, told, asking)
            return
        self._stands(target, texts)
        sure = way not in ("twice", "full disk", "copy back")
        if way == "twice":
            between = self.texts(texts)
            for name, text in between.items():
                self.ever.setdefault(target.uri(name), set()).add(text)
            folders = [self.fresh(target, one) for one in (between, texts)]
            for folder in folders:
                self._renamed(target, folder)
        elif way == "flip":
            self._flipped(target, self.fresh(target, texts))
        elif way == "copy back":
            folder = self.fresh(target, texts)
            self._removed(target)
            shutil.copytree(folder, target.path)
        elif way == "full disk":
            self._on_full_disk(target, texts)
        else:
            self._renamed(target, self.fresh(target, texts))
        self.check(label, target, before, texts, told, asking, sure=sure)

    def _within(self, *command: str) -> None:
        subprocess.run([*self._disk.enter, *command], check=True, timeout=30, capture_output=True)

    def _away(self, target: Target) -> None:
        self._number += 1
        gone = self._base / f"old-{self._number}"
        real = target.path.resolve() if target.path.is_symlink() else gone
        target.path.rename(gone)
        if real != gone:
            gone.unlink()
        if real.exists() and not str(real).startswith(str(self._base / "small")):
            self.left[real] = _names(real)

    def _renamed(self, target: Target, folder: Path) -> None:
        self._away(target)
        folder.rename(target.path)

    def _flipped(self, target: Target, folder: Path) -> None:
        link = self._base / "link"
        link.symlink_to(folder)
        real = target.path.resolve()
        if target.path.is_symlink():
            os.replace(link, target.path)
            if real.exists():
                self.left[real] = _names(real)
        else:
            self._away(target)
            link.rename(target.path)

    def _removed(self, target: Target) -> None:
        if target.path.is_symlink():
            self._away(target)
            return
        while target.path.exists():
            shutil.rmtree(target.path, ignore_errors=True)

    def _on_full_disk(self, target: Target, texts: Texts) -> None:
        """Linked to a folder on it before that is whole."""
        folder = self.fresh(target, texts)
        place = self._base / "small" / folder.name
        seen = self._disk.seen() / folder.name
        self._disk.fill(leave=8192)
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(folder, seen)
        self._flipped(target, place)
        self._disk.empty()
        shutil.copytree(folder, seen, dirs_exist_ok=True)

    # -- what must hold

    def check(
        self,
        label: str,
        target: Target,
        before: Texts,
        after: Texts,
        told: Subscriber,
        asking: Asking,
        sure: bool = True,
    ) -> None:
        """`sure`: nothing else stood there in between. What is told of a file whose text is the same is that it was
        updated, since it is another file with other times; of a branch not even that."""
        wanted: dict[str, str] = {}
        for name in {*before, *after}:
            if before.get(name) != after.get(name):
                kind = "deleted" if name not in after else "created" if name not in before else "updated"
                wanted[target.uri(name)] = kind
        end = time.monotonic() + LIMIT
        while True:
            served = self._served(target, asking)
            mine = f"{target.scheme}://ops/"
            heard = {uri: kind for uri, kind in {**told.last}.items() if uri.startswith(mine)}
            same = {} if target.git else {target.uri(name): "updated" for name in before if name in after}
            if sure:
                right = heard == {**{uri: kind for uri, kind in same.items() if uri in heard}, **wanted}
            else:  # of what there was in between too, and then of what is there in the end
                there = {*map(target.uri, after)}
                right = wanted.keys() <= heard.keys()
                right &= all((kind == "deleted") == (uri not in there) for uri, kind in heard.items())
            ready = asking.get("/readyz")
            if served == after and right and (ready.status, ready.body) == (200, {"status": "ready"}):
                return
            if time.monotonic() > end:
                self.faults.append(
                    f"{label}: served {served == after}, told {heard} for {wanted}, readiness {ready.body}"
                )
                return

    def _served(self, target: Target, asking: Asking) -> Texts:
        found = {}
        for name in NAMES:
            answer = asking.ask("resources/read", {"uri": target.uri(name)}).body
            if "result" in answer:
                found[name] = _text(answer["result"]["contents"][0]["text"])
        return found

    def read(self, asking: Asking) -> None:
        chance = random.Random(self._number)
        while not self._stop.is_set():
            uri = chance.choice(self.targets).uri(chance.choice(NAMES))
            answer = asking.ask("resources/read", {"uri": uri}).body
            self.counts["reads"] += 1
            if "result" in answer:
                text = _text(answer["result"]["contents"][0]["text"])
                if text not in self.ever.get(uri, ()) and text:
                    self.faults.append(f"a read of {uri} gave {text!r}, which never stood there")
            elif answer["error"].get("data", {}).get("reason") == "source_unavailable":
                self.counts["unavailable"] += 1
            elif "not found" not in answer["error"]["message"]:
                self.faults.append(f"a read of {uri} failed: {answer['error']}")
        asking.hang_up()

    def write(self, asking: Asking) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            arguments = {"target": f"w/{number % 50}.md", "content": f"written {number}", "mode": "upsert"}
            answer = asking.ask("tools/call", {"name": "write", "arguments": arguments}).body
            self.counts["writes"] += not answer.get("result", {"isError": True})["isError"]
        asking.hang_up()

    @contextlib.contextmanager
    def at_work(self, server: Server) -> Iterator[None]:
        works = (self.read, self.write)
        threads = [threading.Thread(target=work, args=(server.asking(),), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(LIMIT)
        for folder, names in self.left.items():
            if folder.exists() and _names(folder) != names:
                self.faults.append(f"something was written to {folder.name}, to which no path led")


def _text(body: str) -> str:
    return body.rpartition("---\n")[2].strip()


def _names(folder: Path) -> list[str]:
    return sorted(
        f"{path.relative_to(folder)} {path.stat().st_mtime_ns}" for path in folder.rglob("*") if path.is_file()
    )


def run(base: Path, ways: int, seed: int) -> Figures:
    chance = random.Random(seed)
    (base / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")
    place = Place(base, root=False)
    with small_disk(base / "small", size="4m") as disk:
        # Folders before the server: what it stands on must be there.
        siege = Siege(base, disk, chance)
        for target in siege.targets:
            siege.begin(target)
        command = octavo("serve", "--config", base / "octavo.yaml", "--http", "127.0.0.1:0", "--no-auth")
        with place.start(*disk.enter, *command) as server:
            url = server.ready()
            asking = server.asking()
            told = Subscriber(url, ["file://*", "sop://*", "gits://*"])
            with siege.at_work(server):
                for number in range(ways):
                    target = siege.targets[(number + number // len(WAYS)) % 3]  # in the end each way of each
                    siege.replace(target, WAYS[number % len(WAYS)], told, asking)
            told.close()
    counts = siege.counts
    return Figures(siege.ways, counts["reads"], counts["writes"], counts["unavailable"], told.events, siege.faults)


def main() -> None:
    parser = argparse.ArgumentParser(description="Roots that are replaced while a server serves them.")
    parser.add_argument("--ways", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder).resolve(), asked.ways, asked.seed)
    print(figures)
    for fault in figures.faults[:20]:
        print(fault)
    sys.exit(bool(figures.faults))


if __name__ == "__main__":
    main()
