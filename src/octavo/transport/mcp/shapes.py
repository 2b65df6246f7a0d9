"""Our values as the protocol writes them. Plain dictionaries: the SDK path hands them to the SDK's
models, the hot lane encodes them itself, and both say the same."""

from __future__ import annotations

import base64
from typing import Any

from octavo.core.skill import Skill
from octavo.core.tools import Audio, Block, Embedded, Image, Link, PromptInfo, PromptMessage, Text, ToolInfo
from octavo.core.values import Content, Entry, Template
from octavo.transport.mcp import wire_names

_MOST_TOLD = 500_000  # that Claude Code takes
_WIRE_ANNOTATIONS = ("audience", "priority", "lastModified")


def resource(entry: Entry) -> dict[str, Any]:
    shape: dict[str, Any] = {"uri": str(entry.ref), "name": entry.name, "mimeType": entry.mime_type}
    if entry.title is not None:
        shape["title"] = entry.title
    if entry.description is not None:
        shape["description"] = entry.description
    if entry.size is not None:
        shape["size"] = entry.size
    annotations = {k: v for k, v in entry.annotations.items() if k in _WIRE_ANNOTATIONS}
    if isinstance(priority := annotations.get("priority"), int):
        annotations["priority"] = float(priority)  # as the SDK writes it
    if annotations:
        shape["annotations"] = annotations
    meta: dict[str, Any] = {}
    if entry.metadata:
        meta[wire_names.METADATA] = dict(entry.metadata)
    others = {k: v for k, v in entry.annotations.items() if k not in _WIRE_ANNOTATIONS}
    if others:
        meta[wire_names.ANNOTATIONS] = others
    if meta:
        shape["_meta"] = meta
    return shape


def contents(content: Content, uri: str) -> dict[str, Any]:
    shape: dict[str, Any] = {"uri": uri, "mimeType": content.entry.mime_type}
    if isinstance(content.body, str):
        shape["text"] = content.body
    else:
        shape["blob"] = base64.b64encode(content.body).decode("ascii")
    if meta := contents_meta(content):
        shape["_meta"] = meta
    return shape


def contents_meta(content: Content) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if content.entry.metadata:
        meta[wire_names.METADATA] = dict(content.entry.metadata)
    if content.etag:
        meta[wire_names.ETAG] = content.etag
    if content.encoding:
        meta[wire_names.ENCODING] = content.encoding
    return meta


def skill(one: Skill) -> dict[str, Any]:
    return {
        "uri": str(one.ref),
        "frontmatter": dict(one.front_matter),
        "resources": [{"uri": str(file.ref), "digest": file.digest, "size": file.size} for file in one.files],
    }


def template(offered: Template) -> dict[str, Any]:
    shape: dict[str, Any] = {"uriTemplate": offered.uri_template, "name": offered.name}
    if offered.description is not None:
        shape["description"] = offered.description
    if offered.mime_type is not None:
        shape["mimeType"] = offered.mime_type
    if offered.parameters:
        shape["_meta"] = {wire_names.PARAMETERS: dict(offered.parameters)}
    return shape


def tool(info: ToolInfo) -> dict[str, Any]:
    hints = info.hints
    shape: dict[str, Any] = {
        "name": info.name,
        "description": info.description,
        "inputSchema": dict(info.input_schema),
        "annotations": {
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        },
    }
    if info.title is not None:
        shape["title"] = info.title
        shape["annotations"]["title"] = info.title
    if info.output_schema is not None:
        shape["outputSchema"] = dict(info.output_schema)
    if info.permissions:
        shape["_meta"] = {wire_names.PERMISSIONS: list(info.permissions)}
    if info.answer:
        shape["_meta"] = {**shape.get("_meta", {}), wire_names.RESULT_SIZE: min(info.answer, _MOST_TOLD)}
    return shape


def prompt(info: PromptInfo) -> dict[str, Any]:
    shape: dict[str, Any] = {"name": info.name, "description": info.description}
    if info.title is not None:
        shape["title"] = info.title
    if info.arguments:
        shape["arguments"] = [
            {"name": a.name, "required": a.required, **({"description": a.description} if a.description else {})}
            for a in info.arguments
        ]
    if info.input_schema is not None:
        shape["_meta"] = {wire_names.INPUT_SCHEMA: dict(info.input_schema)}
    if info.titles:
        shape["_meta"] = {**shape.get("_meta", {}), wire_names.TITLES: dict(info.titles)}
    if info.metadata:
        shape["_meta"] = {**shape.get("_meta", {}), wire_names.METADATA: dict(info.metadata)}
    return shape


def message(said: PromptMessage) -> dict[str, Any]:
    """The wire knows two roles: a system message is a user message in its place, marked on its block."""
    content = block(said.content)
    if said.role == "system":
        content["_meta"] = {**content.get("_meta", {}), wire_names.ROLE: "system"}
        content["annotations"] = {"audience": ["assistant"]}
        return {"role": "user", "content": content}
    return {"role": said.role, "content": content}


def block(part: Block) -> dict[str, Any]:
    match part:
        case Text():
            shape: dict[str, Any] = {"type": "text", "text": part.text}
            if part.meta:
                shape["_meta"] = dict(part.meta)
            return shape
        case Image():
            return {"type": "image", "data": base64.b64encode(part.data).decode("ascii"), "mimeType": part.mime_type}
        case Audio():
            return {"type": "audio", "data": base64.b64encode(part.data).decode("ascii"), "mimeType": part.mime_type}
        case Embedded():
            return {"type": "resource", "resource": contents(part.content, part.uri)}
        case Link():
            return {"type": "resource_link", **resource(part.entry), "uri": part.uri}
