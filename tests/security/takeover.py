"""Somebody with all rights on a root tries to put something else in the place of what the server stands on.

    python -m tests.security.takeover --over http --era handshake

Several arrangements in which everything that a configuration can name lies in a root that may be written. For each
file and folder of them, each folder above it and each name that is not there yet and would be loaded: every operation
that changes files, in several spellings and through links, and each of them undone. Afterwards everything must be
byte for byte what it was, and the server that reads it again, and the one that is started again, must decide, admit
and offer what they did before. Prints one line of JSON; exit code 1 if anything gave way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.security.issuer import IssuerServer, ec_key, jwk
from tests.security.ways import WAYS, Asks, Way, add_ways, caller, chosen, failed

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import Unauthenticated
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail, Verb

KEY, OTHER_KEY = "the-key-of-the-clerk-0123456789-abcdef", "a-key-of-the-intruder-0123456789-abcdef"
HELLO = {"type": "text", "text": "Hello"}
PROMPT = {"id": "greet", "description": "Says hello.", "messages": [{"role": "user", "content": [HELLO]}]}
RULES = """
agents:
  clerk: {key: "file:%(clerk)s", roles: [staff]}
  intruder: {key: "file:%(intruder)s"}
policy:
  - {who: intruder, may: "*", what: ["file://*", "tool://*"]}
  - {who: clerk, may: "*", what: ["file://*", "tool://*", "prompt://*"]}
  - {who: intruder, may: "*", what: "file://hr/*", effect: deny}
"""
FULL = (
    """
version: 1
sources:
  work: {kind: file, roots: [%(root)s, %(second)s], write: true, extensions: ["*"], hard_links: allow}
  staff: {kind: file, roots: [%(outside)s/staff], expose: false}
"""
    + RULES
    + """
prompts: {dirs: [%(prompts)s]}
tools: {dirs: [%(outside)s/tools]}
plugins: [{path: %(outside)s/plugin.py}]
state: {path: %(state)s}
audit: {checkpoints: {path: %(outside)s/checkpoints.jsonl}}
web: {hosts: [{host: example.com, headers: {Authorization: "file:%(token)s"}}]}
serve:
  http:
    tls: {cert: %(cert)s, key: %(tls_key)s}
    oauth:
      resource: https://octavo.example/mcp
      issuers: {people: {issuer: "https://issuer.example", jwks: "file:%(jwks)s"}}
"""
)
SMALL = (
    """
version: 1
sources: {work: {kind: file, roots: [.], write: true, extensions: ["*"], hard_links: allow}}
"""
    + RULES
)
PLUGIN = """
from octavo.core.tools import Hints

def register(octavo):
    async def act(ctx, arguments):
        return "done"

    hints = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    octavo.tool("act", act, description="Acts.", hints=hints)
