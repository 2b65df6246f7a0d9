"""Conditionals and loops: a small part of the Jinja language, run by minijinja.

The engine parses, compiles and counts steps. What it cannot bound by steps does not reach it: a text is read here
first, and everything but the tags, operators and filters below is refused when the file loads. There are no calls, no
assignments, no arithmetic, no includes, and the arguments of filters are literals, so that nothing grows but by the
values that are put in, which are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from minijinja import Environment, TemplateError

from octavo.core.errors import InvalidParams, TooLarge
from octavo.core.sizes import KIB
from octavo.prompts.substitution import MAX_OUTPUT, NoTemplate, bounded, line_of, undeclared, written

STEPS: Final = 20_000  # of one text: a few milliseconds,
WALKS: Final = 20_000_000  # and where a step may look through all values: steps times characters
MAX_VALUES: Final = 512 * KIB  # characters of all values together
# What is nested too deeply would end the process: the engine walks over it by recursion.
MAX_TAGS: Final = 500
MAX_BRANCHES: Final = 50  # elif, each of which stands within the one before
MAX_DEPTH: Final = 8  # blocks within blocks
MAX_WORDS: Final = 60  # of an expression
MAX_LITERAL: Final = 200  # characters of a text in an expression
FILTERS: Final = frozenset(
    ("capitalize", "default", "first", "items", "join", "last", "length", "lower", "sort", "title", "trim", "upper")
)
# What looks through a value from end to end, and so takes the longer the longer that is.
_WALKING: Final = FILTERS - {"default", "first", "last", "length"}
_COMPARING: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_WORDS: Final = frozenset(("and", "or", "not", "in", "is", "if", "else"))
_CLOSING: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}
_CONSTANTS: Final = frozenset(("true", "false", "none"))

# A tag ends at the first of its closing marks: literals cannot hold one.
_TAG: Final = re.compile(
    r"\{%-?\s*raw\s*-?%\}.*?\{%-?\s*endraw\s*-?%\}"
    r"|\{#.*?#\}"
    r"|\{%[-+]?\s*(?P<tag>.*?)\s*[-+]?%\}"
    r"|\{\{[-+]?(?P<expression>.*?)[-+]?\}\}"
    r"|(?P<open>\{\{|\{%|\{#)",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<literal>\d{1,9}(?:\.\d{1,9})?|\"[^\"{}%\\]*\"|'[^'{}%\\]*')|(?P<mark>==|!=|<=|>=|[<>().,|]))"
)
_FOR: Final = re.compile(r"(?P<names>[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)?)\s+in\s+(?P<values>.+)", re.DOTALL)


class _Loops(NamedTuple):
    """What the loops of a text repeat."""

    characters: int
    walk: bool  # something that looks through a value


class _Output:
    """What the engine puts into a text, bounded. It knows nothing of the program whose engine calls it: the collector
    cannot look into the engine, so whatever leads from it back to itself would stay for ever."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> None:
        self._left = MAX_OUTPUT

    def written(self, value: Any) -> str:
        try:
            text = written(value)
        except (TypeError, ValueError):
            raise InvalidParams("The prompt would show something that is no value") from None
        self._left -= len(text)
        bounded(MAX_OUTPUT - self._left)
        return text


