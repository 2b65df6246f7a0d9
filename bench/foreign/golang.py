"""As much of Go as its tests need to say which strings they mean: constants, sums, `fmt.Sprintf`, lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<raw>`[^`]*`)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<char>'(?:[^'\\]|\\.)+')"""
    r"""|(?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|(?P<number>\d[\w.]*)|(?P<sign>:=|\.\.\.|\[\]|.)""",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_VERB = re.compile(r"%[-+#0-9.]*([a-zA-Z%])")

Token = tuple[str, str]
Functions = dict[str, Callable[..., Any]]


def tokens(source: str) -> list[Token]:
    found: list[Token] = []
    for match in _TOKEN.finditer(source):
        kind, text = str(match.lastgroup), match.group()
        if kind == "raw":
            found.append(("string", text[1:-1]))
        elif kind == "string":
            found.append(("string", _unescaped(text[1:-1])))
        elif kind != "skip":
            found.append((kind, text))
    return found


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "xuU":
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", one, text, flags=re.DOTALL)


class Reader:
    """Values of expressions; None for what it does not understand. Names are looked up in `known`."""

    def __init__(self, found: list[Token], functions: Functions | None = None) -> None:
        self.tokens = found
        self.at = 0
        self.known: dict[str, Any] = {"nil": []}
        self.functions: Functions = {
            "fmt.Sprintf": _formatted,
            "strings.Repeat": lambda text, count: text * int(count),
            "strings.ToUpper": str.upper,
            "strings.ToLower": str.lower,
            "byte": lambda value: value,
            "string": lambda value: value,
            "append": lambda first, *rest: [*(first or []), *rest],
            **(functions or {}),
        }

    def learn(self) -> None:
        """Every `name = value` in the file, the first of each name."""
        for place, (kind, text) in enumerate(self.tokens[:-2]):
            if kind != "word" or "." in text:
                continue
            after = self.tokens[place + 1]
            skip = 2 if after == ("sign", "=") or after == ("sign", ":=") else 0
            if after == ("word", "string") and self.tokens[place + 2] == ("sign", "="):
                skip = 3
            if skip and text not in self.known:
                self.at = place + skip
                value = self.expression()
                if isinstance(value, str):
                    self.known[text] = value

    def places(self, name: str) -> Iterator[int]:
        """Behind every `name:`, `name =` and `name :=`."""
        for place, token in enumerate(self.tokens[:-1]):
            if token == ("word", name) and self.tokens[place + 1][1] in (":", "=", ":="):
                yield place + 2

    def value_at(self, place: int) -> Any:
        self.at = place
        return self.expression()

    def expression(self) -> Any:
        value = self._term()
        while self._peek() == "+" and value is not None:
            self.at += 1
            further = self._term()
            value = value + further if isinstance(value, str) and isinstance(further, str) else None
        return value

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] != "string" else ""

    def _term(self) -> Any:
        if self.at >= len(self.tokens):
            return None
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "string":
            return text
        if kind == "number":
            return int(text) if text.isdigit() else None
        if text == "[]":  # a list, or bytes of a text
            self.at += 1
            return self._term_behind_type()
        if text == "map":
            while self._peek() != "{" and self.at < len(self.tokens):
                self.at += 1
            return self._items()
        if text == "(":
            value = self.expression()
            self.at += 1
            return value
        if kind == "word":
            return self._call(text) if self._peek() == "(" else self.known.get(text)
        return None

    def _term_behind_type(self) -> Any:
        if self._peek() == "(":
            self.at += 1
            value = self.expression()
            self.at += 1
            return value
        return self._items() if self._peek() == "{" else None

    def _items(self) -> list[Any]:
        """What stands between braces; of pairs the second."""
        self.at += 1
        items: list[Any] = []
        while self.at < len(self.tokens) and self._peek() != "}":
            before = self.at
            value = self.expression()
            if self._peek() == ":":
                self.at += 1
                value = self.expression()
            items.append(value)
            if self._peek() == ",":
                self.at += 1
            elif self._peek() != "}":
                self.at = max(self.at, before) + 1
        self.at += 1
        return items

    def _call(self, name: str) -> Any:
        self.at += 1
        arguments: list[Any] = []
        while self.at < len(self.tokens) and self._peek() != ")":
            value = self.expression()
            if self._peek() == "...":
                self.at += 1
                arguments += value or []
            else:
                arguments.append(value)
            if self._peek() == ",":
                self.at += 1
            elif self._peek() != ")":
                self._close()
                return None
        self.at += 1
        function = self.functions.get(name)
        if function is None or any(value is None for value in arguments):
            return None
        return function(*arguments)

    def _close(self) -> None:
        depth = 1
        while self.at < len(self.tokens) and depth:
            depth += {"(": 1, ")": -1}.get(self._peek(), 0)
            self.at += 1


def _formatted(form: str, *values: Any) -> str:
    rest = iter(values)

    def one(match: re.Match[str]) -> str:
        if match.group(1) == "%":
            return "%"
        value = next(rest, "")
        return f'"{value}"' if match.group(1) == "q" else str(value)

    return _VERB.sub(one, form)
