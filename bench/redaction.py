"""How much of a corpus redaction finds, how much it finds that is nothing, and how fast it is.

    python bench/redaction.py
    python bench/redaction.py --corpus DIR [--show]

The corpus of the first is made anew each time: `tests/pipeline/secrets_corpus.py`. The speed is that of one thread, in
processor time, over texts as handbooks and repositories have them, one secret in every eighth, in Korean and English.

`--corpus` takes a folder that others made: a checkout of gitleaks, betterleaks, trufflehog, detect-secrets,
CredSweeper, Nosey Parker, Kingfisher, secretlint, Presidio, presidio-research or libphonenumber; any other folder is
taken for ordinary documents and code, in which nothing is to be found. `--show` prints what was missed or wrong, of the
two thirds not held out.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import foreign
from bench.foreign.score import print_corpus, print_ordinary
from tests.pipeline import secrets_corpus as corpus

from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.personal import GROUPS

KEY = bytes(range(32))
MEGABYTES = 16
WORDS = """the a of and handbook review token customer order 매장 고객 환불 절차 담당자 승인 문서 key value return
import password reset 비밀번호 변경 안내 for in def class self config https://wiki.acme.io/page 2026-07-28 v1.2.3
{"name": "value"}, # comment - list item | cell | 010 서울 kim@ secret manager"""


@dataclass
class Score:
    found: int = 0
    missed: int = 0
    wrong: int = 0
    right: int = 0

    @property
    def recall(self) -> float:
        return self.found / (self.found + self.missed)

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.wrong)


def scores() -> tuple[dict[str, Score], list[str]]:
    """By group, and what went wrong, in words that hold no secret."""
    redactor = Redactor(KEY, personal=[*GROUPS])
    table: dict[str, Score] = defaultdict(Score)
    faults: list[str] = []
    for group, rule, text, secret in corpus.positives():
        if secret in redactor.text(text):
            table[group].missed += 1
            faults.append(f"missed {rule}")
        else:
            table[group].found += 1
    for group, text in corpus.negatives():
        if redactor.text(text) is text:
            table[group].right += 1
        else:
            table[group].wrong += 1
            faults.append(f"wrongly hidden: {redactor.text(text)}")
    return dict(table), faults


def texts() -> list[str]:
    chance = random.Random(5)
    words = WORDS.split()
    secrets = [made.text for made in corpus.positives(1)]
    made: list[str] = []
    size = 0
    while size < MEGABYTES * 1_000_000:
        lines = [
            " ".join(chance.choice(words) for _ in range(chance.randint(4, 14))) for _ in range(chance.randint(20, 600))
        ]
        if chance.random() < 1 / 8:
            lines.insert(chance.randrange(len(lines)), chance.choice(secrets))
        made.append("\n".join(lines))
        size += len(made[-1].encode())
    return made


def speed(documents: list[str], personal: list[str]) -> float:
    """Megabytes a second, the best of three rounds."""
    redactor = Redactor(KEY, personal=personal)
    for document in documents[:50]:
        redactor.text(document)
    rounds: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        for document in documents:
            redactor.text(document)
        rounds.append(time.process_time() - begun)
    return sum(len(document.encode()) for document in documents) / 1e6 / min(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="what others made, instead of our own")
    parser.add_argument("--show", action="store_true", help="what was missed, and what was hidden wrongly")
    parser.add_argument("--show-held-out", action="store_true", help="also of the third that is held out")
    wanted = parser.parse_args()
    if wanted.corpus is None:
        print_our_own()
    elif (read := foreign.read(wanted.corpus)) is None:
        print_ordinary(wanted.corpus, show=wanted.show)
    else:
        print_corpus(*read, show=wanted.show, show_held_out=wanted.show_held_out)


def print_our_own() -> None:
    table, faults = scores()
    print(f"{'group':<26}{'positive':>9}{'recall':>8}{'negative':>10}{'precision':>11}")
    for group, score in table.items():
        shown = f"{score.found + score.missed:>9}{score.recall:>8.3f}{score.right + score.wrong:>10}"
        print(f"{group:<26}{shown}{score.precision:>11.3f}")
    for fault in faults:
        print(f"  {fault}")
    documents = texts()
    print(f"\n{len(documents)} texts, {MEGABYTES} MB, one thread")
    print(f"  secrets, identity       {speed(documents, ['identity']):>5.0f} MB/s")
    print(f"  and all personal data   {speed(documents, [*GROUPS]):>5.0f} MB/s")


if __name__ == "__main__":
    main()