class CompiledTemplate:
    """A compiled text."""

    def __init__(self, text: str, names: frozenset[str], loops: _Loops) -> None:
        self.text, self.names = text, names
        # At least four steps a round: so the text of the rounds stays below the bound as well.
        self._steps, self._walks = min(STEPS, 4 * MAX_OUTPUT // max(loops.characters, 1)), loops.walk
        self._output = _Output()
        self._environment = Environment(
            templates={"text": text},
            debug=False,
            pycompat=False,
            undefined_behavior="strict",
            auto_escape_callback=lambda _: False,
            keep_trailing_newline=True,
            finalizer=self._output.written,
            fuel=self._steps,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledTemplate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __call__(self, values: Mapping[str, Any]) -> str:
        given = {name: values.get(name) for name in self.names}
        size = sum(len(written(value)) for value in given.values())
        if size > MAX_VALUES:
            raise TooLarge(
                f"The arguments have {size} characters, the limit is {MAX_VALUES}", size=size, limit=MAX_VALUES
            )
        if self._walks:
            self._environment.fuel = min(self._steps, WALKS // max(size, 1))
        self._output.begin()
        try:
            text = self._environment.render_template("text", **given)
        except TemplateError as error:
            if error.kind == "OutOfFuel":
                raise InvalidParams(
                    "The prompt takes too many steps with these arguments: give shorter lists"
                ) from None
            detail = error.detail or error.message
            raise InvalidParams(f"The prompt cannot work with these arguments: {detail}, line {error.line}") from None
        bounded(len(text))
        return text


def program(text: str, declared: frozenset[str]) -> CompiledTemplate:
    """Raises NoTemplate with the line of what cannot be used."""
    loops = _checked(text)
    environment = Environment(debug=False, pycompat=False)
    try:
        names = frozenset(environment.undeclared_variables_in_str(text))
        made = CompiledTemplate(text, names, loops)
    except TemplateError as error:
        raise NoTemplate(error.line or 1, error.detail or error.kind) from None
    for name in sorted(names - declared):
        place = re.search(rf"\b{re.escape(name)}\b", text)
        raise NoTemplate(line_of(text, place.start() if place else 0), undeclared(name))
    return made


class _Refused(Exception):
    """What is wrong with one tag; whoever walks over the text knows its line."""


def _checked(text: str) -> _Loops:
    """Raises NoTemplate for what is not in the language."""
    blocks: list[tuple[str, int]] = []  # which are open, and where they begin
    repeated = end = loops = branches = 0
    walk = False
    for number, match in enumerate(_TAG.finditer(text)):
        repeated += match.end() - end if loops else 0
        end = match.end()
        try:
            if number >= MAX_TAGS:
                raise _Refused(f"a text has at most {MAX_TAGS} tags")
            if match["open"]:
                raise _Refused(f"{match['open']} is not closed by {_CLOSING[match['open']]}")
            inside, walks = loops > 0, False
            if match["expression"] is not None:
                walks = _check_expression(match["expression"])
            elif match["tag"] is not None:
                walks = _check_tag(match["tag"], match.start(), blocks)
                loops = sum(block == "for" for block, _ in blocks)
                branches += match["tag"].startswith("elif")
            walk = walk or (inside and walks)
            if branches > MAX_BRANCHES:
                raise _Refused(f"a text has at most {MAX_BRANCHES} elif")
        except _Refused as refused:
            raise NoTemplate(line_of(text, match.start()), str(refused)) from None
    if blocks:
        word, place = blocks[-1]
        raise NoTemplate(line_of(text, place), f"{{% {word} %}} is not closed by {{% end{word} %}}")
    return _Loops(repeated, walk)


def _check_tag(tag: str, place: int, blocks: list[tuple[str, int]]) -> bool:
    """Whether it looks through a value."""
    word, _, rest = tag.partition(" ")
    within = blocks[-1][0] if blocks else ""
    walks = False
    if word == "for" and (loop := _FOR.fullmatch(rest.strip())):
        walks = _check_expression(loop["values"])
        blocks.append(("for", place))
    elif word == "if" and rest:
        walks = _check_expression(rest)
        blocks.append(("if", place))
    elif word == "elif" and rest and within == "if":
        walks = _check_expression(rest)
    elif word in ("endif", "endfor") and not rest and within == word[3:]:
        blocks.pop()
    elif word != "else" or rest or not within:
        raise _Refused(f"{{% {tag[:40]} %}} cannot stand here; there are if, elif, else, endif, for NAME in, endfor")
    if len(blocks) > MAX_DEPTH:
        raise _Refused(f"blocks are nested deeper than {MAX_DEPTH}")
    return walks


def _check_word(kind: str, word: str, *, literals: bool) -> None:
    if kind == "name" and (word.startswith("_") or (literals and word not in _CONSTANTS)):
        raise _Refused(f"{word[:40]} cannot stand here")
    if kind == "literal" and len(word) > MAX_LITERAL:
        raise _Refused(f"a text in an expression has at most {MAX_LITERAL} characters")


def _check_expression(text: str) -> bool:
    """Whether it looks through a value: what is compared with a literal ends soon."""
    before, literals, walks = "", False, False  # what stood before, and whether these are the arguments of a filter
    for number, (kind, word) in enumerate(_tokens(text)):
        if number >= MAX_WORDS:
            raise _Refused(f"an expression has at most {MAX_WORDS} words")
        if kind == "name" and before == "|":
            if word not in FILTERS:
                raise _Refused(f"there is no filter {word[:40]}; there are {', '.join(sorted(FILTERS))}")
            before, walks = "filter", walks or word in _WALKING
            continue
        _check_word(kind, word, literals=literals)
        walks = walks or word == "in" or (before in _COMPARING and kind == "name" and word not in _CONSTANTS)
        if word == "(":
            if before == "value":
                raise _Refused("nothing can be called; only filters have arguments")
            literals = literals or before == "filter"
        elif word == ")":
            literals = False
        before = "value" if word == ")" or (kind != "mark" and word not in _WORDS) else word
    return walks


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    text = text.rstrip()
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _Refused(f"{text[place : place + 100].split()[0][:20]!r} cannot stand in an expression")
        yield str(match.lastgroup), match[match.lastgroup or 0]
        place = match.end()
