"""The tools that ask people: three real clients answer, in both eras, and without forms somebody else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult, ErrorData
from tests.e2e.harness import LIMIT, ROOT, Place, conformance, node_command, octavo

pytestmark = [
    pytest.mark.slow,
    pytest.mark.seed("T4", "T5"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ("modern", "legacy"))

QUESTION = {"question": "Which colour, 무슨 색?", "choices": ["red", "blue"]}
ASKED = "local says: Which colour, 무슨 색?"
ANSWERED = {"action": "accept", "content": {"answer": "blue"}}


def serving(place: Place) -> list[str]:
    file = place.base / "octavo.yaml"
    file.write_text("version: 1\ntoolsets: [people]\n", encoding="utf-8")
    return octavo("serve", "--config", file)


@both_eras
@pytest.mark.anyio
async def test_the_python_client_answers(place: Place, era: str) -> None:
    command, *arguments = serving(place)
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        fields = params.requested_schema["properties"]
        if "rating" in fields:
            return ElicitResult(action="accept", content={"rating": 5})
        return ElicitResult(action="accept", content={"answer": "blue", "further": 1} if fields else {"further": 1})

    with (place.base / "stderr").open("w+", encoding="utf-8") as log:
        server = StdioServerParameters(command=command, args=arguments, env=place.environment)
        mode = "auto" if era == "modern" else "legacy"
        async with Client(
            stdio_client(server, errlog=log), mode=mode, elicitation_callback=answer, read_timeout_seconds=LIMIT
        ) as client:
            told = await client.call_tool("ask_user", QUESTION)
            assert told.structured_content == ANSWERED
            rated = await client.call_tool("feedback", {"about": "The poem"})
            assert rated.structured_content == {"action": "accept", "content": {"rating": 5}}
            seen = await client.call_tool("notify", {"message": "All is done."})
            assert seen.structured_content == {"seen": True}
    assert asked == [ASKED, "local says: The poem", "local says: All is done."]


@pytest.mark.parametrize("way", ("fails", "never fits"))
@pytest.mark.anyio
async def test_a_client_that_cannot_ask_after_all_is_one_without_forms(place: Place, way: str) -> None:
    command, *arguments = serving(place)
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult | ErrorData:
        asked.append(params.message)
        return ErrorData(code=-1, message="no") if way == "fails" else ElicitResult(action="accept", content={"x": "y"})

    with (place.base / "stderr").open("w+", encoding="utf-8") as log:
        server = StdioServerParameters(command=command, args=arguments, env=place.environment)
        async with Client(
            stdio_client(server, errlog=log), mode="legacy", elicitation_callback=answer, read_timeout_seconds=LIMIT
        ) as client:
            told = await client.call_tool("ask_user", QUESTION)
        log.seek(0)
        assert "Traceback" not in log.read()
    if way == "fails":
        assert told.is_error and told.meta["dev.octavo/error"]["data"]["reason"] == "input_required"
    else:
        assert told.structured_content == {"action": "cancel", "content": {}} and len(asked) == 3


@both_eras
def test_the_typescript_client_answers(place: Place, clients: Path, era: str) -> None:
    options = {
        "clients": str(clients),
        "era": "auto" if era == "modern" else "legacy",
        "command": serving(place),
        "env": place.environment,
        "calls": [{"name": "ask_user", "arguments": QUESTION}],
        "answer": {"answer": "blue"},
    }
    place.environment |= {"PATH": conformance().environment()["PATH"]}
    program = ROOT / "conformance" / "clients" / "call.mjs"
    with place.start(*node_command(program, json.dumps(options))) as running:
        asked = json.loads(running.out.wait_for(r'^\{"what":"asked".*')[0])
        told = json.loads(running.out.wait_for(r'^\{"what":"called".*')[0])
        assert running.process.wait(LIMIT) == 0, running.log.text
    assert asked["message"] == ASKED and told["structuredContent"] == ANSWERED


@pytest.mark.anyio
async def test_the_client_of_fastmcp_answers(place: Place) -> None:
    command, *arguments = serving(place)

    async def answer(message: str, kind: Any, params: Any, context: Any) -> dict[str, str]:
        assert message == ASKED
        return {"answer": "blue"}

    transport = StdioTransport(command, arguments, env=place.environment, keep_alive=False)
    async with FastClient(transport, timeout=LIMIT, elicitation_handler=answer) as client:
        assert (await client.call_tool("ask_user", QUESTION)).structured_content == ANSWERED


@both_eras
def test_without_forms_a_question_waits_for_whoever_looks(place: Place, era: str) -> None:
    _, _, _, *target = serving(place)
    with place.pipe(*target[1:], era=era) as pipe:
        asking = {"name": "ask_user", "arguments": QUESTION}
        refused = pipe.ask("tools/call", asking)["result"]
        assert refused["isError"]
        error = refused["_meta"]["dev.octavo/error"]["data"]
        assert error["reason"] == "input_required"
        listed = json.loads(place.run("questions", "list", "--json").stdout)["questions"]
        assert [one["id"] for one in listed] == [error["question"]] and listed[0]["question"] == ASKED
        wrong = place.run("questions", "answer", error["question"], "answer=green")
        assert wrong.returncode == 1 and "no answer" in wrong.stderr
        slip = place.run("questions", "answer", error["question"], "answer=blue", "colour=1")
        assert slip.returncode == 1 and "no answer" in slip.stderr
        assert place.run("questions", "answer", error["question"], "answer=blue").returncode == 0
        assert pipe.ask("tools/call", asking)["result"]["structuredContent"] == ANSWERED
        again = pipe.ask("tools/call", asking)["result"]["_meta"]["dev.octavo/error"]["data"]
        assert again["question"] != error["question"]  # an answer counts once
        assert place.run("questions", "decline", again["question"]).returncode == 0
        declined = pipe.ask("tools/call", asking)["result"]["structuredContent"]
        assert declined == {"action": "decline", "content": {}}
        shown = pipe.ask("tools/call", {"name": "notify", "arguments": {"message": "Done\u001b[2J"}})["result"]
        assert shown["structuredContent"] == {"seen": False}
        seen = place.run("questions", "list").stdout
        assert "local says: Done\\u001b[2J" in seen and "\u001b" not in seen


def test_what_no_form_can_show_is_refused_in_words(place: Place) -> None:
    _, _, _, *target = serving(place)
    fields: list[dict[str, Any]] = [
        {"inner": {"type": "object"}},
        {"password": {"type": "string"}},
        {"x": {"type": "string", "pattern": "(a+)+"}},
        {"x": {"type": "array", "items": {"type": "string"}}},
        {f"x{number}": {"type": "string"} for number in range(21)},
    ]
    with place.pipe(*target[1:]) as pipe:
        for wrong in fields:
            asked = {"name": "ask_user", "arguments": {"question": "?", "fields": wrong}}
            told = pipe.ask("tools/call", asked)["result"]
            assert told["isError"] and told["_meta"]["dev.octavo/error"]["data"]["reason"] == "invalid_params"
        for secret in ("What is your password?", "비밀번호를 알려 주세요."):
            told = pipe.ask("tools/call", {"name": "ask_user", "arguments": {"question": secret}})["result"]
            assert told["isError"] and "secrets" in told["content"][0]["text"]
