"""detect-secrets: its tests of plugins are lines, each with whether it is to be flagged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.foreign.case import Case, Kind, is_marked

TESTS = "tests/plugins/stripe_key_test.py"
_GENERIC = ("keyword", "high_entropy", "basic_auth")
_NAMED = ("ibm", "softlayer", "cloudant")


def cases(folder: Path) -> Iterator[Case]:
    for path in sorted((folder / "tests" / "plugins").glob("*_test.py")):
        family = path.name.removesuffix("_test.py")
        kind: Kind = "generic" if family.startswith(_GENERIC) else "named" if family.startswith(_NAMED) else "published"
        if family == "ip_public":
            kind = "ip addresses"
        for text, wanted in _lines(ast.parse(path.read_text(encoding="utf-8"))):
            # Which part of a line is the secret is not said: the line must change.
            marked = kind == "published" and wanted and is_marked(text)
            hidden = (wanted if isinstance(wanted, str) and wanted in text else text,)
            whole = hidden[0] == text and wanted is True
            yield Case("marked as example" if marked else kind, family, text, hidden if wanted else (), whole)


def _lines(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Pairs of a text and what is to be found: of the parameters of tests, and of tables that they use."""
    known = {
        node.targets[0].id: _value(node.value, {})
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) >= 2:
            first, second = _value(node.elts[0], known), _value(node.elts[1], known)
            if isinstance(first, str) and len(first) > 3 and (second is None or isinstance(second, bool | str)):
                if isinstance(second, str) and second not in first:
                    continue
                yield first, second


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """Of a constant, a name for one, or a form that is filled with them."""
    if isinstance(node, ast.Name):
        return known.get(node.id, ...)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        form, values = _value(node.func.value, known), [_value(one, known) for one in node.args]
        named = {str(one.arg): _value(one.value, known) for one in node.keywords}
        if not isinstance(form, str) or ... in (*values, *named.values()):
            return ...
        return form.format(*values, **named)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...
