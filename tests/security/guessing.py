"""Whether somebody who may read and write files learns anything of what is hidden in them.

    python -m tests.security.guessing                   4,000 requests over the secrets of every rule
    python -m tests.security.guessing --requests 300    a short look

Two houses are the same but for the secrets in their files. One attacker, who knows those of the first, asks both the
same: guesses by edits and patches, texts and bytes added, labels changed, names, encodings and parts, undone and done
again. Nothing of the second house's secrets may leave, and no answer may say which house it comes from.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.gate.doors import Pipe
from tests.gate.twins import META, frame
from tests.pipeline import secrets_corpus as corpus

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.pipeline.redact.redactor import Redactor
from octavo.stores.state import StateDirectory

CONFIGURATION = """
version: 1
sources:
  files: {kind: file, roots: [./files], extensions: ["*"], write: true}
agents: {brand: {}}
policy: [{who: "*", may: "*", what: "**"}]
limits: {per_principal: 1000000/s}
"""
SHORTEST = 6  # characters of a secret that must not leave
ENDINGS = ("md", "txt", "log", "yaml", "json", "csv", "py", "foo", "png", "pdf", "html", "db", "log.1")
BYTES = (b"\0", b"\xff", b"\xff\xfe", b"\x80\x80", b"\0" * 64, "비밀번호".encode("cp949"), b"\x1b[0m")
WORDS = ("note", "x", "AKIA", "token=", "\n", " ", '"', "#", "{", "//", "\u200b", "\x00", "changeme", "1234567", "한글")
# What changes from run to run: versions, etags, times.
_VOLATILE = re.compile(r"\b[0-9a-f]{12,}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|\"(?:modified|seq|next)\": ?[\d.]+|W/\\?\"[^\"]*\"")

# What the server makes up itself, in which six digits may be those of a secret by chance.
_STAMP = re.compile(r"(?:version|etag)\\*\"?:? ?\\*\"?[0-9a-f]{16}\b")


class Hidden(NamedTuple):
    rule: str
    text: str  # with {} for the secret
    secrets: tuple[str, str]  # of the same shape, one for each house


class Figures(NamedTuple):
    requests: int
    refused: int
    secrets: int
    leaked: int
    told_apart: int


def planted(seed: int) -> Iterator[Hidden]:
    """Secrets of every rule that are hidden as a whole."""
    redactor = Redactor(b"k" * 32)
    for rule, make in corpus.ALL.items():
        text, first = make(corpus.Maker(seed))
        for other in range(seed + 1, seed + 40):
            _, second = make(corpus.Maker(other))
            found = [redactor.hidden(text.format(secret)) for secret in (first, second)]
            whole = [[text.format(one)[a:b] for a, b, _ in spans] for one, spans in zip((first, second), found)]
            if len(first) == len(second) != 0 and first != second and whole == [[first], [second]]:
                yield Hidden(rule, text, (first, second))
                break


def files(hidden: Sequence[Hidden], house: int, rng: random.Random) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for number, one in enumerate(hidden):
        body = f"# {one.rule}\n\nfirst line\n{one.text.format(one.secrets[house])}\n\nlast line of {number}\n"
        encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-16", "utf-8-sig"))
        made[f"f{number}.{rng.choice(('md', 'txt', 'log', 'foo', 'py'))}"] = body.encode(encoding)
    return made


class Houses:
    """Both, and what an attacker asks of them."""

    def __init__(self, pipes: Sequence[Pipe], hidden: Sequence[Hidden], names: Sequence[str]) -> None:
        self._pipes, self.names = pipes, dict(enumerate(names))
        known = "\n".join(f"{one.text} {one.secrets[0]}" for one in hidden)
        self._grams = [
            gram
            for one in hidden
            for at in range(len(one.secrets[1]) - SHORTEST + 1)
            if (gram := one.secrets[1][at : at + SHORTEST]) not in known
        ]
        self.counts: Counter[str] = Counter()

    async def ask(self, method: str, **params: Any) -> Any:
        told = []
        for pipe in self._pipes:
            (answer,) = await pipe.ask(frame(method, {**params, "_meta": META}))
            told.append(answer.text)
        self.counts["requests"] += 1
        left = _STAMP.sub("#", told[1]) + opened(json.loads(told[1]))
        if found := [gram for gram in self._grams if gram in left]:
            self.counts["leaked"] += 1
            print("leaked", json.dumps([method, params])[:600], found[:3], left, sep="\n  ", file=sys.stderr)
        if _VOLATILE.sub("#", told[0]) != _VOLATILE.sub("#", told[1]):
            self.counts["told apart"] += 1
            print("told apart", json.dumps([method, params])[:600], *told, sep="\n  ", file=sys.stderr)
        return json.loads(told[0])

    async def call(self, tool: str, **arguments: Any) -> bool:
        """Whether it was done."""
        told = await self.ask("tools/call", name=tool, arguments=arguments)
        refused = "error" in told or told["result"].get("isError", False)
        self.counts["refused"] += refused
        return not refused

    async def text(self, name: str, query: str = "") -> str:
        told = await self.ask("resources/read", uri=f"file://{name}{query}")
        return "".join(one.get("text", "") for one in told.get("result", {}).get("contents", ()))


def opened(value: Any) -> str:
    """What stands in base64 anywhere in an answer."""
    if isinstance(value, Mapping):
        return "".join(
            base64.b64decode(one).decode("latin-1").replace("\0", "")
            if key in ("blob", "data") and isinstance(one, str)
            else opened(one)
            for key, one in value.items()
        )
    return "".join(map(opened, value)) if isinstance(value, list) else ""


class Attacker:
    def __init__(self, houses: Houses, hidden: Sequence[Hidden], rng: random.Random) -> None:
        self._houses, self._hidden, self._rng = houses, hidden, rng
        self._made = 0

    async def act(self) -> None:
        number = self._rng.choice([*self._houses.names])
        await self._rng.choice((
            self._guess, self._guess, self._guess, self._patch, self._change, self._change, self._change, self._append,
            self._append_bytes, self._rename, self._copy, self._undo, self._read, self._read, self._find, self._plant,
        ))(number, self._houses.names[number])  # fmt: skip

    async def _guess(self, number: int, name: str) -> None:
        """A piece of the secret, from its beginning more often than not, with or without what stands beside it."""
        before, _, behind = self._hidden[number].text.partition("{}")
        piece = self._piece(number)
        old = before[-self._rng.randint(0, 12) :] * (self._rng.random() < 0.5) + piece
        old += behind[: self._rng.randint(0, 5)] if self._rng.random() < 0.3 else ""
        edits = [{"old": old, "new": old + "x", "expected": self._rng.choice((1, 1, 2, "all"))}]
        if self._rng.random() < 0.3:
            edits.insert(self._rng.randint(0, 1), {"old": "first line", "new": "first line"})
        await self._houses.call("edit", target=name, edits=edits, dry_run=self._rng.random() < 0.5)

    async def _patch(self, number: int, name: str) -> None:
        line = self._hidden[number].text.replace("{}", self._piece(number, whole=0.6)).split("\n")[0]
        at = self._rng.choice((1, 3, 4))
        patch = f"@@ -{at},2 +{at},2 @@\n {line}\n-\n+more\n"
        await self._houses.call("edit", target=name, patch=patch, dry_run=self._rng.random() < 0.5)

    async def _change(self, number: int, name: str) -> None:
        """Something that can be seen becomes something else: a label, a quote, what stands beside a mark."""
        seen = await self._houses.text(name)
        pieces = re.findall(r"\[redacted:[^\]]*\]|\w+|\s|[^\w\s]", seen)
        marks = [n for n, piece in enumerate(pieces) if piece.startswith("[redacted:")]
        if not pieces:
            return
        near = self._rng.choice(marks) + self._rng.randint(-4, 4) if marks else self._rng.randrange(len(pieces))
        near = min(max(near, 0), len(pieces) - 1)
        old = "".join(piece for piece in pieces[near : near + self._rng.randint(1, 4)])
        new = self._rng.choice((old + self._word(number), self._word(number) + old, self._word(number), ""))
        await self._houses.call("edit", target=name, edits=[{"old": old, "new": new, "expected": "all"}])

    async def _append(self, number: int, name: str) -> None:
        text = self._word(number) + self._rng.choice(("", "\n"))
        await self._houses.call("write", target=name, content=text, mode="append")

    async def _append_bytes(self, number: int, name: str) -> None:
        raw = base64.b64encode(self._rng.choice(BYTES)).decode()
        await self._houses.call("write", target=name, base64=raw, mode="append")

    async def _rename(self, number: int, name: str) -> None:
        to = self._new(number)
        if await self._houses.call("move", target=name, to=to):
            self._houses.names[number] = to

    async def _copy(self, number: int, name: str) -> None:
        to = self._new(number)
        if await self._houses.call("copy", target=name, to=to) and self._rng.random() < 0.5:
            self._houses.names[number] = to
        await self._houses.text(to)

    async def _undo(self, number: int, name: str) -> None:
        await self._houses.call("undo", count=self._rng.randint(1, 3))

    async def _read(self, number: int, name: str) -> None:
        begin = self._rng.randint(0, 60)
        end = begin + self._rng.randint(1, 80)
        if self._rng.random() < 0.5:
            part = self._rng.choice(({"lines": [1, 4]}, {"head": 3}, {"tail": 3}, {"bytes": [begin, end]}, {}))
            await self._houses.call("read", target=name, **part)
        else:
            query = f"?range={begin}-{end}", "?encoding=latin-1", "?encoding=utf-16-le", "?as=text", "?encoding=cp949"
            await self._houses.text(name, self._rng.choice(("", *query)))

    async def _find(self, number: int, name: str) -> None:
        kind = self._rng.choice(("content", "ranked"))
        await self._houses.call("search", query=self._piece(number, whole=0.5), target=f"file://{name}", kind=kind)

    async def _plant(self, number: int, name: str) -> None:
        """A guess that is hidden itself."""
        guess = self._hidden[number].text.format(self._piece(number, whole=0.7))
        to = self._new(number)
        await self._houses.call("write", target=to, content=f"{guess}\n{guess}\n")
        await self._houses.text(to)

    def _piece(self, number: int, whole: float = 0.2) -> str:
        secret = self._hidden[number].secrets[0]
        if self._rng.random() < whole:
            return secret
        begin = 0 if self._rng.random() < 0.6 else self._rng.randrange(len(secret))
        return secret[begin : begin + self._rng.randint(2, len(secret))]

    def _word(self, number: int) -> str:
        return self._rng.choice((*WORDS, self._piece(number)))

    def _new(self, number: int) -> str:
        self._made += 1
        return f"d{self._made % 7}/g{self._made}.{self._rng.choice(ENDINGS)}"


@asynccontextmanager
async def served(base: Path, files: Mapping[str, bytes]) -> AsyncIterator[Pipe]:
    for name, body in files.items():
        (base / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (base / "files" / name).write_bytes(body)
    (base / "state").mkdir(mode=0o700, parents=True)
    loaded = load_text(CONFIGURATION, file=base / "octavo.yaml", environ={})
    async with (
        Octavo(loaded, state=StateDirectory(base / "state", b"s" * 32)) as octavo,
        Pipe(octavo, octavo.works.identity.launched("brand"), lane=True) as pipe,
    ):
        yield pipe


async def attack(base: Path, requests: int, seed: int = 5, most: int | None = None) -> Figures:
    hidden = [*planted(seed)]
    random.Random(seed).shuffle(hidden)
    hidden = hidden[:most]
    worlds = [files(hidden, house, random.Random(seed)) for house in (0, 1)]
    async with served(base / "one", worlds[0]) as one, served(base / "two", worlds[1]) as two:
        houses = Houses((one, two), hidden, [*worlds[0]])
        attacker = Attacker(houses, hidden, random.Random(seed))
        while houses.counts["requests"] < requests:
            await attacker.act()
    counts = houses.counts
    return Figures(counts["requests"], counts["refused"], len(hidden), counts["leaked"], counts["told apart"])


async def main(requests: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as base:
        figures = await attack(Path(base), requests, seed)
    print(json.dumps(figures._asdict()))
    return 1 if figures.leaked or figures.told_apart else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=5)
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.requests, asked.seed)))
