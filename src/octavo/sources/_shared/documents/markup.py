"""XML of strangers: no document type, no entities, no depth without end, no namespaces.

Names come out local (`w:p` and its strict twin are both `p`): an element means the same under either of a
standard's namespaces, and no reader here meets two that it must tell apart. Attributes of the namespace of
relationships keep their `r:`, because `id` and `r:id` stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from octavo.sources._shared.documents.model import Unreadable

_MAX_DEPTH: Final = 200
_RELATIONSHIPS: Final = "/relationships"


class Target(Protocol):
    def start(self, tag: str, attrs: dict[str, str], /) -> object: ...
    def end(self, tag: str, /) -> object: ...
    def data(self, data: str, /) -> object: ...


def parse(chunks: Iterable[bytes], target: Target) -> None:
    """Feeds the elements and texts to the target, which may stop it by an exception of its own."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0
    known: dict[str, str] = {}

    def local(name: str) -> str:
        space, _, rest = name.rpartition("}")
        known[name] = found = f"r:{rest}" if space.endswith(_RELATIONSHIPS) else rest
        return found

    def start(name: str, attrs: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise Unreadable("its XML is nested too deeply")
        if attrs:
            attrs = {known.get(key) or local(key): value for key, value in attrs.items()}
        target.start(known.get(name) or local(name), attrs)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        target.end(known.get(name) or local(name))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = target.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _refuse
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        raise Unreadable("its XML is malformed") from None


def tree(chunks: Iterable[bytes]) -> Element:
    builder = TreeBuilder()
    parse(chunks, builder)
    return builder.close()


def number(value: str | None, default: int = 0) -> int:
    """An attribute that should be a small number, and may be anything."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 8 else default


def children(element: Element | None, path: str) -> Iterator[Element]:
    return iter(()) if element is None else element.iterfind(path)


def _refuse(*_: object) -> None:
    raise Unreadable("it declares a document type or entities, which no such document needs")
