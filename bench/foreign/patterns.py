"""Expressions of other projects: does one describe a form of its own, and a text that it matches."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Iterator
from re import _parser as parser  # the tree of an expression; there is no public way to it
from typing import Any

_LEAST = 3  # so many letters in a row that must stand there make a form
_WORD = string.ascii_letters + string.digits + "_"


def has_own_form(pattern: str, group: str | int = 1) -> bool:
    """Whether in what the group takes (or in all, if there is none) some letters are always the same."""
    # Go writes (?i) and (?-i:) where Python does not take them; they change nothing here.
    plain = re.sub(r"\(\?-?[ims]+\)", "", re.sub(r"\(\?(?:-?[ims]+)+:", "(?:", pattern)).replace(r"\z", r"\Z")
    plain = re.sub(r"\[\[:alnum:\]\]", "[a-zA-Z0-9]", plain)
    try:
        tree = parser.parse(plain)
    except (re.error, OverflowError):
        return False
    number = tree.state.groupdict.get(group) if isinstance(group, str) else group
    return _fixed(_inside(tree, number) or tree) >= _LEAST


def _inside(tree: Iterable[Any], number: int | None) -> Any:
    for kind, value in tree:
        name = str(kind)
        if name == "SUBPATTERN" and value[0] == number and number is not None:
            return value[3]
        children: list[Any] = []
        if name == "SUBPATTERN":
            children = [value[3]]
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            children = [value[2]]
        elif name == "BRANCH":
            children = value[1]
        for child in children:
            if found := _inside(child, number):
                return found
    return None


def _fixed(tree: Iterable[Any]) -> int:
    """The longest run of letters that stands in every match."""
    longest = run = 0
    for kind, value in _flat(tree):
        name, inner = str(kind), 0
        if name == "LITERAL":
            run += 1
        elif name == "BRANCH":
            inner = min(map(_fixed, value[1]))
            run += inner  # a choice of prefixes goes on behind it
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            inner = _fixed(value[2]) if value[0] else 0
            run = 0
        elif name == "IN":  # one of a few letters is nearly one
            run = run + 1 if len(value) <= 6 and all(str(k) == "LITERAL" for k, _ in value) else 0
        elif name != "AT":
            run = 0
        longest = max(longest, run, inner)
    return longest


def _flat(tree: Iterable[Any]) -> Iterator[Any]:
    for kind, value in tree:
        if str(kind) == "SUBPATTERN":
            yield from _flat(value[3])
        else:
            yield kind, value


def made_from(pattern: str, chance: random.Random) -> str:
    """A text that the expression matches."""
    return "".join(_made(parser.parse(re.sub(r"\(\?[ims]+\)", "", pattern)), chance))


def _made(tree: Iterable[Any], chance: random.Random) -> list[str]:
    out: list[str] = []
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            out.append(chr(value))
        elif name == "NOT_LITERAL" or name == "ANY":
            out.append(chance.choice(_WORD))
        elif name == "IN":
            out.append(chance.choice(_letters(value)))
        elif name == "CATEGORY":
            out.append(chance.choice(_category(value)))
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            for _ in range(chance.randint(least, min(int(most), least + 8))):
                out += _made(inner, chance)
        elif name == "SUBPATTERN":
            out += _made(value[3], chance)
        elif name == "BRANCH":
            out += _made(chance.choice(value[1]), chance)
    return out


def _letters(items: Iterable[Any]) -> str:
    letters = ""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            letters += chr(value)
        elif name == "RANGE":
            letters += "".join(map(chr, range(value[0], value[1] + 1)))
        elif name == "CATEGORY":
            letters += _category(value)
    return letters or _WORD


def _category(value: object) -> str:
    return {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " "}.get(str(value), _WORD)
