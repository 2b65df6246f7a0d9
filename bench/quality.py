"""How good the search is: recall@10 and MRR over judged questions, beside two plain ways to search.

    python bench/quality.py                         the generated handbook, and examples/maison-haru if it is there
    python bench/quality.py --organisation DIR      another handbook with a queries.yaml
    python bench/quality.py --misses                also what was not found

recall@10 is the share of the expected documents among the first ten, MRR one through the place of the first of them;
both as the mean over all questions. Octavo is asked through its tool `search`, over catalogs of the same pages. Exit
code 1 below recall@10 0.95 or MRR 0.8.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judged import Judged, pages, questions
from ruamel.yaml import YAML

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import OwnArguments
from octavo.core.errors import OctavoError
from octavo.core.query import TextQuery
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail
from octavo.search import Document, FullText, Index

RECALL, MRR = 0.95, 0.8
FIRST = 10
FOLDERS = {"sops": "sop", "docs": "doc", "skills": "skill", "agents": "agent", "org": "org"}
PLURALS = {"functions": "function", "value-streams": "value-stream", "roles": "role"}

Finds = Callable[[str], Sequence[str]]


@contextmanager
def served(configuration: Path) -> Iterator[Finds]:
    """The whole product: catalogs, pipeline, redaction, index, tool."""
    with asyncio.Runner() as runner:
        house = Octavo(load(configuration, environ={}))
        runner.run(house.__aenter__())
        try:
            print(f"{configuration.parent.name}: {runner.run(house.searching.complete())} documents are indexed")
            works = house.works
            who, tool = works.identity.launched(None), Ref("tool", ("search",))

            async def ask(text: str) -> Sequence[str]:
                asked = {"query": text, "kind": "ranked", "limit": FIRST}
                result = await works.ask(Call("invoke", tool, who, Trail(), str(tool), OwnArguments(asked)))
                return [one["uri"] for one in result.structured["results"]]

            yield lambda text: runner.run(ask(text))
        finally:
            runner.run(house.__aexit__(None, None, None))


def handbook(folder: Path, documents: Sequence[Document]) -> Path:
    """The documents as files with front matter, and a configuration that serves them under the same addresses."""
    for one in documents:
        file = folder / one.ref.scheme / f"{one.ref.path}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntitle: {json.dumps(one.title, ensure_ascii=False)}\n---\n{one.text}", encoding="utf-8")
    stores = {scheme: {"kind": "file", "roots": [f"./{scheme}"], "expose": False} for scheme in ("sop", "doc")}
    catalogs = {f"{scheme}s": {"kind": scheme, "store": scheme, "path": ""} for scheme in stores}
    catalogs["docs"]["categories"] = ["handbook", "other"]
    configuration = folder / "octavo.yaml"
    configuration.write_text(json.dumps({"version": 1, "sources": {**stores, **catalogs}}), encoding="utf-8")
    return configuration


def copied(folder: Path, home: Path) -> Path:
    """An organisation, without the keys of its agents."""
    shutil.copytree(home, folder, dirs_exist_ok=True)
    configuration = folder / "octavo.yaml"
    text = configuration.read_text(encoding="utf-8")
    configuration.write_text(re.sub(r'key: "file:[^"]*"(, )?', "", text), encoding="utf-8")
    return configuration


def octavo(documents: Sequence[Document]) -> Finds:
    index = Index(None)
    index.put(documents)
    search = FullText(index)

    def find(text: str) -> Sequence[str]:
        return [str(one.ref) for one in search.find_now(TextQuery(text), lambda _: True, "bench", None, FIRST).items]

    return find


def trigram(documents: Sequence[Document]) -> Finds:
    """SQLite's own tokenizer, any of the words, its own ranking with a weight for titles."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE pages USING fts5(uri UNINDEXED, title, body, tokenize='trigram')")
    rows = [(str(one.ref), one.title, one.text) for one in documents]
    database.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)

    def find(text: str) -> Sequence[str]:
        words = re.findall(r"\w+", text)
        expression = " OR ".join(f'"{word}"' for word in words)
        found = database.execute(
            "SELECT uri FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 0, 8, 1) LIMIT ?", (expression, FIRST)
        )
        return [uri for (uri,) in found]

    return find


