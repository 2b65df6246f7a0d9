"""Real clients list prompts, complete their arguments and get them, and hear when a prompt file changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.types import PromptReference
from tests.e2e.harness import ERAS, LIMIT, ROOT, Place, node_command, octavo, ran
from tests.e2e.maison_haru import BRAND, key, maison_haru
from tests.e2e.python_client import Link, connected, linked, over_http

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.seed("P1", "P6", "P7"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ERAS)

LEAVE = '["doc://policies/leave"]'
HIDDEN = '["sop://hr/grievance"]'
INSPECTOR = Path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")


@pytest.fixture
def haru(tmp_path: Path) -> Place:
    return maison_haru(tmp_path)


def looks_right(names: list[str], got: Any) -> None:
    assert {"summarise", "reviewCode", "ask_data", "generate_docs", "sop_walkthrough", "meeting_brief"} <= set(names)
    system, user, resource = got["messages"]
    assert system["content"]["_meta"] == {"dev.octavo/role": "system"}
    assert user["content"]["text"].startswith("Summarise the document below.")
    assert resource["content"]["resource"]["uri"] == "doc://policies/leave"
    assert "휴가 규정" in resource["content"]["resource"]["text"]


async def uses_prompts(link: Link, place: Place) -> None:
    client = link.client
    names = [one.name for one in (await client.list_prompts()).prompts]
    got = await client.get_prompt("summarise", {"uris": LEAVE, "lang": "en"})
    looks_right(names, got.model_dump(by_alias=True, mode="json", exclude_none=True))
    korean = await client.get_prompt("summarise", {"uris": LEAVE})
    assert korean.messages[1].content.text.startswith("아래 문서를 요약해 주세요.")
    with pytest.raises(Exception, match="Access denied to resource: sop://hr/grievance"):
        await client.get_prompt("summarise", {"uris": HIDDEN})
    completed = await client.complete(PromptReference(name="sop_walkthrough"), {"name": "sop", "value": "brand/ca"})
    assert completed.completion.values == ["brand/campaign-brief"]
    hidden = await client.complete(PromptReference(name="sop_walkthrough"), {"name": "sop", "value": "hr/"})
    assert hidden.completion.values == []
    place.edit("prompts/fresh.yaml", FRESH)
    if link.era == "legacy":
        await link.heard.next(lambda one: one.method == "notifications/prompts/list_changed")
    else:
        async with client.listen(prompts_list_changed=True):
            place.edit("prompts/fresh2.yaml", FRESH.replace("id: fresh", "id: fresh2"))
            await link.heard.next(lambda one: one.method == "notifications/prompts/list_changed")
    fresh = await client.get_prompt("fresh", {})
    assert fresh.messages[0].content.text == "새 프롬프트"


FRESH = "id: fresh\ndescription: d\nmessages:\n  - {role: user, content: [{type: text, text: 새 프롬프트}]}\n"


@both_eras
async def test_the_python_client_over_stdio(haru: Place, era: str) -> None:
    async with connected(haru, "stdio", era, agent=BRAND) as link:
        await uses_prompts(link, haru)


@both_eras
async def test_the_python_client_over_http(haru: Place, era: str) -> None:
    with haru.serve("--config", haru.base / "octavo.yaml") as server:
        async with linked(over_http(server.url, key(BRAND)), era) as link:
            await uses_prompts(link, haru)


async def test_the_client_of_fastmcp(haru: Place) -> None:
    command, *arguments = octavo("serve", "--config", haru.base / "octavo.yaml", "--as", BRAND)
    transport = StdioTransport(
        command, arguments, env=haru.environment, keep_alive=False, log_file=haru.base / "stderr.log"
    )
    async with Client(transport, timeout=LIMIT) as client:
        names = [one.name for one in await client.list_prompts()]
        got = await client.get_prompt("summarise", {"uris": ["doc://policies/leave"], "lang": "en"})
        looks_right(names, got.model_dump(by_alias=True, mode="json", exclude_none=True))


@both_eras
def test_the_typescript_client(haru: Place, clients: Path, era: str) -> None:
    options = {
        "clients": str(clients),
        "era": "auto" if era == "modern" else "legacy",
        "command": octavo("serve", "--config", haru.base / "octavo.yaml", "--as", BRAND),
        "env": haru.environment,
        "calls": [],
        "prompts": [{"name": "summarise", "arguments": {"uris": LEAVE, "lang": "en"}}],
    }
    script = ROOT / "conformance" / "clients" / "call.mjs"
    said = ran(haru, node_command(script, json.dumps(options)))
    lines = {line["what"]: line for line in map(json.loads, said.splitlines())}
    looks_right(lines["prompts"]["names"], lines["got"])


@both_eras
def test_the_inspector(haru: Place, clients: Path, era: str) -> None:
    with haru.serve("--config", haru.base / "octavo.yaml") as server:
        target = [server.url, "--transport", "http", "--header", f"Authorization: Bearer {key(BRAND)}"]

        def inspect(*method: str) -> Any:
            command = node_command(clients / INSPECTOR, "--cli", *target, "--protocol-era", era, "--method", *method)
            return json.loads(ran(haru, command))

        names = [one["name"] for one in inspect("prompts/list")["prompts"]]
        wanted = ("--prompt-name", "summarise", "--prompt-args", f"uris={LEAVE}", "lang=en")
        looks_right(names, inspect("prompts/get", *wanted))
