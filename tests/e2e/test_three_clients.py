"""Three real clients, each in one session: they call a tool, get a prompt, and answer a question for their user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult
from tests.e2e.harness import ERAS, LIMIT, ROOT, Place, conformance, node_command, octavo

pytestmark = [
    pytest.mark.slow,
    pytest.mark.seed("T4", "T5", "P6"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ERAS)

CONFIGURATION = """\
version: 1
sources:
  docs: {kind: file, roots: [./root]}
toolsets: [files, people]
prompts: {starter: true, locales: [ko]}
"""
READ = {"target": "docs/한국/소개.md"}
SUMMARISE = {"uris": '["file://docs/한국/소개.md"]'}
QUESTION = {"question": "무슨 색?", "choices": ["red", "blue"]}
TEXT = "안녕하세요, 옥타보입니다.\n"
MODES = {"modern": "auto", "legacy": "legacy"}


def serving(place: Place) -> list[str]:
    file = place.base / "octavo.yaml"
    file.write_text(CONFIGURATION, encoding="utf-8")
    return octavo("serve", "--config", file)


def hold(read: Any, prompt: Any, answer: Any, asked: list[str]) -> None:
    """What a client got, as JSON."""
    assert TEXT.strip() in read["content"][0]["text"]
    _, said, shown = prompt["messages"]
    assert "요약해 주세요" in said["content"]["text"] and shown["content"]["resource"]["text"] == TEXT
    assert answer["structuredContent"] == {"action": "accept", "content": {"answer": "blue"}}
    assert asked == ["local says: 무슨 색?"]


def plain(model: Any) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@both_eras
@pytest.mark.anyio
async def test_the_python_client(place: Place, era: str) -> None:
    command, *arguments = serving(place)
    asked: list[str] = []

    async def user(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "blue"})

    with (place.base / "stderr.log").open("w+", encoding="utf-8") as log:
        server = StdioServerParameters(command=command, args=arguments, env=place.environment)
        streams: Any = stdio_client(server, errlog=log)
        async with mcp.Client(
            streams, mode=MODES[era], elicitation_callback=user, read_timeout_seconds=LIMIT
        ) as client:
            read = await client.call_tool("read", READ)
            prompt = await client.get_prompt("summarise", SUMMARISE)
            answer = await client.call_tool("ask_user", QUESTION)
    hold(plain(read), plain(prompt), plain(answer), asked)


@pytest.mark.anyio
async def test_the_client_of_fastmcp(place: Place) -> None:
    command, *arguments = serving(place)
    asked: list[str] = []

    async def user(message: str, kind: Any, params: Any, context: Any) -> dict[str, str]:
        asked.append(message)
        return {"answer": "blue"}

    log = place.base / "stderr.log"
    transport = StdioTransport(command, arguments, env=place.environment, keep_alive=False, log_file=log)
    async with fastmcp.Client(transport, timeout=LIMIT, elicitation_handler=user) as client:
        read = await client.call_tool_mcp("read", READ)
        prompt = await client.get_prompt("summarise", SUMMARISE)
        answer = await client.call_tool("ask_user", QUESTION)
    hold(plain(read), plain(prompt), {"structuredContent": answer.structured_content}, asked)


@both_eras
def test_the_typescript_client(place: Place, clients: Path, era: str) -> None:
    options = {
        "clients": str(clients),
        "era": MODES[era],
        "command": serving(place),
        "env": dict(place.environment),
        "calls": [{"name": "read", "arguments": READ}, {"name": "ask_user", "arguments": QUESTION}],
        "prompts": [{"name": "summarise", "arguments": SUMMARISE}],
        "answer": {"answer": "blue"},
    }
    place.environment |= {"PATH": conformance().environment()["PATH"]}
    program = ROOT / "conformance" / "clients" / "call.mjs"
    with place.start(*node_command(program, json.dumps(options))) as running:
        assert running.process.wait(3 * LIMIT) == 0, running.log.text
        running.out.end()
        lines = [json.loads(line) for line in running.out.text.splitlines()]
    read, answer = (line for line in lines if line["what"] == "called")
    (prompt,) = (line for line in lines if line["what"] == "got")
    hold(read, prompt, answer, [line["message"] for line in lines if line["what"] == "asked"])
