"""How long the text engine takes on 10 MB: `python -m tests.text.speed`."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from octavo.core.edit import Edit
from octavo.core.errors import InvalidParams
from octavo.text import patch
from octavo.text.edits import apply
from octavo.text.lines import line_range
from octavo.text.outline import outline
from octavo.text.revise import unified
from octavo.text.tokens import fit, tokens

SIZE = 10_000_000
T = TypeVar("T")


def timed(what: str, work: Callable[[], T]) -> T:
    begin = time.perf_counter()
    result = work()
    print(f"{what:34}{time.perf_counter() - begin:8.3f} s")
    return result


def refused(work: Callable[[], object]) -> None:
    try:
        work()
    except InvalidParams:
        return
    raise AssertionError("applied")


def lines_of(dice: random.Random, end: str) -> list[str]:
    words = ["".join(dice.choices("etaoinshr한글문서", k=dice.randint(2, 9))) for _ in range(3000)]
    lines: list[str] = []
    size = 0
    while size < SIZE:
        lines.append("    " * dice.randint(0, 3) + " ".join(dice.choices(words, k=8)) + end)
        size += len(lines[-1].encode())
    return lines


def measure(end: str) -> None:
    dice = random.Random(1)
    lines = lines_of(dice, end)
    text = "".join(lines)
    print(f"{len(text.encode()):,} bytes, {len(lines):,} lines, ends {end!r}")
    places = dice.sample(range(0, len(lines) - 3, 3), 1000)
    bare = [lines[n].strip() for n in range(len(lines))]
    edits = [Edit(bare[n], f"NEW {n}") for n in places]
    tolerant = [Edit(f"{bare[n]}  \n  {bare[n + 1]}\n", f"NEW {n}\n") for n in places]
    edited = timed("1,000 edits", lambda: apply(text, edits))
    timed("1,000 tolerant edits", lambda: apply(text, tolerant))
    timed("1 edit", lambda: apply(text, edits[:1]))
    timed("1 edit, not found", lambda: refused(lambda: apply(text, [Edit(bare[9] + " nowhere", "x")])))
    diff = timed("diff of 1,000 changes", lambda: unified(text, edited.text, "a", max_bytes=SIZE))
    assert timed("patch of 1,000 hunks", lambda: patch.apply(text, diff.text)).text == edited.text
    timed("lines 1000 to 2000", lambda: line_range(text, 1000, 2000))
    timed("fit into 1 MB", lambda: fit(text, 1_000_000, SIZE))
    timed("tokens", lambda: tokens(text))


def traps() -> None:
    same = "a" * SIZE
    timed(
        "100 edits aaa...b in aaa...",
        lambda: refused(lambda: apply(same, [Edit("a" * n + "b", "c") for n in range(50, 150)])),
    )
    x = "x\n" * 200_000
    timed("50,000 equal lines among equal", lambda: apply(x, [Edit(" x\n" * 50_000, "y\n", "all")]))
    hunk = "@@ -400000,50000 +1,50000 @@\n" + " x\n" * 49_999 + "-x\n+y\n"
    timed("hunk of equal lines among equal", lambda: refused(lambda: patch.apply(x, hunk)))
    dice = random.Random(2)
    left, right = (
        "".join(f"{n}\n" + "".join(dice.choices(["a\n", "b\n"], k=199)) for n in range(500)) for _ in range(2)
    )
    timed("diff of 500 gaps of two lines", lambda: unified(left, right, "a"))
    deep = "\n".join(" " * n + "def f():" for n in range(3000))
    timed("outline of 3,000 levels", lambda: outline("(\n" + deep, "text/x-python"))
    timed("outline of one line of 10 MB", lambda: outline("f(){};" * (SIZE // 6), "text/javascript"))
    code = "public class A {\n    public int f(int a) {\n        int x = call(a, 1);\n        return x;\n    }\n}\n"
    timed("outline of 1 MB of Java", lambda: outline(code * (SIZE // 10 // len(code)), "text/x-java"))


if __name__ == "__main__":
    measure("\n")
    measure("\r\n")
    traps()
