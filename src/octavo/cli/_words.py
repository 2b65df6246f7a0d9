"""What is said at a terminal, in the language of whoever reads it.

`src/octavo/messages` has one file a language. What this room says itself is asked for by its key (`said`); what other
rooms tell in English sentences, such as the problems of `octavo check`, is known again by its English text
(`translated`), so that those rooms need no catalogue and their texts stay where they are made. So are refusals and the
help: what is raised is English, for programs, and is translated where people are told of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[1] / "messages"
ENGLISH: Final = "en"
# Keys of what is said in English where it is made, and known again here: by other rooms, by click and by the commands
# in their refusals, which programs get as they are.
KNOWN_AGAIN: Final = ("problem.", "yaml.", "usage.", "install.", "init.refused_", "check.refused_")
HELP: Final = ("help.",)
CONDITION: Final = ("condition.",)


def language() -> str:
    """Of the first of the usual variables that says one; English where there is no file for it."""
    named = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    code = re.split(r"[_.@]", named)[0].lower()
    return code if code in languages() and _can_be_shown(code) else ENGLISH


def _can_be_shown(code: str) -> bool:
    """Whether the terminal can write it: escaped, nobody could read it."""
    try:
        catalogue(code)["serve.end"].encode(getattr(sys.stderr, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


@cache
def languages() -> frozenset[str]:
    return frozenset(file.stem for file in FOLDER.glob("*.toml"))


@cache
def catalogue(code: str) -> Mapping[str, str]:
    """All sentences of a language by key, such as `serve.waiting`."""
    import tomllib  # here: a server that a client starts says nothing at a terminal

    return dict(_flat(tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8")), ""))


def said(key: str, **values: Any) -> str:
    return catalogue(language())[key].format_map(values)


def english(key: str, **values: Any) -> str:
    """The same for programs, which read English alone."""
    return catalogue(ENGLISH)[key].format_map(values)


def translated(text: str, among: Sequence[str] = KNOWN_AGAIN) -> str:
    """A sentence that was made in English; as it is where nobody has translated it."""
    if language() == ENGLISH or not text:
        return text
    for known, key in _known(tuple(among)):
        if found := known.fullmatch(text):
            return catalogue(language())[key].format_map(
                {name: translated(one, among) for name, one in found.groupdict().items()}
            )
    return text


def _flat(table: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


@cache
def _known(among: tuple[str, ...]) -> list[tuple[re.Pattern[str], str]]:
    """Patterns of the English sentences; those with most words of their own first."""
    sentences = [(text, key) for key, text in catalogue(ENGLISH).items() if key.startswith(among)]
    return [(_pattern(text), key) for text, key in sorted(sentences, key=lambda one: -_words(one[0]))]


def _pattern(text: str) -> re.Pattern[str]:
    parts = (f"{re.escape(words)}{_group(name) if name else ''}" for words, name, *_ in Formatter().parse(text))
    return re.compile("".join(parts), re.DOTALL)


def _group(name: str) -> str:
    """A key ends at the first colon: what follows is said of it."""
    return f"(?P<{name}>{'[^:]+?' if name == 'key' else '.+?'})"


def _words(text: str) -> int:
    return sum(len(words) for words, *_ in Formatter().parse(text))
