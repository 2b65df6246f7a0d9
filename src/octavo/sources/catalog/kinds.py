"""The catalogs that everybody has, and how an organisation declares one of its own. All of it is data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.skill import MANIFEST
from octavo.sources.catalog.card import PROBLEMS
from octavo.sources.catalog.declaration import Declaration, Shape
from octavo.sources.catalog.model import compile_model

_TEXT: Final = {"type": "string", "minLength": 1}
_TEXTS: Final = {"type": "array", "items": {"type": "string", "minLength": 1}}
_OBJECT: Final = {"type": "object"}
_ANYTHING: Final = ("sop", "doc", "skill", "agent", "function", "value-stream", "role")
_STATUS: Final = {"type": "string", "enum": ["draft", "active", "deprecated"]}


def _model(required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


SOP: Final = Declaration(
    scheme="sop",
    path="sops",
    shapes=(Shape("{function}/{name}.md", kind="sop"),),
    what="SOP",
    schema=_model(
        ("id", "title", "version", "status"),
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
)

DOC: Final = Declaration(
    scheme="doc",
    path="docs",
    shapes=(Shape("{category}/{name}.md", kind="doc"),),
    what="document",
    schema=_model(
        ("id", "title"),
        id=_TEXT,
        title=_TEXT,
        version=_TEXT,
        category={"enum": ["policies", "brand", "product", "onboarding"], "type": "string"},
        last_updated={"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"},
        owner=_TEXT,
        tags=_TEXTS,
    ),
    filters={"category": "category", "tags": "tags", "owner": "owner"},
    links={"owner": ("function", "role", "agent")},
    within="category",
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
        ("id", "name"),
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
)

AGENT: Final = Declaration(
    scheme="agent",
    path="agents",
    shapes=(Shape("{name}.yml", kind="agent"),),
    what="agent",
    schema=_model(
        ("id", "name"),
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
)

ORG: Final = Declaration(
    scheme="org",
    path="org",
    shapes=(
        Shape("functions/{name}.yml", "function/{name}", kind="function"),
        Shape("value-streams/{name}.yml", "value-stream/{name}", kind="value-stream"),
        Shape("roles/{name}.yml", "role/{name}", kind="role"),
    ),
    what="part of the organisation",
    schema=_model(
        ("id", "name"),
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
)

DECLARATIONS: Final[Mapping[str, Declaration]] = {one.scheme: one for one in (SOP, DOC, SKILL, AGENT, ORG)}


def doc_with(categories: tuple[str, ...]) -> Declaration:
    """Documents in other categories than the usual ones."""
    properties = {**DOC.properties, "category": {"type": "string", "enum": [*categories]}}
    return replace(DOC, schema={**DOC.schema, "properties": properties})


def own(scheme: str, path: str, files: str, schema: Mapping[str, Any], address: str | None = None) -> Declaration:
    """A namespace of an organisation's own. Raises InvalidParams for what cannot be used.

    Whatever the schema says of a key whose values are single words, or lists of them, can be filtered by.
    """
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        raise InvalidParams("The schema must be one of an object: it describes the keys of the front matter")
    if PROBLEMS in properties:
        raise InvalidParams(f"The schema must not have the key {PROBLEMS!r}: what is wrong with a file is told there")
    shape = Shape(files, address, kind=scheme)
    simple = {key: key for key, one in properties.items() if _is_simple(one)}
    filters = {**simple, **{name: name for name in shape.file.names if name not in ("name", "path")}}
    return Declaration(scheme=scheme, path=path, shapes=(shape,), schema={"type": "object", **schema}, filters=filters)


def check_own(scheme: str, path: str, files: str, schema: Mapping[str, Any], address: str | None) -> str:
    """What is wrong with such a declaration; empty when it can be used."""
    try:
        compile_model(own(scheme, path, files, schema, address).schema)
    except OctavoError as error:
        return str(error)
    return ""


def _is_simple(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type", "string" if "enum" in schema else None)
    if kind == "array":
        return _is_simple(schema.get("items"))
    return kind in ("string", "integer", "number", "boolean")
