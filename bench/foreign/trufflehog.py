"""trufflehog: each detector's test has inputs, and what it `want`s to find in each; nothing for a near miss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import re2
from bench.foreign.case import Case, judged
from bench.foreign.golang import Reader, tokens
from bench.foreign.patterns import has_own_form

DETECTORS = "pkg/detectors"
_LEAST = 12
_GENERIC = frozenset({"uri", "jdbc", "ftp", "ldap", "generic"})
_NO_SECRET = re.compile(r"(?i)id(?:pat)?$|domain|url|host|email|endpoint|instance|user|account")  # what a name says
_PLACE = re.compile(r"(?:https?://)?[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}(?::\d+)?/?")  # a host has a form, and is no secret


def cases(folder: Path) -> Iterator[Case]:
    forms = {path.parent: _forms(path.parent) for path in sorted((folder / DETECTORS).rglob("*_test.go"))}
    every = [form for some in forms.values() for form in some]
    for path in sorted((folder / DETECTORS).rglob("*_test.go")):
        if path.name.endswith("integration_test.go"):
            continue  # asks the service, with secrets that are not there
        family = str(path.parent.relative_to(folder / DETECTORS))
        for text, wanted in _tests(path):
            if wanted:
                yield _positive(family, text, wanted, forms[path.parent])
            elif not any(form.search(text) for form in every):
                # Otherwise it is whole, and only what it is to be used with is not beside it.
                yield Case("published" if forms[path.parent] else "named", family, text)


def _tests(path: Path) -> Iterator[tuple[str, list[str]]]:
    reader = Reader(tokens(path.read_text(encoding="utf-8")))
    reader.learn()
    inputs, wants = sorted(reader.places("input")), sorted(reader.places("want"))
    for place, following in zip(inputs, [*inputs[1:], len(reader.tokens)], strict=False):
        text = reader.value_at(place)
        wanted = next((reader.value_at(at) for at in wants if place < at < following), None)
        if isinstance(text, str) and isinstance(wanted, list) and all(isinstance(one, str) for one in wanted):
            yield text, wanted


def _positive(family: str, text: str, wanted: list[str], forms: list[Any]) -> Case:
    """What is wanted is often several values put together: those that have a form are looked at."""
    parts = {value for form in forms for value in _values(form, text) if any(value in one for one in wanted)}
    if family in _GENERIC or not parts:
        return judged("generic" if family in _GENERIC else "named", family, text, tuple(wanted))
    return judged("published", family, text, tuple(sorted(parts)))


def _values(form: Any, text: str) -> Iterator[str]:
    for match in form.finditer(text):
        value = next((group for group in match.groups() if group), match.group())
        if len(value) >= _LEAST and not _PLACE.fullmatch(value):
            yield value


def _forms(folder: Path) -> list[Any]:
    """Its expressions for values with a form of their own. What is asked to stand in front of one is no part of it."""
    found: list[Any] = []
    for path in sorted(folder.glob("*.go")):
        if path.name.endswith("_test.go"):
            continue
        reader = Reader(tokens(path.read_text(encoding="utf-8")), {"detectors.PrefixRegex": lambda names: ""})
        reader.learn()
        places = [place for place, token in enumerate(reader.tokens) if token == ("word", "regexp.MustCompile")]
        for place in places:
            pattern, name = reader.value_at(place + 2), reader.tokens[place - 2][1]
            if isinstance(pattern, str) and has_own_form(pattern) and not _NO_SECRET.search(name):
                with suppress(re2.error):
                    found.append(re2.compile(pattern))
    return found
