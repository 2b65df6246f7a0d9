"""How well questions of people find their page in repositories that nobody here wrote.

    python bench/world_search.py OWNER/NAME=DIR …       a checkout of each repository of bench/questions.yaml
    python bench/world_search.py … --misses             also what was not found, of the half that may be looked at
    python bench/world_search.py … --qmd CMD --rg CMD   beside two other ways to search, in the same run

Each folder is served as it is, as a source of kind `file` (`--kind doc` serves it as a catalog), and the tool
`search` is asked as agents ask it: the question, and nothing else. A question is answered where one of its pages is
among the first five. Then twelve titles of each folder that only one page has are asked with `kind: ranked`, since a
line that says a title is found as a line without it (few pages of PagerDuty have one). Exit code 1 below 17 of 20
questions in any repository, or below 58 of 60 titles.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from ruamel.yaml import YAML

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import OwnArguments
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail

FIRST = 5
ENOUGH, TITLES, ENOUGH_TITLES = 17, 12, 58
QUESTIONS = Path(__file__).with_name("questions.yaml")

Finds = Callable[[str], Sequence[str]]


class Asked(NamedTuple):
    text: str
    find: tuple[str, ...]
    half: str

    def among(self, given: Sequence[str]) -> bool:
        return any(_same(uri, path) for uri in given[:FIRST] for path in self.find)


def _same(given: str, path: str) -> bool:
    """An address with or without the ending of its file; of a catalog, without the usual folder."""
    scheme, _, rest = unquote(given).partition("://")
    plain, stem = "/" + rest.strip("/"), path.rpartition(".")[0]
    return plain.endswith((f"/{path}", f"/{stem}")) or (scheme == "doc" and plain == f"/{stem.removeprefix('docs/')}")


def repositories() -> dict[str, dict[str, Any]]:
    document: Any = YAML(typ="safe").load(QUESTIONS)
    return {one["name"]: one for one in document["repositories"]}


def questions(repository: dict[str, Any]) -> list[Asked]:
    return [Asked(one["ask"], tuple(one["find"]), half) for half in ("seen", "kept") for one in repository[half]]


def titles(folder: Path) -> list[Asked]:
    """Some that only one page has, the same in each run."""
    found = [(title, path.relative_to(folder).as_posix()) for path in pages(folder) if (title := title_of(path))]
    counts = Counter(title for title, _ in found)
    unique = sorted((title, path) for title, path in found if counts[title] == 1)
    return [
        Asked(title, (path,), "title") for title, path in random.Random(14).sample(unique, min(TITLES, len(unique)))
    ]


def pages(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".md", ".mdx") and path.is_file())


def title_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    front = re.match(r"\A---\n(.*?)\n---\n", text, re.DOTALL)
    named = front and re.search(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE)
    if named:
        return named[1].strip().strip("\"'").strip()
    heading = re.search(r"^# +(.+)$", text, re.MULTILINE)
    return heading[1].strip() if heading else ""


@contextmanager
def octavo(folder: Path, kind: str, ranked: Container[str]) -> Iterator[Finds]:
    store: dict[str, Any] = {"kind": "file", "roots": [str(folder)]}
    sources = {"files": store} if kind == "file" else {"files": {**store, "expose": False}}
    if kind != "file":
        sources["pages"] = {"kind": kind, "store": "files"}
    with tempfile.TemporaryDirectory() as home, asyncio.Runner() as runner:
        configuration = Path(home) / "octavo.yaml"
        configuration.write_text(json.dumps({"version": 1, "sources": sources}), encoding="utf-8")
        house = Octavo(load(configuration, environ={}))
        runner.run(house.__aenter__())
        try:
            runner.run(house.searching.complete())
            who, tool = house.works.identity.launched(None), Ref("tool", ("search",))

            async def ask(text: str) -> Sequence[str]:
                asked = {"query": text, "limit": FIRST, **({"kind": "ranked"} if text in ranked else {})}
                result: Any = await house.works.ask(Call("invoke", tool, who, Trail(), str(tool), OwnArguments(asked)))
                told = result.structured
                return [one["uri"] for one in told.get("results") or told.get("files") or ()]

            yield lambda text: runner.run(ask(text))
        finally:
            runner.run(house.__aexit__(None, None, None))


@contextmanager
def qmd(folder: Path, command: Sequence[str]) -> Iterator[Finds]:
    """Its search by words; its models are not asked."""
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "XDG_CONFIG_HOME": f"{home}/config"}

        def run(*arguments: str) -> str:
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environ, check=False)
            return done.stdout

        run("collection", "add", str(folder), "--name", "pages")

        def find(text: str) -> Sequence[str]:
            out = run("search", text, "--json", "-n", str(FIRST), "-c", "pages")
            try:
                return [one["file"] for one in json.loads(out)]
            except ValueError:  # what it says in words: nothing was found
                return []

        yield find


@contextmanager
def rg(folder: Path, command: Sequence[str]) -> Iterator[Finds]:
    """The files with the most of the words, then with the most places of them."""

    def find(text: str) -> Sequence[str]:
        words, places = Counter[str](), Counter[str]()
        for word in set(re.findall(r"\w+", text)):
            arguments = [*command, "-i", "-F", "--count-matches", "-g", "*.{md,mdx}", "--", word, "."]
            done = subprocess.run(arguments, capture_output=True, text=True, cwd=folder, check=False)
            for line in done.stdout.splitlines():
                path, _, count = line.rpartition(":")
                words[path] += 1
                places[path] += int(count)
        best = sorted(words, key=lambda path: (-words[path], -places[path], path))
        return ["file://" + path.removeprefix("./") for path in best[:FIRST]]

    yield find


def ways(folder: Path, options: argparse.Namespace, ranked: Container[str]) -> Iterator[tuple[str, Finds]]:
    with octavo(folder, options.kind, ranked) as find:
        yield "octavo", find
    for name, peer in (("qmd", qmd), ("rg", rg)):
        if command := getattr(options, name):
            with peer(folder, shlex.split(command)) as find:
                yield name, find


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="OWNER/NAME=DIR")
    parser.add_argument("--kind", default="file", choices=("file", "doc"))
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--qmd", metavar="CMD")
    parser.add_argument("--rg", metavar="CMD")
    options = parser.parse_args()
    known, good, all_titles, asked_titles = repositories(), True, Counter[str](), 0
    print(f"{'':<34}{'way':<8}{'seen':>8}{'kept':>8}{'both':>8}{'titles':>8}")
    for given in options.folders:
        name, _, place = given.partition("=")
        folder = Path(place).resolve() / known[name]["folder"]
        asked, by_title = questions(known[name]), titles(folder)
        asked_titles += len(by_title)
        for way, find in ways(folder, options, {one.text for one in by_title}):
            given_to = {one: find(one.text) for one in (*asked, *by_title)}
            hits = Counter(one.half for one, found in given_to.items() if one.among(found))
            both = hits["seen"] + hits["kept"]
            all_titles[way] += hits["title"]
            print(f"{name:<34}{way:<8}{hits['seen']:>8}{hits['kept']:>8}{both:>8}{hits['title']:>8}", flush=True)
            if way == "octavo":
                good &= both >= ENOUGH
                for one, found in given_to.items() if options.misses else ():
                    if one.half != "kept" and not one.among(found):
                        print(f"    [{one.half}] {one.text}: {one.find[0]}\n        " + "\n        ".join(found))
    print(f"{asked_titles} titles: " + ", ".join(f"{way} {count}" for way, count in all_titles.items()))
    good &= asked_titles - all_titles["octavo"] <= 60 - ENOUGH_TITLES
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
