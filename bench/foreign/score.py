"""What redaction makes of a corpus, by class: two thirds that one may look at, and a third that is held out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.foreign.case import Case

from octavo.pipeline.redact.redactor import Redactor
from octavo.pipeline.redact.rules.book import BY_LOOK
from octavo.pipeline.redact.rules.checks import entropy
from octavo.pipeline.redact.rules.personal import GROUPS

_LOOKS = {rule.name for rule in BY_LOOK}
_MARK = re.compile(r"\[redacted:([a-z0-9-]+):[^\]]*\]")
_PERSONAL = {rule.name for rules in GROUPS.values() for rule in rules}
_LARGEST = 4 << 20  # bytes; what is larger is data
_NO_TEXT = frozenset(
    [
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".ico",
        ".woff",
        ".woff2",
        ".ttf",
        ".eot",
        ".pdf",
        ".zip",
        ".gz",
        ".mo",
        ".mp4",
        ".webm",
        ".jks",
        ".p12",
        ".pfx",
        ".der",
        ".bin",
    ]
)


@dataclass
class Tally:
    """Of one class on one side."""

    cases: int = 0
    found: int = 0
    near: int = 0
    whole: int = 0  # near misses in which what is hidden is what the corpus holds to be a secret elsewhere
    taken: int = 0  # near misses that a rule for a form took
    named: int = 0  # near misses that were hidden for the name beside them
    hidden: int = 0  # near misses that were hidden for either
    beside: Counter[str] = field(default_factory=Counter[str])  # of those beside a name, what they look like
    missed: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])


def tallies(cases: list[Case], redactor: Redactor) -> dict[tuple[str, bool], Tally]:
    table: dict[tuple[str, bool], Tally] = defaultdict(Tally)
    secrets = _Secrets(cases)
    for case in cases:
        tally, shown = table[case.kind, case.held_out], redactor.text(case.text)
        if case.hidden:
            hidden = _is_hidden(case, shown)
            tally.cases += 1
            tally.found += hidden
            if not hidden:
                tally.missed.append(f"{case.family}: {shown}")
            continue
        spans = redactor.hidden(case.text)
        if spans and all(case.text[span.start : span.end] in secrets for span in spans):
            tally.whole += 1  # what is wrong stands beside it
            continue
        tally.near += 1
        rules = {rule for _, rule in redactor.sightings(case.text, "text/plain")}
        tally.taken += bool(rules & _LOOKS)
        tally.named += bool(rules - _LOOKS)
        tally.hidden += bool(rules)
        if rules - _LOOKS:
            tally.beside[_looks_like(case.text, shown)] += 1
        if rules:
            tally.wrong.append(f"{case.family}: {shown}")
    return table


class _Secrets:
    """What a corpus holds to be secrets: values, and where it does not say which part of a line is one, the last."""

    def __init__(self, cases: list[Case]) -> None:
        self._values = {value for case in cases if not case.whole for value in case.hidden}
        self._lines = [case.text for case in cases if case.hidden and case.whole]

    def __contains__(self, value: str) -> bool:
        end = re.compile(rf"(?<![\w-]){re.escape(value)}\W*\Z")
        return value in self._values or any(end.search(line) for line in self._lines)


def _looks_like(text: str, shown: str) -> str:
    """What was hidden for the name beside it: the longest value, in a word."""
    pieces = _MARK.split(shown)
    told = re.fullmatch("(.*?)".join(map(re.escape, pieces[::2])), text, re.DOTALL)
    values = dict(zip(told.groups() if told else (), pieces[1::2], strict=False))
    longest = max((value for value, rule in values.items() if rule not in _LOOKS), key=len, default="")
    if values.get(longest) in _PERSONAL:
        return "personal data"
    if values.get(longest) == "url-password":
        return "in an address"
    return "random" if len(longest) >= 16 and entropy(longest) >= 3.0 else "short"


def _is_hidden(case: Case, shown: str) -> bool:
    """Gone, and not only its beginning: the second half of a secret is one as well."""
    if case.whole:
        return shown != case.text
    for one in case.hidden:
        end = one[-max(6, len(one) // 2) :]
        if one in shown or (case.text.count(end) == 1 and end in shown):
            return False
    return True


def print_corpus(name: str, cases: list[Case], *, show: bool, show_held_out: bool) -> None:
    table = tallies(cases, Redactor(bytes(32), personal=[*GROUPS]))
    print(f"{name}\n{'':<26}{'two thirds':>30}{'held-out third':>38}")
    print(f"{'class':<26}" + f"{'found':>12}{'recall':>8}{'near misses hidden':>20}" * 2)
    for kind in dict.fromkeys(kind for kind, _ in table):
        sides = [table.get((kind, held), Tally()) for held in (False, True)]
        print(f"{kind:<26}" + "".join(map(_columns, sides)))
    for line in _near_misses(table):
        print(line)
    for (kind, held), tally in table.items():
        if show and (show_held_out or not held):
            for what, lines in (("missed", tally.missed), ("wrong", tally.wrong)):
                for line in lines:
                    print(f"  {what} {kind}: {line[:300]!r}")


def _near_misses(table: dict[tuple[str, bool], Tally]) -> Iterator[str]:
    """Of both sides, counted by form alone and with what was hidden for the name beside it."""
    for kind in dict.fromkeys(kind for kind, _ in table):
        sides = [table[side] for side in ((kind, False), (kind, True)) if side in table]
        near = sum(side.near for side in sides)
        if near:
            form, either = sum(side.taken for side in sides), sum(side.hidden for side in sides)
            beside = sum((side.beside for side in sides), Counter[str]())
            split = f"; for a name: {', '.join(f'{n} {what}' for what, n in beside.most_common())}" if beside else ""
            counts = f"{form} of {near} by form ({form / near:.1%}), {either} in all ({either / near:.1%})"
            whole = sum(side.whole for side in sides)
            apart = f"; not counted: {whole} with a whole secret of the corpus" if whole else ""
            yield f"  near misses hidden, {kind}: {counts}{split}{apart}"


def _columns(tally: Tally) -> str:
    recall = f"{tally.found / tally.cases:.3f}" if tally.cases else "-"
    near = f"{tally.taken}+{tally.named} of {tally.near}" if tally.near else "-"
    return f"{f'{tally.found} of {tally.cases}':>12}{recall:>8}{near:>20}"


def print_ordinary(folder: Path, *, show: bool) -> None:
    """Documents and code: everything that is found is taken for wrong."""
    secrets, personal = (
        Redactor(bytes(32), personal=["identity"]),
        Redactor(bytes(32), secrets=False, personal=[*GROUPS]),
    )
    size = files = 0
    hits, others = Counter[str](), Counter[str]()
    for path, text in _texts(folder):
        files += 1
        size += len(text.encode())
        for line, rule in secrets.sightings(text, "text/plain"):
            if rule != "invisible":
                hits[rule] += 1
                if show:
                    shown = text.split("\n")[line - 1].strip()
                    print(f"  {rule} {path.relative_to(folder)}:{line} {shown[:200]}")
        others.update(rule for _, rule in personal.sightings(text, "text/plain") if rule != "invisible")
    megabytes = max(size, 1) / 1e6
    print(f"{folder.name}: {files} texts, {megabytes:.1f} MB, {hits.total()} hits, {hits.total() / megabytes:.2f} a MB")
    print(f"  secrets, identity: {dict(hits.most_common())}")
    print(f"  all personal data: {dict(others.most_common())}")


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix.lower() in _NO_TEXT or path.stat().st_size > _LARGEST:
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
