"""The catalogs that everybody has, and how an organisation declares one of its own. All of it is data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.skill import MANIFEST
from octavo.sources.catalog.declaration import (
    DEFINITIONS,
    DOCUMENTS,
    Declaration,
    Shape,
    shapes_of_files,
)
from octavo.sources.catalog.model import compile_model
from octavo.sources.catalog.record import PROBLEMS

_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"type": "array", "items": {"type": "string", "minLength": 1}}
_OBJECT: Final = {"type": "object"}
_ANYTHING: Final = ("sop", "doc", "skill", "agent", "function", "value-stream", "role")
_IN_RULE: Final = re.compile(r"(\{)([A-Za-z_][A-Za-z0-9_]*)\}")
_STATUS: Final = {"type": "string", "enum": ["draft", "active", "deprecated"]}


def _model(required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


_DEFINED: Final = (*DEFINITIONS, ".md", ".mdx", ".markdown")  # agents and roles are mostly definitions


def _texts(folder: str, kind: str) -> tuple[Shape, ...]:
    """Texts in folders of any depth, and beside them."""
    return (
        Shape(f"{{{folder}}}/{{name}}", kind=kind, endings=DOCUMENTS),
        Shape(f"{{{folder}}}/{{+rest}}", kind=kind, endings=DOCUMENTS, offered=False),
        Shape("{name}", kind=kind, endings=DOCUMENTS, offered=False),
    )


SOP: Final = Declaration(
    scheme="sop",
    path="sops",
    shapes=_texts("function", "sop"),
    what="SOP",
    schema=_model(
        ("version", "status"),
        id=_TEXT,
        title=_TEXT,
        version=_TEXT,
        status=_STATUS,
        function=_TEXT,
        agent=_TEXT,
        tags=_TEXTS,
    ),
    filters={"function": "function", "status": "status", "tags": "tags", "agent": "agent"},
    links={"function": ("function",), "agent": ("agent",)},
    within="function",
    marks=("id", "title", "version", "status"),
    usual=("sops",),
    anywhere=True,
)

DOC: Final = Declaration(
    scheme="doc",
    path="docs",
    shapes=_texts("category", "doc"),
    what="document",
    schema=_model(
        (),
        id=_TEXT,
        title=_TEXT,
        version=_TEXT,
        category=_TEXT,
        last_updated={"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"},
        owner=_TEXT,
        tags=_TEXTS,
    ),
    filters={"category": "category", "tags": "tags", "owner": "owner"},
    links={"owner": ("function", "role", "agent")},
    within="category",
    marks=("id", "title", "category", "last_updated", "owner", "version"),
    usual=("docs",),
    anywhere=True,
)

SKILL: Final = Declaration(
    scheme="skill",
    path="skills",
    shapes=(
        Shape("{function}/{name}.yml", kind="skill"),
        Shape("{function}/{name}/SKILL.md", "{function}/{name}", kind="skill"),
    ),
    what="skill",
    schema=_model(
        ("name",),
        id=_TEXT,
        name=_TEXT,
        version=_TEXT,
        status=_STATUS,
        function=_TEXT,
        agents=_TEXTS,
        triggers={"type": ["object", "array"]},
        required_tools=_TEXTS,
        permissions={"type": ["object", "array"]},
        sops=_TEXTS,
        references=_TEXTS,
        tags=_TEXTS,
    ),
    filters={"function": "function", "agent": "agents", "status": "status", "tags": "tags"},
    links={
        "function": ("function",),
        "agents": ("agent",),
        "sops": ("sop",),
        "references": _ANYTHING,
    },
    within="function",
    tools="required_tools",
    matches=True,
    manifest=MANIFEST,
    usual=("skills", ".claude/skills", ".github/skills", ".agents/skills"),
    anywhere=True,
)

AGENT: Final = Declaration(
    scheme="agent",
    path="agents",
    shapes=(
        Shape("{name}", kind="agent", endings=_DEFINED, pages=False),
        Shape("{+rest}", kind="agent", endings=_DEFINED, pages=False, offered=False),
    ),
    what="agent",
    schema=_model(
        ("name",),
        id=_TEXT,
        name=_TEXT,
        version=_TEXT,
        status=_STATUS,
        function=_TEXT,
        role=_TEXT,
        owner=_TEXT,
        capabilities=_TEXTS,
        skills=_TEXTS,
        sops=_TEXTS,
        permissions=_OBJECT,
    ),
    filters={"function": "function", "status": "status", "skill": "skills"},
    links={
        "function": ("function",),
        "role": ("role",),
        "owner": ("role", "function"),
        "skills": ("skill",),
        "sops": ("sop",),
    },
    tools="tools",
    views=("parsed", "relations", "capabilities"),
    marks=("id", "name", "function", "capabilities", "skills", "permissions"),
    usual=("agents", ".claude/agents", ".github/agents"),
)

ORG: Final = Declaration(
    scheme="org",
    path="org",
    shapes=(
        Shape("functions/{name}", "function/{name}", kind="function", endings=_DEFINED, pages=False),
        Shape("value-streams/{name}", "value-stream/{name}", kind="value-stream", endings=_DEFINED, pages=False),
        Shape("roles/{name}", "role/{name}", kind="role", endings=_DEFINED, pages=False),
        Shape("{+rest}", kind="org", endings=_DEFINED, pages=False, offered=False),
    ),
    what="part of the organisation",
    schema=_model(
        ("name",),
        id=_TEXT,
        name=_TEXT,
        version=_TEXT,
        parent=_TEXT,
        function=_TEXT,
        functions=_TEXTS,
        value_streams=_TEXTS,
        reports_to=_TEXT,
        owner=_TEXT,
        lead=_TEXT,
        roles=_TEXTS,
        agent=_TEXT,
        agents=_TEXTS,
        sops=_TEXTS,
        skills=_TEXTS,
        stages={"type": "array", "items": _OBJECT},
        accountable_for=_TEXTS,
    ),
    filters={"type": "type", "function": "function"},
    links={
        "parent": ("function", "value-stream", "role"),
        "function": ("function",),
        "functions": ("function",),
        "value_streams": ("value-stream",),
        "reports_to": ("role",),
        "owner": ("role", "function", "agent"),
        "lead": ("role", "agent"),
        "roles": ("role",),
        "agent": ("agent",),
        "agents": ("agent",),
        "sops": ("sop",),
        "skills": ("skill",),
        "stages.function": ("function",),
        "stages.sops": ("sop",),
        "accountable_for": _ANYTHING,
    },
    above=("parent", "reports_to"),
    marks=("id", "name", "parent", "function", "reports_to", "owner"),
    usual=("org",),
)

DECLARATIONS: Final[Mapping[str, Declaration]] = {one.scheme: one for one in (SOP, DOC, SKILL, AGENT, ORG)}


def doc_with(categories: tuple[str, ...]) -> Declaration:
    """Documents whose categories are known: a file elsewhere says that it stands in the wrong folder."""
    properties = {**DOC.properties, "category": {"type": "string", "enum": [*categories]}}
    return replace(DOC, schema={**DOC.schema, "properties": properties}, marks=())


def with_options(
    usual: Declaration,
    *,
    files: tuple[str, ...] = (),
    endings: tuple[str, ...] = (),
    schema: Mapping[str, Any] | None = None,
    required: tuple[str, ...] = (),
    ids: str = "",
    titles: str = "",
    without: tuple[str, ...] = (),
) -> Declaration:
    """A kind that everybody has, as an organisation's own files want it. Raises InvalidParams for what cannot be used.

    A schema says of further keys what they must be, and every file must follow it; what it says of keys that the kind
    knows comes first.
    """
    made = replace(usual, required=required, ids=ids, titles=titles, without=without)
    if files:
        kind = usual.shapes[0].kind if usual.manifest or len({one.kind for one in usual.shapes}) == 1 else ""
        known = endings or usual.shapes[0].suffixes
        shapes = shapes_of_files(files, None, kind=kind, endings=known)
        made = replace(made, shapes=tuple(map(_of_folder, shapes)) if usual.manifest else shapes)
    elif endings:
        made = replace(made, shapes=tuple(one.ending_in(endings) for one in usual.shapes))
    if schema:
        more = _properties(schema)
        # Asked of every file now: so no longer only of those that follow the usual model.
        merged = {**schema, "type": "object", "properties": {**usual.properties, **more}}
        made = replace(made, schema=merged, marks=())
    known_names = {*made.variables, *made.properties}
    for rule in (ids, titles):
        for _, name in _IN_RULE.findall(rule):
            if name not in known_names:
                there = ", ".join(sorted(made.variables))
                raise InvalidParams(f"In {rule!r} there is no variable {name!r}; the files have {there}")
    return made


def _of_folder(shape: Shape) -> Shape:
    """A pattern of manifests is the address of their folders."""
    stem, slash, last = shape.file.text.rpartition("/")
    folder = slash and f"{last}{shape.suffixes[0]}" == MANIFEST
    return Shape(shape.pattern, stem, kind=shape.kind) if folder else shape


def own(
    scheme: str,
    path: str,
    files: str | tuple[str, ...],
    schema: Mapping[str, Any],
    address: str | None = None,
    endings: tuple[str, ...] = (),
) -> Declaration:
    """A namespace of an organisation's own. Raises InvalidParams for what cannot be used.

    Whatever the schema says of a key whose values are single words, or lists of them, can be filtered by.
    """
    properties = _properties(schema)
    several = (files,) if isinstance(files, str) else files
    shapes = shapes_of_files(several, address, kind=scheme, endings=endings or DOCUMENTS)
    simple = {key: key for key, one in properties.items() if _is_simple(one)}
    names = dict.fromkeys(name for shape in shapes for name in shape.file.names if name not in ("name", "path"))
    filters = {**simple, **{name: name for name in names}}
    return Declaration(scheme=scheme, path=path, shapes=shapes, schema={"type": "object", **schema}, filters=filters)


def check_own(
    scheme: str, path: str, files: str | tuple[str, ...], schema: Mapping[str, Any], address: str | None
) -> str:
    """What is wrong with such a declaration; empty when it can be used."""
    try:
        compile_model(own(scheme, path, files, schema, address).schema)
    except OctavoError as error:
        return str(error)
    return ""


def check_options(kind: str, **options: Any) -> str:
    """What is wrong with options of a usual kind; empty when they can be used."""
    try:
        compile_model(with_options(DECLARATIONS[kind], **options).schema)
    except OctavoError as error:
        return str(error)
    return ""


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        raise InvalidParams("The schema must be one of an object: it describes the keys of the front matter")
    if PROBLEMS in properties:
        raise InvalidParams(f"The schema must not have the key {PROBLEMS!r}: what is wrong with a file is told there")
    return properties


def _is_simple(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type", "string" if "enum" in schema else None)
    if kind == "array":
        return _is_simple(schema.get("items"))
    return kind in ("string", "integer", "number", "boolean")
