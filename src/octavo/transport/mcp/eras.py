"""Takes out of answers what older handshake versions of the protocol do not know."""

from __future__ import annotations

from typing import Any

# Versions are dates, so they compare as text.
_STRUCTURED = "2025-06-18"  # structuredContent, outputSchema, resource_link, title
_AUDIO = "2025-03-26"  # audio content, tool annotations


def untitled(result: dict[str, Any], key: str, version: str) -> dict[str, Any]:
    """A list of resources, templates or prompts for clients that know no titles."""
    if version >= _STRUCTURED:
        return result
    return {**result, key: [{k: v for k, v in entry.items() if k != "title"} for entry in result[key]]}


def tools(result: dict[str, Any], version: str) -> dict[str, Any]:
    if version >= _STRUCTURED:
        return result
    dropped = {"outputSchema", "title"} | (set() if version >= _AUDIO else {"annotations"})
    return {**result, "tools": [{k: v for k, v in tool.items() if k not in dropped} for tool in result["tools"]]}


def tool_result(result: dict[str, Any], version: str) -> dict[str, Any]:
    if version >= _STRUCTURED:
        return result
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    return {**kept, "content": [_block(part, version) for part in result["content"]]}


def prompt_result(result: dict[str, Any], version: str) -> dict[str, Any]:
    if version >= _STRUCTURED:
        return result
    said = [{**message, "content": _block(message["content"], version)} for message in result["messages"]]
    return {**result, "messages": said}


def _block(part: dict[str, Any], version: str) -> dict[str, Any]:
    if part["type"] == "resource_link":
        return {"type": "text", "text": f"{part['name']}: {part['uri']}"}
    if part["type"] == "audio" and version < _AUDIO:
        return {"type": "text", "text": f"[audio, {part['mimeType']}: this client's protocol version has no audio]"}
    return part