def substring(documents: Sequence[Document]) -> Finds:
    """Documents that contain the most of the words, then most often."""
    texts = [(str(one.ref), f"{one.title}\n{one.text}".lower()) for one in documents]

    def find(text: str) -> Sequence[str]:
        words = re.findall(r"\w+", text.lower())
        scored = [(sum(word in body for word in words), sum(map(body.count, words)), uri) for uri, body in texts]
        best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], -one[1], one[2]))
        return [uri for *_, uri in best[:FIRST]]

    return find


def generated(others: int = 3000) -> tuple[list[Document], list[Judged]]:
    made = pages(others)
    return [Document(ref=Ref.parse(uri), version="1", title=title, text=text) for uri, title, text in made], questions()


def organisation(home: Path) -> tuple[list[Document], list[Judged]]:
    yaml = YAML(typ="safe")
    documents: list[Document] = []
    for path in sorted((home / "handbook").rglob("*.*")):
        folder, *rest = path.relative_to(home / "handbook").with_suffix("").parts
        if folder not in FOLDERS or path.suffix not in (".md", ".yml", ".yaml"):
            continue
        text = path.read_text(encoding="utf-8")
        front = re.match(r"\A---\n(.*?)\n---\n", text, re.DOTALL)
        facts: dict[str, Any] = yaml.load(front[1] if front else text) if front or path.suffix != ".md" else {}
        ref = Ref(FOLDERS[folder], tuple(PLURALS.get(part, part) for part in rest))
        title = str(facts.get("title") or facts.get("name") or ref.name)
        body = text[front.end() :] if front else text
        documents.append(Document(ref=ref, version="1", title=title, text=body, metadata=facts))
    listed: Any = yaml.load((home / "queries.yaml").read_text(encoding="utf-8"))
    rows = listed["queries"] if isinstance(listed, dict) else listed
    asked = [Judged(row.get("kind", "-"), row["query"], tuple(row.get("find") or row["expect"])) for row in rows]
    return documents, asked


def measured(find: Finds, asked: Sequence[Judged]) -> dict[str, tuple[float, float, int]]:
    """recall@10, MRR and the number of questions, by kind and for `all`."""
    results: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in asked:
        given = list(find(one.query))
        places = [given.index(uri) + 1 for uri in one.expect if uri in given]
        result = len(places) / len(one.expect), 1 / min(places) if places else 0.0
        results["all"].append(result)
        results[one.kind].append(result)
    return {
        kind: (sum(r for r, _ in rows) / len(rows), sum(m for _, m in rows) / len(rows), len(rows))
        for kind, rows in results.items()
    }


def report(name: str, find: Finds, documents: Sequence[Document], asked: Sequence[Judged], *, misses: bool) -> bool:
    ways = {"octavo": find, "FTS5 trigram": trigram(documents), "substring": substring(documents)}
    table = {way: measured(find, asked) for way, find in ways.items()}
    print(f"\n{name}: {len(documents)} documents, {len(asked)} questions (recall@10 / MRR)\n")
    print(f"{'kind':<12}{'n':>5}" + "".join(f"{way:>18}" for way in ways))
    for kind, (_, _, count) in sorted(table["octavo"].items(), key=lambda row: row[0] != "all"):
        cells = (f"{table[way][kind][0]:.3f} / {table[way][kind][1]:.3f}" for way in ways)
        print(f"{kind:<12}{count:>5}" + "".join(f"{cell:>18}" for cell in cells))
    if misses:
        for one in asked:
            given = list(ways["octavo"](one.query))
            if given[:1] != [one.expect[0]] or not set(one.expect) <= set(given):
                print(f"  [{one.kind}] {one.query}: wanted {', '.join(one.expect)}; got {', '.join(given[:4])}")
    recall, mrr, _ = table["octavo"]["all"]
    return recall >= RECALL and mrr >= MRR


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--organisation", type=Path, default=Path(__file__).parents[1] / "examples" / "maison-haru")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    home = options.organisation
    documents, asked = generated()
    with tempfile.TemporaryDirectory() as folder, served(handbook(Path(folder), documents)) as it:
        good = report("generated handbook", it, documents, asked, misses=options.misses)
    if (home / "queries.yaml").is_file():
        with tempfile.TemporaryDirectory(prefix="octavo-quality-") as folder, served(copied(Path(folder), home)) as it:
            good &= report(home.name, it, *organisation(home), misses=options.misses)
    else:
        print(f"\n{options.organisation.name} is not there: only the generated handbook was judged")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OctavoError as error:
        sys.exit(str(error))
