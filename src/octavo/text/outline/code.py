"""Classes and functions: of Python by its own parser, of other languages by how their lines look.

For the others there are RE2 patterns a language, nesting by indentation, and no parser: a definition that is laid out
in an unusual way is missed, one inside a string may be told. What it costs is one linear pass.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, cast

import re2 as _untyped_re2  # type: ignore[import-untyped]  # it has no annotations

from octavo.text.outline.symbol import Opened, Symbol, nested

_MOST: Final = 1_000_000  # characters; the tree of a text takes a hundred times its size


def of_python(text: str) -> Sequence[Symbol] | None:
    """None where Python itself cannot read the text, or it is too large to try."""
    if len(text) > _MOST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the text's bad escapes are not ours to tell
            tree = ast.parse(text)
        return list(_within(tree, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _within(node: ast.AST, path: tuple[str, ...]) -> Iterator[Symbol]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            here = (*path, child.name)
            kind = "class" if isinstance(child, ast.ClassDef) else "method" if _is_class(node) else "function"
            first = min((child.lineno, *(decorator.lineno for decorator in child.decorator_list)))
            yield Symbol(here, kind, first, child.end_lineno or child.lineno)
            yield from _within(child, here)
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _within(child, path)


def _is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


re2 = cast("Any", _untyped_re2)

_NAME: Final = r"([\p{L}_$][\p{L}\p{N}_$]*)"
_PLAIN: Final = r"[\p{L}_$][\p{L}\p{N}_$]*"
_BEFORE: Final = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|async|override|sealed|open"
    r"|data|inline|virtual|extern|partial|readonly|synchronized|native|unsafe|const|pub(?:\([a-z ]+\))?|suspend"
    r"|fileprivate|mutating|constexpr|template\s*<[^{]*>|typedef|@[\p{L}\p{N}_.]+)\s+)*"
)
_TYPES: Final = r"(?:[\p{L}_][\p{L}\p{N}_.:<>,\[\]*&?~]*\s+)+[*&]*"
_BODY: Final = r"\s*\([^;{]*(?:\{.*)?$"
_COMPOUND: Final = (
    r"(?:class|struct|union|enum|enum\s+class|interface|@interface|record|object|namespace|trait|protocol|extension)"
)
_PATTERNS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "python": (("class", rf"class\s+{_NAME}"), ("function", rf"(?:async\s+)?def\s+{_NAME}")),
    "ecmascript": (
        ("class", rf"{_BEFORE}(?:class|interface|enum|namespace)\s+{_NAME}"),
        ("type", rf"{_BEFORE}type\s+{_NAME}\s*(?:<[^=]*>)?\s*="),
        ("function", rf"{_BEFORE}function\s*\*?\s*{_NAME}"),
        ("function", rf"{_BEFORE}(?:let\s+|var\s+)?{_NAME}\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|{_PLAIN}\s*=>)"),
        ("function", rf"{_BEFORE}(?:let\s+|var\s+)?{_NAME}\s*(?::[^=]+)?=\s*(?:async\s*)?\([^=]*\)\s*(?::[^=]+)?=>"),
        ("method", rf"{_BEFORE}(?:get\s+|set\s+)?[*#]?{_NAME}\s*(?:<[^(]*>)?\([^;{{]*\)\s*(?::[^={{]+)?\{{"),
    ),
    "go": (
        ("function", rf"func\s+(?:\([^)]*\)\s*)?{_NAME}"),
        ("class", rf"type\s+{_NAME}(?:\[[^\]]*\])?\s+(?:struct|interface)\b"),
        ("type", rf"type\s+{_NAME}\s"),
    ),
    "rust": (
        ("function", rf"{_BEFORE}(?:extern\s+\"[^\"]*\"\s+)?fn\s+{_NAME}"),
        ("class", rf"{_BEFORE}(?:struct|enum|union|trait|mod)\s+{_NAME}"),
        ("impl", r"(?:unsafe\s+)?impl(?:<[^{]*>)?\s+(?:[^{]*\s+for\s+)?([\p{L}_][\p{L}\p{N}_:]*)"),
        ("type", rf"{_BEFORE}type\s+{_NAME}"),
        ("macro", rf"macro_rules!\s+{_NAME}"),
    ),
    "c": (
        ("class", rf"{_BEFORE}{_COMPOUND}\s+{_NAME}[^;=()]*(?:\([^;]*)?$"),
        ("macro", rf"#\s*define\s+{_NAME}\("),
        ("function", rf"{_BEFORE}(?:fun|func)\s+(?:<[^(]*>\s*)?(?:[\p{{L}}\p{{N}}_]+\.)*{_NAME}\s*[(<]"),
        ("function", rf"{_BEFORE}(?:<[^(]*>\s*)?{_TYPES}(?:[\p{{L}}\p{{N}}_]+::)*~?{_NAME}{_BODY}"),
        ("function", rf"(?:[\p{{L}}\p{{N}}_]+::)+~?{_NAME}{_BODY}"),
        ("function", rf"(?:public|private|protected|internal)\s+{_NAME}{_BODY}"),
    ),
    "ruby": (
        ("class", r"(?:class|module)\s+([\p{L}_][\p{L}\p{N}_:]*)"),
        ("function", r"def\s+(?:self\.)?([\p{L}_][\p{L}\p{N}_]*[?!=]?)"),
    ),
    "php": (
        ("class", rf"{_BEFORE}(?:class|interface|trait|enum)\s+{_NAME}"),
        ("function", rf"{_BEFORE}function\s+&?{_NAME}"),
    ),
    "shell": (
        ("function", r"(?:function\s+)?([\p{L}_][\p{L}\p{N}_-]*)\s*\(\)\s*(?:\{.*)?$"),
        ("function", rf"function\s+{_NAME}"),
    ),
}
_CONTROL: Final = frozenset({
    "if", "else", "elif", "for", "while", "switch", "case", "catch", "return", "new", "do", "try", "throw", "using",
    "lock", "foreach", "sizeof", "await", "yield", "with", "goto", "assert", "delete", "not", "in",
})  # fmt: skip
_COMMENT: Final = ("//", "/*", "*", "--")
_LONGEST: Final = 400  # characters of a line; longer ones are data or generated


class _Shapes:
    """The patterns of a language: all at once to see whether a line is worth a look, then one by one."""

    def __init__(self, patterns: Sequence[tuple[str, str]]) -> None:
        self._any = re2.Set.MatchSet()
        for _, pattern in patterns:
            self._any.Add(pattern)
        self._any.Compile()
        self._each = [(kind, re2.compile(pattern)) for kind, pattern in patterns]

    def seen(self, line: str) -> tuple[str, str] | None:
        """Kind and name of what the line defines."""
        for number in sorted(self._any.Match(line) or ()):
            kind, pattern = self._each[number]
            name = str(pattern.match(line)[1])
            called = kind == "method" and ("=>" in line or "function" in line)
            if name not in _CONTROL and not called:
                return kind, name
        return None


@cache
def _shapes(language: str) -> _Shapes:
    return _Shapes(_PATTERNS[language])


def definitions(lines: Sequence[str], language: str) -> Sequence[Symbol]:
    symbols = nested(_opened(lines, _shapes(language), "" if language == "c" else "#"), len(lines))
    return [symbol._replace(last=_end(lines, symbol)) for symbol in symbols]


def _opened(lines: Sequence[str], shapes: _Shapes, comment: str) -> Iterator[Opened]:
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if not bare or len(bare) > _LONGEST or bare.startswith(_COMMENT) or (comment and bare.startswith(comment)):
            continue
        if bare.split(None, 1)[0] in _CONTROL:
            continue
        found = shapes.seen(bare)
        if found:
            kind, name = found
            yield Opened(name, kind, number, _indent(line))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: Sequence[str], symbol: Symbol) -> int:
    """The closing brace at the symbol's own indentation, else the last line that has something."""
    indent = _indent(lines[symbol.line - 1])
    for n in range(symbol.line, symbol.last):
        line = lines[n]
        if line.startswith(("}", "end"), indent) and _indent(line) == indent:
            return n + 1
    last = symbol.last
    while last > symbol.line and not lines[last - 1].strip():
        last -= 1
    return last
