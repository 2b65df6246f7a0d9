"""Prompt files with random damage: each loads, or is a problem with a line of the file; nothing else happens.

python -m tests.prompts.fuzz --files 10000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from octavo.core.errors import OctavoError
from octavo.prompts.loader import STARTER, PromptProblem, load
from octavo.prompts.template import PromptTemplate, TemplateMessage, TextPart
from octavo.tools.schema import compile_schema

BITS = (
    "{{", "}}", "{%", "%}", "{#", "#}", "{% if x %}", "{% endif %}", "{% for a in b %}", "{% endfor %}", "{% raw %}",
    '"', "'", "\n", "  ", "- ", ": ", "[", "]", "{", "}", "\\", "\x00", "\ufeff", "&a ", "*a", "!!python/object:x ",
    "<<: ", "null", "1e999", "|", ">", "한", "\ud800", ".", "(", ")", "|join(", " in ", "not ", "__class__",
    '$ref: "#"', "loop.", "type: object", "9" * 30, "\r", "\u2028",
)  # fmt: skip


def damaged(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(text))
        behind = place + rng.choice((0, 0, 1, 3, 30, 200))
        text = text[:place] + rng.choice(BITS) * rng.choice((1, 1, 1, 2, 50)) + text[behind:]
    return text


def attempt(folder: Path, name: str, text: str) -> tuple[list[PromptTemplate], list[PromptProblem]]:
    """What became of one file. Fails where it is neither a prompt nor a problem, or shows what cannot be shown."""
    file = folder / name
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    templates, problems = load([folder], compile_schema)
    file.unlink()
    assert len(templates) + len(problems) == 1, text
    assert all(1 <= one.line <= len(text.splitlines()) + 1 and one.reason for one in problems), problems
    for template in templates:
        for variant in template.variants.values():
            parts = (part for one in variant.messages if isinstance(one, TemplateMessage) for part in one.parts)
            for part in parts:
                if isinstance(part, TextPart):
                    try:
                        part.fill({})
                    except OctavoError:
                        pass
    return templates, problems


def run(files: int, seed: int, folder: Path, sources: dict[str, str]) -> tuple[int, float]:
    """How many still loaded, and the longest that one took."""
    rng, good, slowest = random.Random(seed), 0, 0.0
    for _ in range(files):
        name, text = rng.choice(sorted(sources.items()))
        began = time.perf_counter()
        templates, _problems = attempt(folder, name, damaged(text, rng))
        slowest = max(slowest, time.perf_counter() - began)
        good += len(templates)
    return good, slowest


def starters() -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in STARTER.glob("*.yaml")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        good, slowest = run(asked.files, asked.seed, Path(folder), starters())
    print(f"{asked.files} files: {good} loaded, the others were reported; slowest {slowest * 1000:.0f} ms")


if __name__ == "__main__":
    main()
