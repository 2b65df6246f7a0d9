"""Ours and `pathspec` beside git itself, on .gitignore files made by chance: `python bench/gitignore.py --files 300`.

For each file git is asked about every path of a folder, and so are `sources/file/search/ignores.py` and
`pathspec.GitIgnoreSpec` (with RE2 behind it, since its other engine backtracks). See decision 30.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from pathspec import GitIgnoreSpec

from octavo.sources.file.search.ignores import Gitignore

NAMES = ("a", "b", "ab", "a.md", "b.log", "foo", "x y", "[x]", "é", "a!", "#c")
ATOMS = (
    "a", "b", "*", "?", "**", "[ab]", "[!a]", "[^b]", ".md", "*.log", "foo", "\\*", "\\#c", " ", "[[:alpha:]]", "é",
    "x y", "[x]", "a\\ ", "[a", "\\",
)  # fmt: skip
HARD = "*a*a*a*a*a*a*a*a*b"

Verdict = Callable[[str, bool], bool | None]


def ours(text: str) -> Verdict:
    rules = Gitignore(text)
    return lambda path, is_folder: rules.verdict(path, is_folder=is_folder)


def theirs(text: str, backend: str = "re2") -> Verdict:
    rules = GitIgnoreSpec.from_lines(text.split("\n"), backend=backend)
    return lambda path, is_folder: rules.check_file(f"{path}/" if is_folder else path).include


def asked(verdict: Verdict, path: str, is_folder: bool) -> bool:
    """As git does: what stands in an ignored folder is ignored."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return any(verdict(folder, True) for folder in above) or bool(verdict(path, is_folder))


def line(chance: random.Random) -> str:
    parts = ("".join(chance.choices(ATOMS, k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3)))
    begin = chance.choices(("", "!", "/"), (6, 2, 2))[0]
    return begin + "/".join(parts) + chance.choices(("", "/"), (7, 3))[0]


def of_git(folder: Path, paths: list[str]) -> set[str]:
    told = subprocess.run(
        ["git", "-C", folder, "check-ignore", "-z", "--no-index", "--stdin"],
        input="\0".join(paths).encode(), capture_output=True, check=False,
    )  # fmt: skip
    return {one.decode() for one in told.stdout.split(b"\0") if one}


def furnished(folder: Path, chance: random.Random) -> list[tuple[str, bool]]:
    subprocess.run(["git", "init", "-q", folder], check=True)
    for _ in range(40):
        file = folder.joinpath(*chance.choices(NAMES, k=chance.randint(1, 3)))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.touch()
        except (FileExistsError, NotADirectoryError):
            continue
    found = (file for file in sorted(folder.rglob("*")) if ".git" not in file.relative_to(folder).parts)
    return [(file.relative_to(folder).as_posix(), file.is_dir()) for file in found]


def seconds(work: Callable[[], object], times: int) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - begun) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    chance = random.Random(args.seed)
    verdicts, differ, broken = 0, {"ours": 0, "pathspec": 0}, {"ours": 0, "pathspec": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = furnished(folder, chance)
        for _ in range(args.files):
            text = "\n".join(line(chance) for _ in range(chance.randint(1, 4)))
            (folder / ".gitignore").write_text(text, encoding="utf-8")
            git = of_git(folder, [path for path, _ in paths])
            verdicts += len(paths)
            for who, make in (("ours", ours), ("pathspec", theirs)):
                try:
                    verdict = make(text)
                except Exception:  # whatever it is, no line of the file holds
                    broken[who] += 1
                    continue
                differ[who] += sum(asked(verdict, *one) != (one[0] in git) for one in paths)
    print(f"{args.files} files, {verdicts:,} verdicts of git; seed {args.seed}")
    for who in differ:
        print(f"{who:>9}: {differ[who]:,} differ, {broken[who]} files cannot be read at all")
    usual = "\n".join(("*.log", "build/", "!keep.log", "/top.md", "**/cache/*", "node_modules/", "*.py[co]", ".env*"))
    for who, make in (("ours", ours), ("pathspec", theirs)):
        ready = make(usual)
        told = seconds(lambda ready=ready: ready("src/a/b/c.py", False), 2000) * 1e6
        print(f"{who:>9}: {seconds(lambda make=make: make(usual), 200) * 1e6:,.0f} us a file, {told:,.1f} us a path")
    for who, ready in (("ours", ours(HARD)), ("simple", theirs(HARD, "simple"))):
        print(f"{who:>9}: {seconds(lambda ready=ready: ready('a' * 28, False), 1) * 1e3:,.1f} ms for {HARD} on 28 a")


if __name__ == "__main__":
    main()
