"""Whether anything that is searched, listed, completed, counted or known of a place tells of a document that its asker
may not see.

    python -m tests.security.leaks                    1,000 principals, ten questions each
    python -m tests.security.leaks --principals 50    a short look

Every document has a word of its own, in its name, title, tags and text. The rules are random, and what they mean is
worked out here a second time, by a plainer way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.errors import OctavoError
from octavo.core.operations import arguments_of
from octavo.core.ref import Ref
from octavo.core.values import EVERYTHING, Call, Content, Entry, Op, Page, Principal, Trail
from octavo.stores.state import StateDirectory

FUNCTIONS = ("brand", "finance", "hr", "ops")
KINDS = {"sop": "sops", "doc": "docs", "file": "work", "note": ""}
VERBS = ("list", "read", "search")
SHARED = "공통 예산"
COLLECTIONS = True  # what is known of collections, and read of them
QUESTIONS = (
    "공통",
    "예산",
    "budget",
    '"공통 예산"',
    "예산 승인 절차는 누가 정하나요",
    "budgat",
    "공통 brand",
    "status active",
)


class Document(NamedTuple):
    uri: str
    word: str  # that no other document has

    def body(self, scheme: str, function: str) -> str:
        facts = {"title": f"{self.word} 절차", "tags": [self.word, "all"], "status": "active"}
        facts |= {"category": function} if scheme == "doc" else {"function": function}
        front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items())
        return f"---\n{front}\n---\n# {self.word}\n\n{SHARED} 승인 budget {self.word}\n"


class Rule(NamedTuple):
    verbs: frozenset[str]
    pattern: str
    allow: bool
    hide: bool

    def covers(self, uri: str) -> bool:
        if self.pattern == "**":
            return True
        if self.pattern.endswith("*"):
            begin = self.pattern.removesuffix("*")
            return uri.startswith(begin) or uri == begin.removesuffix("/")
        return uri == self.pattern


def allowed(rules: Sequence[Rule], uri: str, *verbs: str) -> bool:
    """A deny wins, and nothing is allowed that no rule allows."""
    for verb in verbs:
        mine = [rule for rule in rules if verb in rule.verbs and rule.covers(uri)]
        if not any(rule.allow for rule in mine) or not all(rule.allow for rule in mine):
            return False
    return True


def made_rules(chance: random.Random, documents: Sequence[Document]) -> list[Rule]:
    def pattern() -> str:
        kind = chance.random()
        scheme = chance.choice([*KINDS])
        if kind < 0.15:
            return "**"
        if kind < 0.4:
            return f"{scheme}://*"
        if kind < 0.75:
            return f"{scheme}://{chance.choice(FUNCTIONS)}/*"
        return chance.choice(documents).uri

    def verbs() -> frozenset[str]:
        return frozenset(VERBS if chance.random() < 0.7 else chance.sample(VERBS, chance.randint(1, 2)))

    allows = [Rule(verbs(), pattern(), allow=True, hide=False) for _ in range(chance.randint(1, 4))]
    denies = [Rule(verbs(), pattern(), allow=False, hide=chance.random() < 0.5) for _ in range(chance.randint(0, 3))]
    return [*allows, *(rule for rule in denies if rule.pattern != "**")]


def organisation(home: Path, chance: random.Random, count: int) -> tuple[list[Document], str]:
    """Writes the files; gives the documents, and the sources as the configuration says them."""
    documents: list[Document] = []
    notes: dict[str, Any] = {}
    for number in range(count):
        scheme, function = [*KINDS][number % len(KINDS)], chance.choice(FUNCTIONS)
        word = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        ending = ".md" if scheme == "file" else ""
        document = Document(f"{scheme}://{function}/{word}{ending}", word)
        documents.append(document)
        body = document.body(scheme, function)
        if scheme == "note":
            notes[f"{function}/{word}"] = {"text": body, "name": word}
        else:
            file = home / KINDS[scheme] / function / f"{word}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body, encoding="utf-8")
    sources = {
        "sops": {"kind": "sop", "store": "sop-files", "path": ""},
        "docs": {"kind": "doc", "store": "doc-files", "path": "", "categories": [*FUNCTIONS]},
        "sop-files": {"kind": "file", "roots": ["./sops"], "expose": False},
        "doc-files": {"kind": "file", "roots": ["./docs"], "expose": False},
        "work": {"kind": "file", "uris": "relative", "roots": ["./work"]},
        "notes": {"kind": "memory", "scheme": "note", "resources": notes},
    }
    return documents, json.dumps(sources, ensure_ascii=False)


class Asker:
    """One principal, and everything that it can ask."""

    def __init__(self, house: Octavo, who: str) -> None:
        self._house = house
        self._who: Principal = house.works.identity.launched(who)

    async def search(self, **asked: Any) -> list[dict[str, Any]]:
        """All pages of one search."""
        pages: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        while True:
            try:
                result = await self._ask("invoke", Ref("tool", ("search",)), {"kind": "ranked", **asked, **more})
            except OctavoError as refused:
                return [*pages, {"refused": refused.reason}]
            pages.append({**dict(result.structured), "said": result.content[0].text})
            if "cursor" not in pages[-1]:
                return pages
            more = {"cursor": pages[-1]["cursor"]}

    async def listed(self) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            page: Page[Any] = await self._ask("list", EVERYTHING, cursor=cursor)
            found += [str(entry.ref) for entry in page.items]
            cursor = page.cursor
            if cursor is None:
                return found

    async def told(self, scheme: str) -> Iterator[str]:
        """Completions of every variable, and a collection that is read as a whole."""
        said: list[str] = []
        for argument in ("path", "name", "function", "category"):
            asked = {"argument": argument, "prefix": "", "given": {}}
            said += await self._ask("complete", Ref(scheme), asked)
        try:
            said.append((await self._ask("read", Ref(scheme), {})).body)
        except OctavoError as refused:
            said.append(str(refused))
        return iter(said)

    async def known(self, op: Op, uri: str, **asked: Any) -> Any:
        """The answer, or the refusal."""
        try:
            return await self._ask(op, Ref.parse(uri), asked)
        except OctavoError as refused:
            return refused

    async def said_of(self, uri: str) -> str:
        """All that can be learnt of one address: its facts, by both ways, and its content."""
        info = await self.known("invoke", "tool://info", target=uri)
        told = (await self.known("stat", uri), await self.known("read", uri), info)
        return repr([(one, one.data) if isinstance(one, OctavoError) else one for one in told])

    async def _ask(self, op: Op, ref: Ref, arguments: dict[str, Any] | None = None, cursor: str | None = None) -> Any:
        call = Call(op, ref, self._who, Trail(), str(ref), arguments_of(op, arguments or {}), cursor)
        return await self._house.works.ask(call)


async def leaks(home: Path, *, principals: int, documents: int = 64, seed: int = 7) -> list[str]:
    """What was told and must not be, or was not told and should be; nothing, if all is well."""
    chance = random.Random(seed)
    known, sources = organisation(home, chance, documents)
    rules = {f"agent-{number}": made_rules(chance, known) for number in range(principals)}
    policy = [
        {"who": who, "may": sorted(rule.verbs), "what": rule.pattern, "effect": "allow" if rule.allow else "deny"}
        | ({"hide": True} if rule.hide else {})
        for who, mine in rules.items()
        for rule in mine
    ]
    written = {"version": 1, "agents": {who: {} for who in rules}, "policy": policy}
    text = f'{{"sources": {sources}, {json.dumps(written)[1:]}'
    loaded = load_text(text, file=home / "octavo.yaml", environ={})
    found: list[str] = []
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
        if await house.searching.complete() != len(known):
            return ["not every document is indexed"]
        for who, mine in rules.items():
            found += [f"{who}: {leak}" async for leak in _of(Asker(house, who), mine, known, chance)]
    return found


async def _of(asker: Asker, rules: Sequence[Rule], known: Sequence[Document], chance: random.Random) -> Any:
    finds = {one.uri for one in known if allowed(rules, one.uri, "search", "read")}
    lists = {one.uri for one in known if allowed(rules, one.uri, "list")}
    hidden = {one.word for one in known if one.uri not in finds}
    if any("search" in rule.verbs and rule.allow for rule in rules):
        everything = await asker.search(query="공통", limit=chance.randint(1, 20))
        got = [one["uri"] for page in everything for one in page.get("results", ())]
        if sorted(got) != sorted(finds) and "refused" not in everything[-1]:
            yield f"a search over everything gave {len(got)} of {len(finds)} documents"
        if "refused" in everything[-1] and finds:
            yield "a search was refused that would have found something"
    questions = [{"query": question} for question in QUESTIONS]
    questions += [{"query": chance.choice(known).word}, {"query": f"{chance.choice(known).word[:6]}"}]
    for asked in questions:
        filters = chance.choice(({}, {"target": "sop://"}, {"target": f"doc://{chance.choice(FUNCTIONS)}"}))
        wheres = chance.choice(({}, {"where": {"status": "active"}}, {"where": {"tags": chance.choice(known).word}}))
        pages = await asker.search(**asked, **filters, **wheres, limit=chance.randint(1, 9))
        said = json.dumps(pages, ensure_ascii=False)
        for word in (word for word in hidden if word in said and word not in json.dumps([asked, wheres])):
            yield f"{asked} {filters} {wheres} told of {word}"
        for one in (one for page in pages for one in page.get("results", ()) if one["uri"] not in finds):
            yield f"{asked} gave {one['uri']}"
    for one in (one for one in chance.sample(known, 3) if one.uri not in finds):
        real, invented = await asker.search(query=one.word), await asker.search(query="q" * len(one.word))
        if json.dumps(real).replace(one.word, "") != json.dumps(invented).replace("q" * len(one.word), ""):
            yield f"the word of {one.uri} is answered otherwise than one that is nowhere"
    if {*await asker.listed()} != lists:
        yield "a list is not what may be listed"
    unlisted = {one.word for one in known if one.uri not in lists}
    for scheme in KINDS:
        for text in await asker.told(scheme):
            for word in (word for word in unlisted if word in text):
                yield f"completions or the collection of {scheme}:// told of {word}"
    for one in (one for one in chance.sample(known, 6) if not allowed(rules, one.uri, "list")):
        async for leak in _of_denied(asker, rules, one):
            yield leak
    if COLLECTIONS:
        for uri in (f"{scheme}://{name}" for scheme in KINDS for name in ("", chance.choice(FUNCTIONS))):
            inside = {one.uri: one.word for one in known if one.uri.startswith(uri)}
            async for leak in _of_collection(asker, uri, {inside[one] for one in inside.keys() - lists}):
                yield leak


async def _of_denied(asker: Asker, rules: Sequence[Rule], one: Document) -> Any:
    """What may not be listed has no facts, and is answered as what is not there, unless a rule names it."""
    said = await asker.said_of(one.uri)
    if not allowed(rules, one.uri, "read") and SHARED in said:
        yield f"{one.uri} gave its content"
    if isinstance(await asker.known("stat", one.uri), Entry):
        yield f"{one.uri} gave its facts"
    if not any(rule.pattern == one.uri for rule in rules) and not allowed(rules, one.uri, "read"):
        invented = await asker.said_of(one.uri.replace(one.word, "q" * len(one.word)))
        if said.replace(one.word, "") != invented.replace("q" * len(one.word), ""):
            yield f"{one.uri} is answered otherwise than what is not there"


async def _of_collection(asker: Asker, uri: str, unlisted: set[str]) -> Any:
    """A collection is what its asker may list of it, in its content and in its facts."""
    said = await asker.said_of(uri)
    for word in (word for word in unlisted if word in said):
        yield f"{uri} told of {word}"
    facts, content = await asker.known("stat", uri), await asker.known("read", uri)
    if isinstance(facts, Entry) and isinstance(content, Content) and facts.size not in (None, content.size):
        yield f"{uri} is said to have {facts.size} bytes and has {content.size}"
    if isinstance(facts, Entry) and unlisted and facts.size is not None and not isinstance(content, Content):
        yield f"{uri} is said to have {facts.size} bytes to who cannot read it"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--principals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="octavo-leaks-") as folder:
        found = asyncio.run(leaks(Path(folder), principals=options.principals, seed=options.seed))
    for leak in found[:50]:
        print(leak)
    print(f"{options.principals} principals, {len(found)} leaks, {time.perf_counter() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
