"""What becomes of documents that nobody here wrote: public handbooks, runbooks, documentation and skills.

    python bench/world.py DIR…
    python bench/world.py --init DIR…
    python bench/world.py --many 200000

Each DIR is the work tree of a repository of `world.yaml`, or a folder in which such work trees stand side by side under
their names (`owner+name`). Each is served as the kind that `world.yaml` says, with no option beside its store, in a
process of its own, and counted twice: `served` of the documents that are `there` in the folder which the catalog chose
for itself, and of those in the `whole` store, as a user counts who knows the repository and not our catalogs.

Of the whole store every file counts whose name ends as a document (.md .mdx .markdown .rst .adoc), whether or not
anybody thinks of it as one, but for what evidently is none: licences and notices (LICENSE, COPYING, NOTICE, PATENTS,
OFL, with any ending), what stands in a hidden folder (.git, .github), in a folder of what others wrote (node_modules,
bower_components, vendor, third_party, site-packages), of what was built (_build, _site, dist, __pycache__) or of what
tests read (testdata, fixtures, __tests__); and links, whose file counts where it stands. For skills every folder with a
SKILL.md counts that is not inside another one, with the same left out, and `template`, which is a form to fill in.

With --init each is given to `octavo init --yes` instead, as a whole, and its agents are asked for what it says. With
--many so many documents are made in a folder of their own, served and checked in the same way. Nothing is fetched here,
and nothing of what is read is kept.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import world_counted
import world_init
import yaml  # type: ignore[import-untyped]

HERE = Path(__file__).parent
CONFIG = """version: 1
sources:
  store: {{kind: file, roots: [{root}], expose: false}}
  it: {{kind: {kind}, store: store}}
"""
HEAD_LINE = "{:42} {:6} {:>7} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>5} {}"
HEAD = ("repository", "kind", "served", "there", "share", "served", "whole", "share", "start", "MiB", "check")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--kind", help="serve every DIR as this kind, whether or not it stands in world.yaml")
    parser.add_argument("--init", action="store_true", help="begin each with octavo init, and use what it writes")
    parser.add_argument("--many", type=int, metavar="N", help="make N documents, and serve them as kind doc")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs=2, metavar=("DIR", "KIND"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(served(Path(given.only[0]), given.only[1])))
        return
    if given.many:
        with tempfile.TemporaryDirectory() as made:
            _make(Path(made), given.many)
            print(HEAD_LINE.format(*HEAD))
            print(_line(f"{given.many} files that were made", _in_own_process(Path(made), "doc")))
        return
    known = {one["name"]: one for one in yaml.safe_load((HERE / "world.yaml").read_text("utf-8"))["repositories"]}
    found = [one for folder in given.folders for one in _found(folder, known, given.kind)]
    if not found:
        parser.error("no folder of a repository of world.yaml; name one, or give --kind")
    if given.init:
        _begin({name: folder for name, folder, _ in found}, as_json=given.json)
        return
    if not given.json:
        print(HEAD_LINE.format(*HEAD))
    for name, folder, kind in found:
        try:
            told = _in_own_process(folder, kind)
        except subprocess.CalledProcessError as failed:
            print(f"{name}: {failed.stderr.strip()[-400:]}")
            continue
        print(json.dumps({"name": name, **told}) if given.json else _line(name, told))


def _in_own_process(folder: Path, kind: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", str(folder), kind]
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


def _make(folder: Path, count: int) -> None:
    for number in range(count):
        place = folder / f"{number // 10_000}" / f"{number // 100 % 100}" / f"page-{number}.md"
        if number % 100 == 0:
            place.parent.mkdir(parents=True)
        place.write_text(f"# Page {number}\n\nWords of it.\n", encoding="utf-8")


def _begin(folders: dict[str, Path], *, as_json: bool) -> None:
    if not as_json:
        print("{:36} {:6} {:28} {:>6} {:>6} {:>7} {:>6} {:>6} {:>7} {:>6} {:>5}  {:18} {}".format(*world_init.HEAD))
    for name, folder in folders.items():
        told = world_init.begun(folder)
        print(json.dumps({"name": name, **told}) if as_json else world_init.line(name, told), flush=True)


def _found(folder: Path, known: dict[str, Any], kind: str | None) -> list[tuple[str, Path, str]]:
    name = folder.name.replace("+", "/", 1)
    if kind is not None:
        return [(name, folder, kind)]
    if name in known:
        return [(f"{name}", folder / known[name].get("folder", ""), one) for one in known[name]["kinds"]]
    below = sorted(one for one in folder.iterdir() if one.is_dir())
    return [one for child in below if child.name.replace("+", "/", 1) in known for one in _found(child, known, None)]


def _line(name: str, told: dict[str, Any]) -> str:
    shares = [f"{100 * one / of:.1f} %" if of else "-" for one, of in (told["in_folder"], told["in_whole"])]
    (served, there), (everywhere, whole) = told["in_folder"], told["in_whole"]
    complaints = ", ".join(f"{number} {message}" for message, number in told["complaints"][:6]) or "no complaint"
    return (
        f"{name:42} {told['kind']:6} {served:7} {there:6} {shares[0]:>7} {everywhere:7} {whole:6} {shares[1]:>7} "
        f"{told['start']:6.2f}s {told['memory']:5.0f} {told['lines']} lines, exit {told['exit']}: {complaints}"
    )


def served(folder: Path, kind: str) -> dict[str, Any]:
    """In a process of its own: what one repository comes to."""
    import asyncio

    from octavo.app.configuration import load
    from octavo.app.server import Octavo
    from octavo.core.ref import Ref

    with tempfile.TemporaryDirectory() as base:
        config = Path(base) / "octavo.yaml"
        config.write_text(CONFIG.format(root=json.dumps(str(folder.resolve())), kind=kind), "utf-8")
        begun = time.perf_counter()

        async def look() -> tuple[set[str], set[str], str, float, list[Any]]:
            async with Octavo(load(config)) as house:
                catalogs = house.works.catalogs
                assert catalogs is not None
                catalog = catalogs.by_name["it"]
                page = await catalog.look()
                started = time.perf_counter() - begun
                files = {card.file for card in page.cards.values()}
                declared = catalog.declaration
                everything = [entry async for entry in _all(catalog, Ref(catalog.scheme))]
                assert len(everything) >= len(files)
                titled = {card.file for card in page.cards.values() if card.entry.title}
                return files, titled, declared.home or declared.path, started, [*await catalog.problems()]

        files, titled, path, started, problems = asyncio.run(look())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        run = subprocess.run(
            [sys.executable, "-m", "octavo", "check", "--config", str(config)],
            capture_output=True,
            text=True,
            check=False,
        )
    every = world_counted.skills(folder) if kind == "skill" else world_counted.documents(folder)
    there = {one for one in every if one.startswith(f"{path}/" if path else "")}
    whole = {one for one in every if not world_counted.evidently_none(one)}
    complaints = Counter(problem.kind for problem in problems)
    return {
        "kind": kind,
        "in_folder": (len(there & files), len(there)),
        "in_whole": (len(whole & files), len(whole)),
        "missing": sorted((there | whole) - files)[:20],
        "titled": len(titled),
        "start": started,
        "memory": memory,
        "complaints": complaints.most_common(),
        "lines": len((run.stderr + run.stdout).splitlines()),
        "exit": run.returncode,
    }


async def _all(catalog: Any, ref: Any) -> Any:
    cursor = None
    while True:
        page = await catalog.list(ref, cursor=cursor, limit=1000)
        for entry in page.items:
            yield entry
        cursor = page.cursor
        if cursor is None:
            return


if __name__ == "__main__":
    main()
