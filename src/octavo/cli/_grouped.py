"""Many problems for one pair of eyes: those of handbooks with the same message together, what breaks something first.

A problem of the configuration has a key and often a hint, without which nobody can mend it: it is told by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from octavo.cli._shared import in_words
from octavo.cli._words import said, translated
from octavo.config.problems import Problem

FEW: Final = 8  # problems that are told one by one
EXAMPLES: Final = 3
KINDS: Final = 4  # of remarks; faults are all told


def lines(problems: Sequence[Problem], warnings: Sequence[Problem], *, everything: bool) -> Iterator[tuple[str, str]]:
    """What to say, each with how bad it is."""
    one_by_one = everything or len(problems) + len(warnings) <= FEW
    for level, found, most in (("error", problems, None), ("warning", warnings, KINDS)):
        alone = [problem for problem in found if one_by_one or _by_itself(problem)]
        yield from ((level, in_words(problem)) for problem in alone)
        if one_by_one:
            continue
        ordered = sorted(_groups(found), key=lambda group: -len(group[1]))
        for message, these in ordered[:most]:
            yield from ((level, line) for line in _told(message, these))
        if rest := ordered[len(ordered) if most is None else most :]:
            count = sum(len(these) for _, these in rest)
            yield level, said("check.rest", count=count, kinds=len(rest))


def first(problems: Sequence[Problem], warnings: Sequence[Problem], *, everything: bool) -> str:
    """What to do first, and how to see each; nothing where there is nothing to do."""
    if len(problems) + len(warnings) <= FEW:
        return ""  # all of it can be seen at once
    kinds = [_groups(problems), _groups(warnings)]
    together = any(len(these) > 1 for groups in kinds for _, these in groups) or len(kinds[1]) > KINDS
    each = said("check.each") if together and not everything else ""
    if problems:
        file, count = Counter(problem.file for problem in problems).most_common(1)[0]
        at = next(problem for problem in problems if problem.file == file)
        place = f"{file}{f':{at.line}' if at.line else ''}"
        key = "check.first_of" if count > 1 else "check.first"
        return said(key, place=place, count=count, total=len(problems)) + each
    return said("check.sound", count=len(warnings)) + each


def _by_itself(problem: Problem) -> bool:
    return bool(problem.key or problem.hint) and not problem.group


def _groups(found: Sequence[Problem]) -> Sequence[tuple[str, Sequence[Problem]]]:
    groups: dict[str, list[Problem]] = {}
    for problem in found:
        if not _by_itself(problem):
            groups.setdefault(problem.group or problem.message, []).append(problem)
    return [*groups.items()]


def _told(message: str, these: Sequence[Problem]) -> Iterator[str]:
    if len(these) == 1:
        yield in_words(these[0])
        return
    places = ", ".join(_place(problem) for problem in these[:EXAMPLES])
    more = len(these) - EXAMPLES
    key = "check.many_more" if more > 0 else "check.many"
    yield said(key, count=len(these), message=translated(message), places=places, more=more)


def _place(problem: Problem) -> str:
    where = f"{problem.file}:{problem.line}" if problem.line else problem.file
    return f"{where} ({translated(problem.message)})" if problem.group and problem.group != problem.message else where
