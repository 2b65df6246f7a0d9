"""YAML 1.2 to plain data that knows its lines.

Whatever could make a file mean something else than it seems to is refused: duplicate keys, anchors
and aliases, merge keys, tags, several documents. No message repeats a value of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from octavo.config.document import ConfigText, TextFault, broken
from octavo.config.problems import KeyPath, Position
from octavo.config.words import nfc

MAX_DEPTH = 32


def _whole_number(text: str) -> int:
    digits = text.replace("_", "").lower()
    for prefix, base in (("0x", 16), ("0o", 8), ("0b", 2)):
        if digits.lstrip("+-").startswith(prefix):
            return int(digits, base)
    return int(digits)


def _fraction(text: str) -> float:
    number = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(number):
        raise ValueError("JSON has no such number")
    return number


_TAG = "tag:yaml.org,2002:"
_WORDS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "timestamp": str,  # a version such as 2025-01-01 stays what it looks like
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": _whole_number,
    "float": _fraction,
}


def read_yaml(text: str) -> ConfigText:
    try:
        # Composed, not constructed: nodes keep their lines, and an alias is seen before it is followed.
        yaml: Any = YAML(typ="safe", pure=True)
        yaml.composer.warn_double_anchors = False  # the walk says what is wrong with anchors
        root: Any = yaml.compose(text)
    except MarkedYAMLError as raised:
        error: Any = raised
        mark = error.problem_mark or error.context_mark
        return broken(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, _said(str(error.problem)))
    except ReaderError as raised:
        error = raised
        return broken(text.count("\n", 0, error.position) + 1, 1, "holds a control character that YAML does not allow")
    except YAMLError:
        return broken(1, 1, "is no YAML")
    except RecursionError:
        return broken(1, 1, "is nested too deeply")
    if root is None:
        return broken(1, 1, "is empty; the smallest configuration names one source")
    if root.id != "mapping":
        return broken(root.start_mark.line + 1, 1, "must be a mapping of keys and values, beginning with version: 1")
    walk = _NodeWalk()
    data = walk.mapping(root, ())
    return ConfigText(data, walk.places, tuple(walk.faults))


def _said(problem: str) -> str:
    if "'\\t'" in problem:
        return "a tab cannot indent; use spaces"
    if "undefined alias" in problem:
        return "aliases are not used here; a value that begins with * needs quotes"
    if "another document" in problem:
        return "a configuration is one document; --- begins another"
    # Names of tags and anchors come from the file and may be a secret that was not quoted.
    return "is no YAML: " + re.sub(r"'[^']{3,}'|\"[^\"]{3,}\"", "...", problem)


class _NodeWalk:
    """Over the nodes of ruamel.yaml, which are untyped: they have `id`, `tag`, `value`, `anchor` and marks."""

    def __init__(self) -> None:
        self.places: dict[KeyPath, Position] = {}
        self.faults: list[TextFault] = []

    def mapping(self, node: Any, path: KeyPath) -> dict[str, Any]:
        self.places.setdefault(path, _place(node))
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._fault(path, key_node, "a key must be plain text")
                continue
            key = nfc(str(key_node.value))
            if key_node.tag == _TAG + "merge":
                self._fault(path, key_node, "merge keys (<<) are not used here; write the keys out")
            elif key_node.anchor or key_node.tag.removeprefix(_TAG) not in _WORDS:
                self._fault(path, key_node, "a key has no anchor and no tag")
            elif key in data:
                self._fault((*path, key), key_node, "is given twice")
            else:
                self.places[(*path, key)] = _place(key_node)
                data[key] = self._value(value_node, (*path, key))
        return data

    def _value(self, node: Any, path: KeyPath) -> Any:
        if node.anchor:  # an alias is the very node of its anchor, so the place is that of the key
            message = "anchors and aliases (& and *) are not used here; write the value out or quote it"
            self.faults.append(TextFault(path, self.places[path], message))
        elif len(path) > MAX_DEPTH:
            self._fault(path, node, "is nested too deeply")
        elif node.id == "mapping" and node.tag == _TAG + "map":
            return self.mapping(node, path)
        elif node.id == "sequence" and node.tag == _TAG + "seq":
            return self._sequence(node, path)
        elif node.id == "scalar" and (read := _WORDS.get(node.tag.removeprefix(_TAG))):
            try:
                return read(node.value)
            except ValueError:
                self._fault(path, node, "is a number that cannot be used; quote it if it is text")
        else:
            self._fault(path, node, "tags (!name) are not used here; quote the value if it begins with !")
        return None

    def _sequence(self, node: Any, path: KeyPath) -> list[Any]:
        data: list[Any] = []
        for index, item in enumerate(node.value):
            self.places[(*path, index)] = _place(node if item.anchor else item)
            data.append(self._value(item, (*path, index)))
        return data

    def _fault(self, path: KeyPath, node: Any, message: str) -> None:
        self.faults.append(TextFault(path, _place(node), message))


def _place(node: Any) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
