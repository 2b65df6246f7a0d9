"""The addresses of a catalog as templates, each variable described: for whoever fills them in, person or model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from octavo.core.values import Template
from octavo.sources.catalog.declaration import Declaration, Shape
from octavo.sources.catalog.record import DIRECTORY, MIME

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
    "file": "a file that belongs to it, with its folders, such as SKILL.md",
    "match": "a request in plain words, in Korean or English",
    "range": "a part of the file in bytes, such as 0-65535; stands alone",
    "version": "another version than the current one, such as 1.2.0; stands alone",
    "view": "another form of the same: parsed as JSON, relations in both directions, and so on; stands alone",
}


def templates(of: Declaration) -> Sequence[Template]:
    """One for each shape of address, one for the files that belong to such an entry, and one for the filters."""
    shapes = {shape.address.text: shape for shape in reversed(of.shapes) if shape.offered}  # of equal ones the first
    entries = [one for shape in reversed(shapes.values()) for one in (_entry(of, shape), *_files(of, shape))]
    return [*entries, *_collection(of)]


def shapes_of(of: Declaration, template: str) -> Sequence[Shape]:
    """The addresses that a template is one of: of the filters, all."""
    if any(template == one.uri_template for one in _collection(of)):
        return of.shapes
    return [shape for shape in of.shapes if template in (_address(of, shape), _address_of_files(of, shape))]


def _address(of: Declaration, shape: Shape) -> str:
    return f"{of.scheme}://{shape.address.text}{{?version,view,range}}"


def _address_of_files(of: Declaration, shape: Shape) -> str:
    return f"{of.scheme}://{shape.address.text}/{{+file}}"


def _files(of: Declaration, shape: Shape) -> Iterator[Template]:
    names = [*shape.address.names, "file"]
    if of.manifest:
        yield Template(
            uri_template=_address_of_files(of, shape),
            name=f"file of a {of.what}",
            description=f"A file of a {of.what}; each has its {of.manifest}",
            parameters=_parameters(of, names, names),
        )


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
        return [*of.views, *(("body",) if any(shape.form == "markdown" for shape in of.shapes) else ())]
    if name == "type" and len(of.shapes) > 1:
        return [shape.kind for shape in of.shapes if shape.offered]
    given = of.properties.get(of.filters.get(name, name), {}).get("enum", ())
    return [] if name in of.variables else [one for one in given if isinstance(one, str)]
