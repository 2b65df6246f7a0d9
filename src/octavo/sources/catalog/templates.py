"""The addresses of a catalog as templates, each variable described: for whoever fills them in, person or model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from octavo.core.model import Template
from octavo.sources.catalog.card import DIRECTORY, MIME
from octavo.sources.catalog.declaration import Declaration, Shape

_VARIABLE: Final = re.compile(r"[A-Za-z0-9_]+\Z")  # what RFC 6570 lets be one: other filters can be used, and not shown
_WORDS: Final = {
    "function": "the function of the organisation, by name or id, such as brand or func-brand",
    "name": "the name of the file, without its ending",
    "path": "folders and name of the file, without its ending",
    "category": "the kind of document, such as policies",
    "status": "how far it has come",
    "tags": "one of its tags, or several with commas",
    "agent": "an agent, by name or id, such as agent-brand",
    "owner": "who answers for it: a role, a function or an agent, by name or id",
    "skill": "a skill of the agent, by name, id or address",
    "type": "the part of the organisation; value_stream is value-stream",
    "match": "a request in plain words, in Korean or English",
    "range": "a part of the file in bytes, such as 0-65535; stands alone",
    "version": "another version than the current one, such as 1.2.0; stands alone",
    "view": "another form of the same: parsed as JSON, relations in both directions, and so on; stands alone",
}


def templates(of: Declaration) -> Sequence[Template]:
    """One for each shape of address, and one for the filters of the collection."""
    return [*(_entry(of, shape) for shape in of.shapes), *_collection(of)]


def shapes_of(of: Declaration, template: str) -> Sequence[Shape]:
    """The addresses that a template is one of: of the filters, all."""
    if any(template == one.uri_template for one in _collection(of)):
        return of.shapes
    return [shape for shape in of.shapes if template == _address(of, shape)]


def _address(of: Declaration, shape: Shape) -> str:
    return f"{of.scheme}://{shape.address.text}{{?version,view,range}}"


def _entry(of: Declaration, shape: Shape) -> Template:
    names = [*shape.address.names]
    what = shape.kind or of.scheme
    return Template(
        uri_template=_address(of, shape),
        name=f"{what} by {', '.join(names)}",
        description=f"A {shape.kind if len(of.shapes) > 1 else of.what}: the whole file, its metadata beside it",
        mime_type=MIME[shape.form],
        parameters=_parameters(of, (*names, "version", "view", "range"), names),
    )


def _collection(of: Declaration) -> Iterator[Template]:
    filters = [name for name in (*of.filters, *(("match",) if of.matches else ())) if _VARIABLE.match(name)]
    if filters:
        yield Template(
            uri_template=f"{of.scheme}://{{?{','.join(filters)}}}",
            name=f"{of.scheme} collection by {', '.join(filters)}",
            description="The entries that fit, as JSON"
            + (". With match, ordered by how well they fit the request, with scores and reasons" if of.matches else ""),
            mime_type=DIRECTORY,
            parameters=_parameters(of, filters, ()),
        )


def _parameters(of: Declaration, names: Iterable[str], required: Sequence[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {name: _described(of, name) for name in names}}
    return {**schema, "required": [*required]} if required else schema


def _described(of: Declaration, name: str) -> dict[str, Any]:
    own = of.properties.get(of.filters.get(name, name), {})
    words = own.get("description") or _WORDS.get(name) or f"the key {name} of the front matter, or of the path"
    schema: dict[str, Any] = {"type": "string", "description": words}
    if choices := _choices(of, name):
        schema["enum"] = choices
    return schema


def _choices(of: Declaration, name: str) -> list[str]:
    """Only of words that are no names of entries or folders: a template is shown to who may not see all of those."""
    if name == "view":
        return [*of.views]
    if name == "type" and len(of.shapes) > 1:
        return [shape.kind for shape in of.shapes]
    given = of.properties.get(of.filters.get(name, name), {}).get("enum", ())
    return [] if name in of.variables else [one for one in given if isinstance(one, str)]
