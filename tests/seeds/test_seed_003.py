"""Seed 003: the organisation's resources on the wire: answers, errors, permissions, granularity of events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from octavo.core.errors import Forbidden, NotFound, OctavoError, RateLimited, SourceUnavailable
from octavo.transport.mcp.codes import Codes

pytestmark = pytest.mark.anyio

SOPS = """
sources:
  handbook: {kind: file, roots: [./sops], extensions: [.md], expose: false}
  sops: {kind: sop, store: handbook, path: ""}
agents:
  agent-brand: {roles: [marketing]}
policy:
  - {who: agent-brand, may: [list, read, watch], what: "sop://*"}
  - {who: agent-brand, may: "*", what: "sop://hr/*", effect: deny}
"""
UPDATED = "notifications/resources/updated"
BRIEF = """---
schema_version: "1.0"
id: sop-brand-campaign-brief
title: 캠페인 브리프 작성
version: %s
status: active
function: func-brand
agent: agent-brand
tags: [brand, campaign, creative]
---
# 본문
"""


@pytest.mark.seed("O2", "O9")
@pytest.mark.parametrize("modern", [False, True])
async def test_the_example_answer_has_its_name_metadata_and_text(serve: Any, put: Any, modern: bool) -> None:
    put("sops/brand/campaign-brief.md", BRIEF % "1.2.0")
    metadata = {
        "id": "sop-brand-campaign-brief",
        "version": "1.2.0",
        "status": "active",
        "function": "func-brand",
        "agent": "agent-brand",
        "tags": ["brand", "campaign", "creative"],
    }
    async with serve(SOPS, who="agent-brand", modern=modern) as wire:
        (listed,) = await wire.listed()
        (content,) = (await wire.ask("resources/read", uri="sop://brand/campaign-brief"))["contents"]
    assert (listed["uri"], listed["name"], listed["mimeType"]) == (
        "sop://brand/campaign-brief",
        "캠페인 브리프 작성",
        "text/markdown",
    )
    assert listed["_meta"]["dev.octavo/metadata"] == content["_meta"]["dev.octavo/metadata"] == metadata
    assert (content["uri"], content["mimeType"], content["text"]) == (
        "sop://brand/campaign-brief",
        "text/markdown",
        BRIEF % "1.2.0",
    )


@pytest.mark.seed("O1")
@pytest.mark.parametrize("modern", [False, True])
async def test_an_unknown_query_key_is_refused(serve: Any, put: Any, modern: bool) -> None:
    put("sops/brand/campaign-brief.md", BRIEF % "1.2.0")
    async with serve(SOPS, who="agent-brand", modern=modern) as wire:
        refused = await wire.refused("resources/read", uri="sop://brand/campaign-brief?colour=red")
        old = await wire.refused("resources/read", uri="sop://brand/campaign-brief?version=1.0.0")
    assert (refused["code"], refused["data"]["reason"]) == (-32602, "invalid_params")
    assert (old["code"], old["message"]) == (
        -32602,
        "sop://brand/campaign-brief has no such version; it tells 1.2.0",
    )


@pytest.mark.seed("O13", "O14")
async def test_the_error_of_the_example_comes_as_it_stands_there(serve: Any) -> None:
    sop = {"kind": "memory", "scheme": "sop", "resources": {"hr/salary-policy": {"text": "secret"}}}
    deny = {"who": "*", "may": "*", "what": "sop://hr/*", "effect": "deny"}
    allow = {"who": "*", "may": "*", "what": "**"}
    configuration = {"sources": {"sop": sop}, "agents": {"agent-brand": {}}, "policy": [allow, deny]}
    async with serve(json.dumps(configuration), who="agent-brand") as wire:
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "sop://hr/salary-policy"}}
        answer = await wire.send(message)
    assert answer["error"]["data"].pop("reason") == "forbidden", "ours, beside the seed's"
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {
            "code": -32003,
            "message": "Access denied to resource: sop://hr/salary-policy",
            "data": {"agent": "agent-brand", "required_permission": "read", "resource": "sop://hr/*"},
        },
    }


@pytest.mark.seed("O13")
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (NotFound("Resource not found: sop://x", uri="sop://x"), -32002, "Resource not found: sop://x"),
        (Forbidden("Access denied to resource: sop://x"), -32003, "Access denied to resource: sop://x"),
        (RateLimited(retry_after=1.0), -32004, "Rate limit exceeded"),
        (SourceUnavailable("Source unavailable: sop", source="sop"), -32005, "Source unavailable: sop"),
    ],
)
def test_the_four_codes_of_the_seed(error: OctavoError, code: int, message: str) -> None:
    wire = Codes(strict=False).encode(error, modern=False)
    assert (wire.code, wire.message) == (code, message)


@pytest.mark.seed("O10")
@pytest.mark.parametrize("pattern", ["sop://*", "sop://brand/*", "sop://brand/campaign-brief"])
async def test_namespace_path_and_resource_can_be_subscribed_to(serve: Any, put: Any, pattern: str) -> None:
    put("sops/brand/campaign-brief.md", BRIEF % "1.1.0")
    put("sops/hr/onboarding.md", "x")
    async with serve(SOPS, who="agent-brand") as wire:
        await wire.ask("resources/subscribe", uri=pattern)
        put("sops/hr/onboarding.md", "changed, and not for this agent")
        put("sops/brand/campaign-brief.md", BRIEF % "1.2.0")
        note = await wire.note(UPDATED)
    event = note["params"]["_meta"]["dev.octavo/event"]
    assert (event["type"], event["uri"]) == ("resource/updated", "sop://brand/campaign-brief")
    assert event["timestamp"].endswith("Z") and event["changes"] == {"version": ["1.1.0", "1.2.0"]}


@pytest.mark.seed("O10")
async def test_created_and_deleted_are_told_too(serve: Any, put: Any) -> None:
    put("sops/brand/campaign-brief.md", "x")

    async def told(wire: Any) -> tuple[str, str]:
        event = (await wire.note(UPDATED))["params"]["_meta"]["dev.octavo/event"]
        return event["type"], event["uri"]

    async with serve(SOPS, who="agent-brand") as wire:
        await wire.ask("resources/subscribe", uri="sop://brand/*")
        file = put("sops/brand/new.md", "x")
        assert await told(wire) == ("resource/created", "sop://brand/new")
        file.unlink()
        assert await told(wire) == ("resource/deleted", "sop://brand/new")


@pytest.mark.seed("O14")
async def test_an_agent_sees_no_trace_of_what_it_may_not_read(serve: Any, put: Any) -> None:
    put("sops/brand/campaign-brief.md", "x")
    put("sops/hr/onboarding.md", "x")
    async with serve(SOPS, who="agent-brand") as wire:
        assert [entry["uri"] for entry in await wire.listed()] == ["sop://brand/campaign-brief"]
        assert (await wire.refused("resources/subscribe", uri="sop://hr/*"))["code"] == -32003
