"""What `octavo init --yes` makes of a folder that nobody here wrote, and whether its agents can do what it says.

`python bench/world.py --init DIR…` prints it for public repositories; here is one of them, in a copy of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import world_counted

OCTAVO = (sys.executable, "-m", "octavo")
SOME = 20  # entries of an agent that are read and searched for
HEAD = (
    "repository",
    "init",
    "sources",
    "served",
    "there",
    "share",
    "served",
    "whole",
    "share",
    "titles",
    "links",
    "check",
    "agents: listed/read/found",
)


def line(name: str, told: dict[str, Any]) -> str:
    if "refused" in told:
        return f"{name:36} {told['seconds']:5.1f}s {told['refused']}"
    (inside, there), (served, whole) = told["in_folders"], told["in_whole"]
    shares = [f"{100 * one / of:.1f} %" if of else "-" for one, of in ((inside, there), (served, whole))]
    agents = ", ".join(
        f"{one['id']} {one['listed']}/{one['read']}/{one['found']}{'' if one['holds'] else ' NOT AS SAID'}"
        for one in told["agents"]
    )
    sources = " ".join(f"{scheme}:{count}" for scheme, count in told["sources"].items())
    return (
        f"{name:36} {told['seconds']:5.1f}s {sources:28} {inside:6} {there:6} {shares[0]:>7} "
        f"{served:6} {whole:6} {shares[1]:>7} {told['titles']:6} {told['links']:5}  "
        f"{told['lines']:2} lines, exit {told['exit']}  {agents}"
    )


def begun(folder: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as base:
        copy = Path(base) / folder.name
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "octavo.yaml", ".octavo"))
        start = time.perf_counter()
        made = _run("init", str(copy), "--yes", "--json")
        seconds = time.perf_counter() - start
        if made.returncode:
            return {"seconds": seconds, "refused": (made.stdout + made.stderr).strip()[-300:]}
        proposal = json.loads(made.stdout)
        check = _run("check", "--config", str(copy / "octavo.yaml"))
        warned = len(check.stderr.splitlines())
        # The server's own index would answer from what it has so far, for as long as it is being made.
        _run("search", "the", "--config", str(copy / "octavo.yaml"), "--as", proposal["agents"][0]["id"])
        served, titles, links = _served(copy)
        documents = _documents(copy)
        paths = [one["path"] + "/" if one["path"] else "" for one in proposal["sources"]]
        inside = {one for one in documents if any(one.startswith(path) for path in paths)}
        return {
            "seconds": seconds,
            "sources": {one["scheme"]: one["entries"] for one in proposal["sources"]},
            "in_folders": (len(inside & served), len(inside)),
            "in_whole": (len(served), len(documents)),
            "missing": sorted(documents - served)[:20],
            "titles": titles,
            "links": links,
            "lines": len(check.stdout.splitlines()) + warned,
            "warnings": warned,
            "exit": check.returncode,
            "agents": [_used(copy / "octavo.yaml", one) for one in proposal["agents"]],
        }


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run([*OCTAVO, *arguments], capture_output=True, text=True, env=environment, check=False)


def _documents(folder: Path) -> set[str]:
    return {path for path in world_counted.documents(folder) if not world_counted.evidently_none(path)}


def _served(folder: Path) -> tuple[set[str], int, int]:
    """Documents that have an address of a catalog, those with a title, and links between them."""
    import asyncio

    from octavo.app.configuration import load
    from octavo.app.server import Octavo
    from octavo.stores.state import StateDirectory

    async def look() -> tuple[set[str], int, int]:
        async with Octavo(load(folder / "octavo.yaml"), state=StateDirectory.in_memory()) as house:
            catalogs = house.works.catalogs
            if catalogs is None:
                return set(), 0, 0
            pages = await catalogs.pages()
            cards = [card for one in catalogs.by_name.values() for card in (await one.look()).cards.values()]
            folders = [card.file.removesuffix("SKILL.md") for card in cards if card.file.endswith("/SKILL.md")]
            parts = {path for path in _documents(folder) for skill in folders if path.startswith(skill)}
            links = sum(len(found) for found in (await pages.linking()).values())
            return (
                {card.file for card in cards} & _documents(folder) | parts,
                sum(card.entry.title is not None for card in cards),
                links,
            )

    return asyncio.run(look())


def _used(config: Path, said: dict[str, Any]) -> dict[str, Any]:
    """A server on stdio, as a client starts it, asked for what the proposal says."""
    with _Client(config, said["id"]) as client:
        listed = client.whole()
        some = listed[:: max(1, len(listed) // SOME)][:SOME]
        read = sum(bool(client.ask("resources/read", {"uri": one["uri"]})["contents"]) for one in some)
        # Files inside a skill have no titles of their own: they are found by what they say, not by a name.
        texts = [one for one in listed if one.get("mimeType") == "text/markdown" and one.get("title")]
        texts = texts[:: max(1, len(texts) // SOME)][:SOME]
        found = sum(client.finds(one) for one in texts)
    holds = len(listed) == sum(said["sees"].values()) and (read, found) == (len(some), len(texts))
    return {"id": said["id"], "listed": len(listed), "read": read, "found": found, "holds": holds}


class _Client:
    def __init__(self, config: Path, agent: str) -> None:
        self._process = subprocess.Popen(
            [*OCTAVO, "serve", "--config", str(config), "--as", agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._number = 0
        self.unavailable = False
        hello = {"name": "world", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": hello})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result; nothing for an error."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        for text in self._process.stdout:
            answer = json.loads(text)
            if answer.get("id") == self._number:
                return answer.get("result") or {"contents": [], "resources": [], "content": []}
        raise RuntimeError(f"the server ended at {method}")

    def listed(self) -> Iterator[dict[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = self.ask("resources/list", cursor)
            self.unavailable = self.unavailable or bool(page.get("_meta", {}).get("dev.octavo/unavailable"))
            yield from page["resources"]
            if "nextCursor" not in page:
                return
            cursor = {"cursor": page["nextCursor"]}

    def whole(self) -> list[dict[str, Any]]:
        """The list when every catalog has been read: until then it names those that are missing in it."""
        while True:
            self.unavailable = False
            listed = [*self.listed()]
            if not self.unavailable:
                return listed
            time.sleep(1.0)

    def finds(self, entry: dict[str, Any]) -> bool:
        """By its title, among the first hundred."""
        words = entry.get("title") or entry["name"]
        asked = {"query": words[:200], "kind": "ranked", "limit": 100}
        answer = self.ask("tools/call", {"name": "search", "arguments": asked})
        if entry["uri"] in json.dumps(answer, ensure_ascii=False):
            return True
        # A link and the file that it leads to are one find, under the name of the file.
        results = (answer.get("structuredContent") or {}).get("results", ())
        same = [one["uri"] for one in results if one.get("title") == entry.get("title")]
        return any(self._text(one) == self._text(entry["uri"]) for one in same)

    def _text(self, uri: str) -> str:
        return "".join(one.get("text", "") for one in self.ask("resources/read", {"uri": uri})["contents"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message, ensure_ascii=False) + "\n")
        self._process.stdin.flush()
