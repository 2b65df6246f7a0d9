"""What becomes of documents that nobody here wrote: public handbooks, runbooks, documentation and skills.

    python bench/world.py DIR…
    python bench/world.py --init DIR…
    python bench/world.py --many 200000

Each DIR is the work tree of a repository of `world.yaml`, or a folder in which such work trees stand side by side under
their names (`owner+name`). Each is served as the kind that `world.yaml` says, with no option beside its store, in a
process of its own. With --init each is given to `octavo init --yes` instead, as a whole, and its agents are asked for
what it says. With --many so many documents are made in a folder of their own, served and checked in the same way.
Nothing is fetched here, and nothing of what is read is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import world_init
import yaml  # type: ignore[import-untyped]

HERE = Path(__file__).parent
DOCUMENTS = (".md", ".mdx", ".markdown", ".rst", ".adoc")
CONFIG = """version: 1
sources:
  store: {{kind: file, roots: [{root}], expose: false}}
  it: {{kind: {kind}, store: store}}
"""
HEAD_LINE = "{:42} {:6} {:>7} {:>6} {:>7} {:>7} {:>7} {:>5} {}"
HEAD = ("repository", "kind", "served", "of", "share", "outside", "start", "MiB", "check")


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
        print("{:36} {:6} {:28} {:>6} {:>6} {:>7} {:>7} {:>6} {:>5}  {:18} {}".format(*world_init.HEAD))
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
    share = f"{100 * told['served'] / told['there']:.1f} %" if told["there"] else "-"
    complaints = ", ".join(f"{number} {message}" for message, number in told["complaints"][:6]) or "no complaint"
    return (
        f"{name:42} {told['kind']:6} {told['served']:7} {told['there']:6} {share:>7} {told['outside']:7} "
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

        async def look() -> tuple[set[str], str, float, list[Any]]:
            async with Octavo(load(config)) as house:
                catalogs = house.works.catalogs
                assert catalogs is not None
                catalog = catalogs.by_name["it"]
                page = await catalog.look()
                started = time.perf_counter() - begun
                places = {"/".join(card.place) for card in page.cards.values()}
                everything = [entry async for entry in _all(catalog, Ref(catalog.scheme))]
                assert len(everything) >= len(places)
                return places, catalog.declaration.path, started, [*await catalog.problems()]

        places, path, started, problems = asyncio.run(look())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        run = subprocess.run(
            [sys.executable, "-m", "octavo", "check", "--config", str(config)],
            capture_output=True,
            text=True,
            check=False,
        )
    wanted = _manifests(folder / path) if kind == "skill" else _documents(folder / path)
    outside = (_manifests(folder) if kind == "skill" else _documents(folder)) if path else wanted
    complaints = Counter(problem.kind for problem in problems)
    return {
        "kind": kind,
        "served": len(wanted & places),
        "there": len(wanted),
        "outside": len(outside) - len(wanted),
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


def _documents(folder: Path) -> set[str]:
    return {path for path in _files(folder) if path.lower().endswith(DOCUMENTS)}


def _manifests(folder: Path) -> set[str]:
    """A skill inside another one is a part of it."""
    found = sorted(path.removesuffix("/SKILL.md") for path in _files(folder) if path.endswith("/SKILL.md"))
    outer: list[str] = []
    for path in found:
        if not outer or not path.startswith(f"{outer[-1]}/"):
            outer.append(path)
    return {f"{path}/SKILL.md" for path in outer}


def _files(folder: Path) -> list[str]:
    found: list[str] = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        found += [
            (Path(at) / name).relative_to(folder).as_posix() for name in names if not (Path(at) / name).is_symlink()
        ]
    return found


if __name__ == "__main__":
    main()
