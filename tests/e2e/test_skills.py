"""The skills extension through the official Python client and through raw requests: both transports, both eras."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict
from tests.e2e.harness import ERAS, LEGACY, Place, audit_records
from tests.e2e.organisation import KEYS, configure, organisation
from tests.e2e.python_client import Link, connected

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ERAS)
both_transports = pytest.mark.parametrize("transport", ("stdio", "http"))
crosswise = pytest.mark.parametrize(("transport", "era"), [("stdio", "modern"), ("http", "legacy")])

EXTENSION = "io.modelcontextprotocol/skills"
CONFIGURATION = """\
version: 1
sources:
  handbook: {kind: file, roots: [./root], expose: false}
  skills: {kind: skill, store: handbook}
  sops: {kind: sop, store: handbook}
agents:
  agent-brand: {key: "file:keys/agent-brand"}
  agent-ops: {key: "file:keys/agent-ops"}
policy:
  - {who: "*", may: [list, read], what: ["skill://*", "sop://*"]}
  - {who: agent-brand, may: "*", what: ["skill://hr/*", "sop://hr/*"], effect: deny}
limits: {per_principal: 100000/s, page: 2}
"""
FILES = {
    "skills/brand/brief-writing.yml": "id: s1\nname: 브리프\ndescription: 브리프를 쓴다.\nsteps: [묻는다., 쓴다.]\n",
    "skills/brand/letters/SKILL.md": "---\nname: letters\ndescription: Answers letters.\n---\n# Letters\n",
    "skills/brand/letters/references/tone.md": "# Tone\n",
    "skills/hr/pay.yml": "id: s2\nname: Pay\n",
    "sops/brand/brief.md": "---\nid: b\ntitle: 브리프\nversion: 1.0.0\nstatus: active\n---\n",
    "sops/hr/pay.md": "---\nid: p\ntitle: Pay\nversion: 1.0.0\nstatus: active\n---\n",
}
BRIEF, LETTERS = "skill://brand/brief-writing/SKILL.md", "skill://brand/letters/SKILL.md"


class Anything(types.Result):
    model_config = ConfigDict(extra="allow")


def handbook(place: Place) -> Path:
    organisation(place)
    for path, text in FILES.items():
        place.edit(path, text)
    return configure(place, CONFIGURATION)


async def asked(link: Link, method: str, **params: Any) -> dict[str, Any]:
    request = types.Request[dict[str, Any], str](method=method, params=params)
    result = await link.client.session.send_request(request, Anything)
    return result.model_dump(by_alias=True, exclude_none=True)


async def pages(link: Link, method: str, key: str, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        result = await asked(link, method, **params, **({"cursor": cursor} if cursor else {}))
        found += result[key]
        cursor = result.get("nextCursor")
        if cursor is None:
            return found


@both_transports
@both_eras
@pytest.mark.seed("O4", "O14")
async def test_a_client_finds_its_skills_and_verifies_every_file(place: Place, transport: str, era: str) -> None:
    handbook(place)
    async with connected(place, transport, era, agent="agent-brand") as link:
        announced = link.client.server_capabilities.extensions
        assert announced and announced[EXTENSION] == {"directoryRead": True}
        skills = await pages(link, "skills/list", "skills")
        assert [skill["uri"] for skill in skills] == [BRIEF, LETTERS]
        assert skills[1]["frontmatter"] == {"name": "letters", "description": "Answers letters."}
        assert [file["uri"] for file in skills[1]["resources"]] == [LETTERS, "skill://brand/letters/references/tone.md"]
        for skill in skills:
            got = await asked(link, "skills/get", uri=skill["uri"])
            assert got["skill"] == skill
            for file in skill["resources"]:
                raw = (await link.text(file["uri"])).encode()
                assert (file["digest"], file["size"]) == (f"sha256:{hashlib.sha256(raw).hexdigest()}", len(raw))
        assert (await link.text(BRIEF)).startswith('---\nname: "brief-writing"\ndescription: "브리프를 쓴다."\n')
        assert await link.text("skill://brand/brief-writing") == FILES["skills/brand/brief-writing.yml"]


@crosswise
@pytest.mark.seed("O14", "F6")
async def test_a_client_walks_down_directories(place: Place, transport: str, era: str) -> None:
    handbook(place)
    async with connected(place, transport, era, agent="agent-brand") as link:

        async def children(uri: str) -> dict[str, str]:
            found = await pages(link, "resources/directory/read", "resources", uri=uri)
            return {one["uri"]: one["mimeType"] for one in found}

        assert await children("sop://") == {"sop://brand": "inode/directory"}
        assert await children("sop://brand") == {"sop://brand/brief": "text/markdown"}
        assert await children("skill://brand/letters") == {
            LETTERS: "text/markdown",
            "skill://brand/letters/references": "inode/directory",
        }
        assert await children("skill://brand/brief-writing") == {BRIEF: "text/markdown"}


@crosswise
@pytest.mark.seed("O13")
async def test_what_is_no_skill_or_no_directory_is_told_in_one_way(place: Place, transport: str, era: str) -> None:
    handbook(place)
    refused = {
        "skills/get": ("skill://none/none/SKILL.md", "skill://hr/pay/SKILL.md", "skill://brand/letters"),
        "resources/directory/read": ("sop://hr", "sop://none", "sop://../x"),
    }
    told = {
        ("skills/get", "nonsense"): "invalid_params",
        ("resources/directory/read", LETTERS): "invalid_params",
        ("resources/directory/read", "sop://brand/brief"): "invalid_params",
        ("resources/directory/read", "nope://x"): "unknown_scheme",
    }
    async with connected(place, transport, era, agent="agent-brand") as link:
        for method, uris in refused.items():
            for uri in uris:
                with pytest.raises(MCPError) as raised:
                    await asked(link, method, uri=uri)
                assert (raised.value.error.code, raised.value.error.data) == (-32602, {"uri": uri}), (method, uri)
        for (method, uri), reason in told.items():
            with pytest.raises(MCPError) as raised:
                await asked(link, method, uri=uri)
            assert (raised.value.error.code, raised.value.error.data["reason"]) == (-32602, reason), (method, uri)
        for method, params in {"skills/list": {}, "resources/directory/read": {"uri": "sop://"}}.items():
            with pytest.raises(MCPError) as raised:
                await asked(link, method, **params, cursor="made up")
            assert (raised.value.error.code, raised.value.error.data) == (-32602, {"reason": "invalid_cursor"})


@both_eras
def test_without_skills_the_extension_is_neither_announced_nor_answered(place: Place, era: str) -> None:
    handbook(place)
    without = CONFIGURATION.replace("  skills: {kind: skill, store: handbook}\n", "")
    file = configure(place, without.replace('"skill://hr/*", ', ""))
    with place.pipe("--config", file, "--as", "agent-ops", era="modern" if era == "modern" else "unopened") as pipe:
        who = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        answer = pipe.ask("server/discover") if era == "modern" else pipe.ask("initialize", who)
        assert EXTENSION not in answer["result"]["capabilities"]["extensions"]
        assert pipe.ask("skills/list")["error"]["code"] == -32601
        assert pipe.ask("resources/directory/read", {"uri": "sop://brand"})["result"]["resources"]


@pytest.mark.seed("F9")
def test_each_request_has_one_record_and_its_children(place: Place) -> None:
    file = handbook(place)
    with place.serve("--config", file) as server:
        client = server.asking(KEYS["agent-brand"])
        result = client.ask("skills/list").result
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (60_000, "private", "complete")
        client.ask("skills/get", {"uri": "skill://hr/pay/SKILL.md"})
        client.ask("resources/directory/read", {"uri": "sop://"})
        unknown = client.ask("skills/none")
        assert unknown.status == 404
    records = [one for one in audit_records(place.base) if one.get("op") != "ping"]
    roots = [(one["op"], one["uri"], one["outcome"]) for one in records if "parent" not in one and "uri" in one]
    assert roots == [
        ("skills", "*://", "ok"),
        ("skills", "skill://hr/pay/SKILL.md", "not_found"),
        ("directory", "sop://", "ok"),
    ]
    assert {one["op"] for one in records if "parent" in one} == {"list", "read", "folders"}
