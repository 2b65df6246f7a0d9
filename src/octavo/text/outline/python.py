"""Classes and functions of Python, by its own parser; by indentation where the text does not parse."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from octavo.text.outline.symbol import Symbol

_MOST: Final = 1_000_000  # characters; the tree of a text takes a hundred times its size


def definitions(text: str) -> Sequence[Symbol] | None:
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