"""
TOOL = '''
def shout(text: str) -> str:
    """Says it loudly.

    Args:
        text: What to say.
    """
    return text.upper()
'''


class Arrangement(NamedTuple):
    """`stood_on` are paths below the root, the missing ones among them too; `config` is one of them."""

    name: str
    root: Path
    config: Path
    stood_on: Sequence[str]


def arranged(folder: Path) -> list[Arrangement]:
    return [_full(folder / "full"), _small(folder / "small"), _linked(folder / "linked")]


def _write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def _full(folder: Path) -> Arrangement:
    """Everything lies deep in the first root, each in folders of its own."""
    root, outside = folder / "work", folder / "outside"
    named = {
        "clerk": "site/keys/clerk.txt",
        "intruder": "site/keys/intruder.txt",
        "token": "site/web/token.txt",
        "jwks": "site/trust/jwks.json",
        "cert": "site/tls/server.crt",
        "tls_key": "site/tls/server.private",
    }
    _write(outside, {"tools/shout.py": TOOL, "plugin.py": PLUGIN, "staff/a.md": "a"})
    _write(root, dict.fromkeys(named.values(), "text") | {named["clerk"]: KEY, named["intruder"]: OTHER_KEY})
    _write(root, {named["jwks"]: json.dumps({"keys": [jwk(ec_key(0), "ec", "ES256")]})})
    _write(root, {"site/words/인사/greet.json": json.dumps(PROMPT), "hr/pay.md": "pay", "mine/note.md": "note"})
    (folder / "second").mkdir()
    values = {name: root / path for name, path in named.items()}
    values |= {"root": root, "second": folder / "second", "outside": outside}
    values |= {"prompts": root / "site/words/인사", "state": root / "site/kept/state"}
    config = "site/conf/octavo.yaml"
    _write(root, {config: FULL % values})
    missing = ("site/conf/octavo.yml", "site/conf/octavo.toml", "site/words/인사/more.json")
    stood_on = [config, *named.values(), "site/words/인사", "site/kept/state", "site/kept/state/keys.json", *missing]
    return Arrangement("full", root, root / config, stood_on)


def _small(folder: Path) -> Arrangement:
    """The configuration at the top of its own root, and names beside it that would be used if they were there."""
    _write(folder, {"octavo.toml": "", "hr/pay.md": "pay", "mine/note.md": "note"})
    (folder / "octavo.toml").unlink()
    _write(folder, {"clerk.txt": KEY, "intruder.txt": OTHER_KEY})
    _write(folder, {"octavo.yml": SMALL % {"clerk": "./clerk.txt", "intruder": "./intruder.txt"}})
    # State of others, and what a client would start.
    beside = (".local/state/octavo/0123/secret", ".local/state/octavo/clients/a.before", ".vscode/mcp.json")
    _write(folder, dict.fromkeys(beside, "text"))
    missing = ("octavo.yaml", "octavo.toml", "prompts", "prompts/greet.json", ".mcp.json")
    stood_on = ("octavo.yml", "clerk.txt", ".octavo", ".octavo/keys.json", *beside, *missing)
    return Arrangement("small", folder, folder / "octavo.yml", stood_on)


def _linked(folder: Path) -> Arrangement:
    """The way to the configuration and to a key leads through links of the root."""
    small = _small(folder / "releases/7")
    (folder / "current").symlink_to("releases/7")
    _write(folder, {"hr/pay.md": "pay", "mine/note.md": "note"})
    (folder / "secrets").mkdir()
    shutil.move(small.root / "clerk.txt", folder / "secrets/v1.txt")
    (folder / "clerk.link").symlink_to("secrets/v1.txt")
    config = folder / "current/octavo.yml"
    text = SMALL.replace("roots: [.]", f"roots: ['{folder}']")
    config.write_text(text % {"clerk": folder / "clerk.link", "intruder": "./intruder.txt"}, encoding="utf-8")
    inner = [f"releases/7/{path}" for path in small.stood_on if path != "clerk.txt"]
    return Arrangement("linked", folder, config, ["current", "clerk.link", "secrets/v1.txt", *inner])


# -- what is tried


class Try(NamedTuple):
    kind: str
    tool: str
    arguments: dict[str, Any]


def tries(everywhere: Sequence[str]) -> Iterator[Try]:
    """Every way to change one place below the root, by each of its names."""
    evil = "mine/evil"
    for at in everywhere:
        yield Try("write", "write", {"target": at, "content": "evil"})
        yield Try("write", "write", {"target": at, "content": "evil", "mode": "overwrite"})
        yield Try("write", "write", {"target": f"{at}/evil.json", "content": json.dumps({**PROMPT, "id": "evil"})})
        yield Try("append", "write", {"target": at, "content": "# evil", "mode": "append"})
        yield Try("edit", "edit", {"target": at, "edits": [{"old": "effect: deny", "new": "effect: allow"}]})
        yield Try("edit", "edit", {"target": at, "edits": [{"old": "t", "new": "evil", "all": True}]})
        yield Try("make", "create_directory", {"target": at})
        yield Try("make", "create_directory", {"target": f"{at}/deeper"})
        for thing in (evil, f"{evil}/file.json"):
            yield Try("copy", "copy", {"target": thing, "to": at})
            yield Try("copy", "copy", {"target": thing, "to": at, "overwrite": True})
            yield Try("copy", "copy", {"target": thing, "to": f"{at}/evil.json"})
            yield Try("move", "move", {"target": thing, "to": at})
            yield Try("move", "move", {"target": thing, "to": at, "overwrite": True})
            yield Try("move", "move", {"target": thing, "to": f"{at}/evil.json"})
        yield Try("move", "move", {"target": at, "to": "mine/away"})
        yield Try("delete", "delete", {"target": at})


def spellings(place: str, root: Path) -> list[str]:
    found = [place, place.upper(), f"file://{root}/{place}", f"file://{place}?root=1"]
    found.append(unicodedata.normalize("NFD", place))
    return list(dict.fromkeys(found))


def places(stood_on: Sequence[str]) -> list[str]:
    """Each of them, and each folder above it."""
    found = [
        "/".join(names[:depth]) for one in stood_on for names in [one.split("/")] for depth in range(len(names), 0, -1)
    ]
    return list(dict.fromkeys(found))


def linked(arrangement: Arrangement) -> dict[str, list[str]]:
    """Other names for what is there, which the operator has made: by place, links to it, and what is behind them."""
    names: dict[str, list[str]] = {}
    (arrangement.root / "links").mkdir()
    for number, place in enumerate(places(arrangement.stood_on)):
        path = arrangement.root / place
        if path.exists():
            (arrangement.root / f"links/{number}").symlink_to(f"../{place}")
            names[place] = [f"links/{number}"]
            if path.is_file():
                os.link(path, arrangement.root / f"links/{number}.hard")
                names[place].append(f"links/{number}.hard")
    return names


class Intruder:
    """`gave_way` are the operations after which something that the server stands on was not what it had been."""

    def __init__(self, ask: Asks, arrangement: Arrangement) -> None:
        self._ask, self._root, self._arrangement = ask, arrangement.root, arrangement
        self._was = standing(arrangement)
        self.counts: Counter[str] = Counter()
        self.gave_way: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> bool:
        """Whether it was done."""
        return not failed(await self._ask("tools/call", {"name": tool, "arguments": arguments}))

    async def attack(self, place: str, *, everywhere: Sequence[str], links: Sequence[str] = ()) -> None:
        for one in (*tries(everywhere), *(one._replace(kind="link") for one in tries(links))):
            self._prepare()
            self.counts[one.kind] += 1
            if await self.call(one.tool, **one.arguments):
                self._look(f"{one.kind} {one.arguments}")
                self.counts["undo"] += 1
                await self.call("undo")
                self._look(f"undo of {one.kind} {one.arguments}")
        self.counts["undo"] += 1
        await self.call("undo", count=20)
        self._look(f"everything undone after {place}")

    def _look(self, after: str) -> None:
        if (now := standing(self._arrangement)) != self._was:
            self.gave_way.append(f"{self._arrangement.name}: {after}")
            self._was = now

    def _prepare(self) -> None:
        """What would be put in the place of something: a folder that has all of it, and a file."""
        mine = self._root / "mine"
        if not (mine / "evil/file.json").exists():
            shutil.rmtree(mine, ignore_errors=True)
            _write(mine, {"evil/file.json": "{}", "evil/greet.json": json.dumps({**PROMPT, "id": "evil"})})
            _write(mine, {"evil/octavo.yaml": "version: 1\n", "evil/keys.json": "{}", "evil/clerk.txt": OTHER_KEY})
            _write(mine, {"evil/jwks.json": json.dumps({"keys": [jwk(ec_key(1), "ec", "ES256")]})})
            _write(mine, {"evil/conf/octavo.yaml": "version: 1\n", "evil/7/octavo.yml": "version: 1\n"})
        shutil.rmtree(mine / "away", ignore_errors=True)


# -- what must stay


def standing(arrangement: Arrangement) -> dict[str, Any]:
    """What is there: of files their bytes, of folders which they are, of folders that are loaded also what is in them.
    Of the state only that it is the same folder with the same keys: the server itself works in it."""
    found: dict[str, Any] = {}
    for place in places(arrangement.stood_on):
        path = arrangement.root / place
        if path.is_symlink():
            found[place] = ("link", os.readlink(path))
        elif path.is_file():
            found[place] = path.read_bytes()
        elif path.is_dir():
            is_loaded = place in arrangement.stood_on and path.name not in ("state", ".octavo")
            found[place] = (path.stat().st_ino, tuple(sorted(os.listdir(path))) if is_loaded else ())
    return found


SUBJECTS = (("intruder", "hr/pay.md"), ("intruder", "mine/note.md"), ("clerk", "hr/pay.md"), ("clerk", "mine/note.md"))
VERBS: tuple[Verb, ...] = ("list", "read", "search", "watch", "write", "delete")


async def behaviour(house: Octavo) -> dict[str, Any]:
    """What the server decides, whom it admits and what it offers."""
    works = house.works
    decided = {
        f"{who} {verb} {path}": works.policy.decide(
            works.identity.launched(who), verb, Ref.parse(f"file://{path}")
        ).allowed
        for who, path in SUBJECTS
        for verb in VERBS
    }
    admitted: dict[str, str] = {}
    tokens = [IssuerServer("https://issuer.example").token(key=ec_key(number)) for number in (0, 1)]
    for number, shown in enumerate((KEY, OTHER_KEY, "evil", "{}", *tokens)):
        try:
            admitted[str(number)] = (await works.identity.by_credential(shown)).principal.id
        except Unauthenticated:
            admitted[str(number)] = "nobody"
    prompts = await works.ask(
        Call("list", Ref("prompt"), works.identity.launched("clerk"), Trail(), "prompt://", limit=100, timeout=30.0)
    )
    return {
        "decided": decided,
        "admitted": admitted,
        "tools": works.tools.names,
        "prompts": [(str(entry.ref), entry.description) for entry in prompts.items],
    }


async def besieged(
    arrangement: Arrangement, attacked: Sequence[str], *, spelled: bool, way: Way = WAYS[0]
) -> tuple[Counter[str], list[str]]:
    """Attacks some places of one arrangement; gives what was tried and what gave way."""
    gave_way: list[str] = []
    async with Octavo(load(arrangement.config, environ={})) as house:
        house.ledger.flush()
        before, links = await behaviour(house), linked(arrangement)
        async with caller(house, "intruder", way) as ask:
            intruder = Intruder(ask, arrangement)
            for place in attacked:
                everywhere = spellings(place, arrangement.root) if spelled else [place]
                await intruder.attack(place, everywhere=everywhere, links=links.get(place, ()))
        gave_way += intruder.gave_way
        try:
            await house.reload(load(arrangement.config, environ={}))
        except Exception as problem:
            gave_way.append(f"{arrangement.name}: cannot be reloaded: {problem}")
        if await behaviour(house) != before:
            gave_way.append(f"{arrangement.name}: the running server is another")
    try:
        async with Octavo(load(arrangement.config, environ={})) as house:
            if await behaviour(house) != before:
                gave_way.append(f"{arrangement.name}: the restarted server is another")
    except Exception as problem:
        gave_way.append(f"{arrangement.name}: cannot be started again: {problem}")
    return intruder.counts, gave_way


async def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_ways(parser)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    gave_way: list[str] = []
    stood_on = 0
    for way in chosen(options):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o700)
            made = arranged(Path(folder))
            stood_on = sum(len(places(one.stood_on)) for one in made)
            for arrangement in made:
                tried, wrong = await besieged(arrangement, places(arrangement.stood_on), spelled=True, way=way)
                counts += tried
                gave_way += [f"{way}: {one}" for one in wrong]
    ways = [str(way) for way in chosen(options)]
    told = {"ways": ways, "places": stood_on, "tried": counts.total(), **counts, "gave_way": gave_way}
    print(json.dumps(told, ensure_ascii=False))
    return 1 if gave_way else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
