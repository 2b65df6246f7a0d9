"""JSON with comments and trailing commas, changed by spans: what is not the entry keeps its bytes.

A member is put behind the last one of its object, in the indentation and with the line ends that are there, and taken
out so that the text is what it was before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from octavo.cli.client_files import HIDDEN, UnreadableFile

DEEPEST: Final = 100
_BLANK: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_PUNCTUATION: Final = re.compile(r"//[^\r\n]*+|/\*.*?\*/|,", re.DOTALL)
_REMARK: Final = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_SCALAR: Final = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])")
_SPACES: Final = " \t\r\n"


class Node(NamedTuple):
    start: int
    end: int
    value: Any
    members: tuple[Member, ...] | None = None  # of an object
    items: tuple[Node, ...] = ()  # of a list

    def member(self, name: str) -> Member | None:
        return next((one for one in self.members or () if one.name == name), None)


class Member(NamedTuple):
    name: str
    start: int
    node: Node


def read(text: str) -> Mapping[str, Any]:
    """What the text says; an empty one says nothing. Raises `UnreadableFile`."""
    root = _Reader(text).root()
    if root is None:
        return {}
    if root.members is None:
        raise UnreadableFile("it is no JSON object")
    found: Mapping[str, Any] = root.value
    return found


def put(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    """The text with `value` at `path`, in the place of what is there or behind its neighbours."""
    style = _Style(text)
    root = _Reader(text).root()
    if root is None:
        gap = style.newline if text and not text.endswith(("\n", "\r")) else ""
        return f"{text}{gap}{style.shown(_nested(path, value), '')}{style.newline}"
    node, inline, indent = root, False, ""
    for depth, name in enumerate(path):
        inline = _inline(text, node) if node.members else inline
        member = node.member(name)
        if member is None:
            return _inserted(text, node, name, _nested(path[depth + 1 :], value), style, inline=inline)
        node, indent = member.node, _indent(text, member.start)
    shown = json.dumps(value, ensure_ascii=False) if inline else style.shown(value, indent)
    return text[: node.start] + shown + text[node.end :]


def take(text: str, path: tuple[str, ...]) -> str:
    """The text without what stands at `path`, with one comma less; the same text where nothing does."""
    holder = _Reader(text).root()
    for name in path[:-1]:
        member = holder.member(name) if holder else None
        holder = member.node if member else None
    member = holder.member(path[-1]) if holder else None
    return _removed(text, holder, member) if holder and member else text


def veiled(text: str, names: frozenset[str], own: tuple[str, ...]) -> str:
    """The text without values and remarks below these names, but for what stands at the path `own`."""
    root = _Reader(text).root()
    spans = [] if root is None else _below(text, root, names, own, held=False)
    for start, end, sign in reversed([*spans]):
        text = text[:start] + sign + text[end:]
    return text


def _below(
    text: str, node: Node, names: frozenset[str], own: tuple[str, ...], *, held: bool
) -> Iterator[tuple[int, int, str]]:
    """What is hidden in a node, in order, and by what."""
    if held and node.members is None and not node.items:
        yield node.start, node.end, json.dumps(HIDDEN)
        return
    at = node.start
    for member in node.members or ():
        yield from _remarks(text, at, member.start, held=held)
        at = member.node.end
        if own == (member.name,):
            continue
        rest = own[1:] if own[:1] == (member.name,) else ()
        below = held or member.name.casefold() in names
        yield from _below(text, member.node, names, rest, held=below)
    for item in node.items:
        yield from _remarks(text, at, item.start, held=held)
        at = item.end
        yield from _below(text, item, names, (), held=held)
    yield from _remarks(text, at, node.end, held=held)


def _remarks(text: str, start: int, end: int, *, held: bool) -> Iterator[tuple[int, int, str]]:
    """A value that was put into a remark is hidden as well."""
    for found in _REMARK.finditer(text, start, end) if held else ():
        yield found.start(), found.end(), f"/* {HIDDEN} */"


def _nested(path: tuple[str, ...], value: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return value


def _inserted(text: str, node: Node, name: str, value: Mapping[str, Any], style: _Style, *, inline: bool) -> str:
    members, brace = node.members or (), node.end - 1
    last = members[-1].node.end if members else node.start + 1
    signs = list(_PUNCTUATION.finditer(text, last, brace))
    comma = any(sign[0] == "," for sign in signs)
    at = signs[-1].end() if signs else last
    if inline:
        written = f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        space = " " if members else ""
        return f"{text[:last]}{',' if members and not comma else ''}{text[last:at]}{space}{written}{text[at:]}"
    outer = _indent(text, node.start)
    indent = _indent(text, members[0].start) if members and _leads(text, members[0].start) else outer + style.unit
    written = f"{style.newline}{indent}{json.dumps(name)}: {style.shown(value, indent)}{',' if comma else ''}"
    closing = text[at:brace]
    if "\n" not in closing and "\r" not in closing:
        closing = f"{style.newline}{outer}"
    between = f"{',' if members and not comma else ''}{text[last:at]}"
    return f"{text[:last]}{between}{written}{closing}{text[brace:]}"


def _removed(text: str, holder: Node, member: Member) -> str:
    members = holder.members or ()
    index = members.index(member)
    lead, start, end = member.start, member.start, member.node.end
    while text[lead - 1] in _SPACES:
        lead -= 1
    comma = _next(text, end)
    if text[comma] == ",":
        rest = comma + 1 if comma == end else end
    else:
        rest, comma = end, _next(text, members[index - 1].node.end) if index else -1
    if text[rest] not in "\r\n}" and "\n" in text[lead:start]:  # others stand on the same line
        lead = start
        while text[rest] in " \t" and comma < rest:
            rest += 1
            end = rest
    spans = [(lead, end), *([(comma, comma + 1)] if comma >= 0 and not lead <= comma < end else [])]
    kept = _cut(text, spans)
    closing = holder.end - (len(text) - len(kept)) - 1
    if len(members) == 1 and not kept[holder.start + 1 : closing].strip(_SPACES):
        return f"{kept[: holder.start + 1]}{kept[closing:]}"
    return kept


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def _next(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _inline(text: str, node: Node) -> bool:
    first, *_, last = (*(node.members or ()), *(node.members or ())[-1:])
    return "\n" not in text[node.start : first.start] and "\n" not in text[last.node.end : node.end]


def _leads(text: str, at: int) -> bool:
    """Whether nothing but spaces stands in front of it on its line."""
    return not text[max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1 : at].strip()


def _indent(text: str, at: int) -> str:
    line = text[max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


class _Style:
    """Line ends and the step of indentation that a text uses."""

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        step = re.search(r"\{[ \t]*(?://[^\r\n]*)?\r?\n([ \t]+)\"", text)
        self.unit = step[1] if step else "  "

    def shown(self, value: Mapping[str, Any], indent: str) -> str:
        lines = json.dumps(value, ensure_ascii=False, indent=self.unit)
        return lines.replace("\n", self.newline + indent)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def root(self) -> Node | None:
        self._blank()
        if self._at == len(self._text):
            return None
        found = self._value(0)
        self._blank()
        if self._at < len(self._text):
            raise self._fault("something follows the end")
        return found

    def _value(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._fault("it is nested too deeply")
        sign, start = self._text[self._at : self._at + 1], self._at
        if sign == "{":
            members = tuple(self._members(depth))
            return Node(start, self._at, {one.name: one.node.value for one in members}, members)
        if sign == "[":
            items = tuple(self._items(depth))
            return Node(start, self._at, [one.value for one in items], items=items)
        pattern = _STRING if sign == '"' else _SCALAR
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._fault("a value is missing or broken")
        self._at = found.end()
        return Node(start, self._at, self._loaded(found[0]))

    def _members(self, depth: int) -> Iterator[Member]:
        seen: set[str] = set()
        for _ in self._parts("}"):
            start = self._at
            found = _STRING.match(self._text, start)
            if found is None:
                raise self._fault("a name in double quotes is missing")
            name = str(self._loaded(found[0]))
            if name in seen:
                raise self._fault(f'"{name}" stands twice in one object')
            seen.add(name)
            self._at = found.end()
            self._blank()
            if not self._took(":"):
                raise self._fault("a colon is missing")
            self._blank()
            yield Member(name, start, self._value(depth + 1))

    def _items(self, depth: int) -> Iterator[Node]:
        for _ in self._parts("]"):
            yield self._value(depth + 1)

    def _parts(self, closing: str) -> Iterator[None]:
        """Stands at the beginning of each part, and behind the bracket at last. A last comma is allowed."""
        self._at += 1
        self._blank()
        while not self._took(closing):
            yield
            self._blank()
            if not self._took(","):
                if not self._took(closing):
                    raise self._fault(f"a comma or {closing} is missing")
                return
            self._blank()

    def _loaded(self, raw: str) -> Any:
        try:
            return json.loads(raw)
        except ValueError:
            raise self._fault("a text has a broken escape") from None

    def _took(self, sign: str) -> bool:
        if self._text[self._at : self._at + 1] != sign:
            return False
        self._at += 1
        return True

    def _blank(self) -> None:
        self._at = _next(self._text, self._at)

    def _fault(self, what: str) -> UnreadableFile:
        return UnreadableFile(f"line {self._text.count(chr(10), 0, self._at) + 1}: {what}")
