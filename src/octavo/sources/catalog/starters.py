"""What a new file of a catalog begins with: the front matter that its kind needs, and a text to go on from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from octavo.core.errors import Conflict, InvalidParams
from octavo.core.ref import Ref
from octavo.sources.catalog.crossrefs import Pages
from octavo.sources.catalog.declaration import Declaration, Segments, Shape
from octavo.sources.catalog.model import compile_model
from octavo.text.frontmatter import of_markdown, of_yaml

_HANGUL: Final = re.compile("[가-힣]")
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "sop": ("Purpose", "Scope", "Roles", "Steps", "Checklist", "Changes"),
    "doc": ("What this is for", "Rules", "Changes"),
    "skill": ("When to use it", "Steps"),
}
_IN_KOREAN: Final[Mapping[str, tuple[str, ...]]] = {
    "sop": ("목적", "적용 범위", "담당과 책임", "절차", "체크리스트", "변경 이력"),
    "doc": ("이 문서의 목적", "내용", "변경 이력"),
    "skill": ("언제 쓰나", "절차"),
}


class Starter(NamedTuple):
    ref: Ref
    place: Segments  # below the folder of the catalog
    text: str


def starter(of: Declaration, kind: str, name: str, title: str, today: str, pages: Pages) -> Starter:
    """A new SOP, document, skill or agent that nothing is wrong with. What is known of its function is filled in.

    Raises InvalidParams for a name or a title that cannot be used, Conflict for an address or an id that is taken.
    """
    ref, place, shape = _spot(of, name)
    if ref in pages.of(of.scheme).cards:
        raise Conflict(f"{ref} is there already; nothing was written", uri=str(ref))
    variables = shape.address.match(ref.segments) or {}
    id = "-".join((kind, *variables.values()))
    if pages.of(of.scheme).find_id(id):
        raise Conflict(f"The id {id} is already that of another file; choose another name", uri=str(ref))
    title = " ".join(title.split())
    if not title.isprintable():
        raise InvalidParams("The title holds characters that cannot be shown; write it as plain text")
    fields = {"schema_version": "1.0", "id": id, **_fields(kind, variables, title, today, pages)}
    text = _written(shape, kind, title, fields)
    read = (of_yaml if shape.form == "yaml" else of_markdown)(text, texts=of.texts)
    wrong = [fault.message for fault in read.faults] + [said for _, said in compile_model(of.schema)(read.data)]
    if wrong:
        raise InvalidParams(f"{ref} cannot be made: {wrong[0]}", uri=str(ref))
    return Starter(ref, place, text)


def _spot(of: Declaration, name: str) -> tuple[Ref, Segments, Shape]:
    """From an address, or a path in the catalog, with or without the ending of the file."""
    for shape in (one for one in of.shapes if one.offered):
        scheme, _, path = name.rpartition("://")
        suffix = next((one for one in shape.suffixes if path.endswith(one)), "")
        ref = Ref.of(of.scheme, path.removesuffix(suffix).split("/"))
        places = shape.places(ref.segments) if scheme in ("", of.scheme) else []
        if places:
            return ref, places[0], shape
    usual = " or ".join(dict.fromkeys(shape.address.text for shape in of.shapes if shape.offered))
    raise InvalidParams(f"A {of.what} is named {usual}, without a version, and not {name!r}")


def _fields(kind: str, variables: Mapping[str, str], title: str, today: str, pages: Pages) -> dict[str, Any]:
    name = variables["name"]
    function = _id(pages, "function", variables.get("function", name))
    agent = _id(pages, "agent", variables.get("function", name))
    within = {"function": function} if function else {}
    state = {"version": "0.1.0", "status": "draft"}
    if kind == "sop":
        return {"title": title, **state, **within, **({"agent": agent} if agent else {}), "tags": []}
    if kind == "doc":
        return {"title": title, "version": "0.1.0", "category": variables["category"], "last_updated": today}
    if kind == "skill":
        return {
            "name": name, "title": title, "description": title, **state, **within, "agents": [agent] if agent else [],
            "triggers": {"keywords": [title], "examples": [title]}, "required_tools": ["read"], "sops": [],
            "steps": [title],
        }  # fmt: skip
    return {"name": name, "title": title, "description": title, **state, **within, "capabilities": [], "skills": []}


def _id(pages: Pages, kind: str, name: str) -> str:
    """Of the one entry of that name, if there is one: a reference to nothing would be the first problem."""
    found = pages.resolve((kind,), name) if kind in pages.kinds else []
    return pages.card(found[0]).id if len(found) == 1 else ""


def _written(shape: Shape, kind: str, title: str, fields: Mapping[str, Any]) -> str:
    matter = "\n".join(_lines(fields))
    if shape.form == "yaml":
        return f"{matter}\n"
    sections = (_IN_KOREAN if _HANGUL.search(title) else _SECTIONS)[kind]
    return f"---\n{matter}\n---\n# {title}\n" + "".join(f"\n## {section}\n" for section in sections)


def _lines(fields: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {_value(key, value)}"


def _value(key: str, value: Any) -> str:
    """As JSON, which is YAML too; bare where a person would write it so."""
    if isinstance(value, str) and key != "schema_version" and re.fullmatch(r"[\w][\w./@-]*", value):
        return value
    return json.dumps(value, ensure_ascii=False)
