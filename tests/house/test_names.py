"""One word, one meaning: the name of a class stands once in the house, or says here why it stands again.

A name with an underscore is known inside of its module alone.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "octavo"

SECTION = "a section of octavo.yaml, and what it is about"
PORT = "a port, and what answers to it"

AGAIN: dict[str, str] = {
    "Access": "how the ports of a store reach what keeps their rows, in each kind of store",
    "Approval": SECTION,
    "Audit": SECTION,
    "Cache": SECTION,
    "Changes": PORT,
    "Checkpoints": SECTION,
    "Deadlines": SECTION,
    "Embedder": SECTION,
    "Feed": SECTION,
    "Issuer": SECTION,
    "Journal": PORT,
    "Kept": "what stands under a key in memory, and what the feed wrote into the journal: each inside of its own room",
    "Keys": PORT,
    "Label": SECTION,
    "Leases": PORT,
    "Link": "a block of a tool's answer, by which authors know it; and the one connection to Redis, inside its store",
    "Plugin": SECTION,
    "Ports": "what each kind of store gives",
    "Prompts": SECTION,
    "Redact": SECTION,
    "Rule": SECTION,
    "Tasks": SECTION,
    "Tools": SECTION,
}


def classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(SRC).as_posix())
    return found


def test_a_class_has_a_name_of_its_own() -> None:
    """A name that two rooms give to two things makes a reader of the one think of the other: take another word."""
    assert {name: places for name, places in classes().items() if len(places) > 1 and name not in AGAIN} == {}


def test_what_stands_again_here_still_does() -> None:
    found = classes()
    assert [name for name in AGAIN if len(found[name]) < 2] == []
