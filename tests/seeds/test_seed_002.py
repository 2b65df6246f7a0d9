"""Seed 002: prompts, with its own example, through the whole server and in both eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.prompts.test_loader import GENERATE_DOCS

from octavo.core.arguments import OwnArguments
from octavo.core.ref import Ref
from octavo.core.values import Call, Trail

pytestmark = pytest.mark.anyio

both_eras = pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
Put = Callable[[str, str | bytes], Path]

CONFIG = """
version: 1
sources:
  files: {kind: file, uris: relative, roots: [./workspace], extensions: ["*"]}
agents:
  allowed: {roles: [all]}
  denied: {}
policy:
  - {who: "*", may: [list, read, search, invoke, render, complete], what: "**"}
  - {who: denied, may: "*", what: ["file://private/*"], effect: deny}
  - {who: denied, may: "*", what: ["prompt://payroll"], effect: deny, hide: true}
toolsets: [files, prompts]
prompts: {starter: true, dirs: [./prompts], embed: 1000}
"""
OWN = CONFIG.replace("starter: true, ", "")
KEPT = OWN.replace('extensions: ["*"]', 'extensions: ["*"], cache: {ttl: 300}')
CANARY = "canary-7f3a"


def prompt(name: str, messages: Any, /, **properties: Any) -> str:
    schema = {"type": "object", "properties": properties}
    return json.dumps({"id": name, "description": name, "inputSchema": schema, "messages": messages})


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


@pytest.fixture
def workspace(put: Put) -> None:
    put("workspace/src/main.ts", "export const answer = 42;\n")
    put("workspace/src/utils.js", "export {}\n")
    put("workspace/data/sales.csv", "month,sum\nJan,7\n")
    put("workspace/large.txt", "x" * 5000)
    put(f"workspace/private/{CANARY}.txt", CANARY)
    put("workspace/private/pay.csv", f"{CANARY},1\n")
    put("workspace/private/large.txt", CANARY * 500)
    put("prompts/generate_docs.json", GENERATE_DOCS)


@both_eras
@pytest.mark.seed("P1", "P2", "P4", "P11")
async def test_the_seeds_prompt_is_listed_and_rendered(serve: Any, workspace: None, modern: bool) -> None:
    async with serve(OWN, who="allowed", modern=modern) as wire:
        (listed,) = (await wire.ask("prompts/list"))["prompts"]
        assert (listed["name"], listed["description"]) == (
            "generate_docs",
            "주어진 코드 파일에 대한 문서를 생성합니다.",
        )
        assert [(one["name"], one["required"]) for one in listed["arguments"]] == [
            ("codeFileUri", True), ("outputFormat", False),
        ]  # fmt: skip
        schema = listed["_meta"]["dev.octavo/inputSchema"]
        assert schema["properties"]["outputFormat"]["enum"] == ["markdown", "jsdoc"] and schema["required"] == [
            "codeFileUri"
        ]
        got = await wire.ask("prompts/get", name="generate_docs", arguments={"codeFileUri": "file://src/main.ts"})
        assert got["description"] == "주어진 코드 파일에 대한 문서를 생성합니다."
        system, said, resource = got["messages"]
        assert [one["role"] for one in got["messages"]] == ["user", "user", "user"]
        assert system["content"]["_meta"] == {"dev.octavo/role": "system"}
        assert system["content"]["annotations"] == {"audience": ["assistant"]}
        assert "내용을 바탕으로 markdown 형식의 문서를" in system["content"]["text"]
        assert said["content"]["text"] == "다음 코드 파일에 대한 문서를 생성해주세요:"
        shown = resource["content"]["resource"]
        assert (resource["content"]["type"], shown["uri"], shown["text"]) == (
            "resource", "file://src/main.ts", "export const answer = 42;\n",
        )  # fmt: skip


@both_eras
@pytest.mark.seed("P2")
async def test_errors_have_the_names_and_data_of_the_seed(serve: Any, workspace: None, modern: bool) -> None:
    async with serve(OWN, who="allowed", modern=modern) as wire:
        unknown = await wire.refused("prompts/get", name="nope", arguments={})
        assert (unknown["code"], unknown["message"]) == (-32602, "Unknown prompt: nope")
        assert unknown["data"] == {"promptName": "nope", "reason": "invalid_params"}
        missing = await wire.refused("prompts/get", name="generate_docs", arguments={})
        assert missing["code"] == -32602 and "codeFileUri" in missing["message"]
        assert missing["data"]["promptName"] == "generate_docs"
        arguments = {"codeFileUri": "file://src/main.ts", "outputFormat": "html"}
        wrong = await wire.refused("prompts/get", name="generate_docs", arguments=arguments)
        assert [one["path"] for one in wrong["data"]["validationErrors"]] == ["/outputFormat"]
        absent = await wire.refused("prompts/get", name="generate_docs", arguments={"codeFileUri": "file://no.ts"})
        assert absent["code"] == (-32602 if modern else -32002)
        outside = await wire.refused("prompts/get", name="generate_docs", arguments={"codeFileUri": "file://../x"})
        assert outside["code"] == -32003


@both_eras
@pytest.mark.seed("P10")
async def test_a_sensitive_prompt_is_hidden(serve: Any, workspace: None, put: Put, modern: bool) -> None:
    put("prompts/payroll.json", prompt("payroll", user({"type": "text", "text": CANARY})))
    async with serve(OWN, who="denied", modern=modern) as wire:
        assert [one["name"] for one in (await wire.ask("prompts/list"))["prompts"]] == ["generate_docs"]
        hidden = await wire.refused("prompts/get", name="payroll", arguments={})
        never = await wire.refused("prompts/get", name="payrolx", arguments={})
        assert json.dumps(hidden).replace("payroll", "payrolx") == json.dumps(never)
        asked = {"ref": {"type": "ref/prompt", "name": "payroll"}, "argument": {"name": "x", "value": ""}}
        assert "Unknown prompt" in (await wire.refused("completion/complete", **asked))["message"]
        called = await wire.ask("tools/call", name="get_prompt", arguments={"name": "payroll"})
        assert called["isError"] and CANARY not in json.dumps(called)


LEAKS = {
    "whole": ([{"type": "resource", "uri": "{{file}}"}], {"file": "file://private/pay.csv"}),
    "inside": ([{"type": "resource", "uri": "file://private/{{name}}"}], {"name": "pay.csv"}),
    "list": (
        [{"type": "resource", "uri": "{{files}}"}],
        {"files": '["file://src/main.ts", "file://private/pay.csv"]'},
    ),
    "large": ([{"type": "resource", "uri": "{{file}}"}], {"file": "file://private/large.txt"}),
    "fixed": ([{"type": "resource", "uri": "file://private/pay.csv"}], {}),
    "absolute": ([{"type": "resource", "uri": "{{file}}"}], {"file": "ABSOLUTE"}),
    "odd": ([{"type": "resource", "uri": "{{file}}"}], {"file": "file://src/%2E%2E/private/pay.csv"}),
}


@both_eras
@pytest.mark.parametrize("way", LEAKS)
@pytest.mark.seed("P4", "P7", "P9")
async def test_a_denied_file_is_never_shown_in_any_language_cached_or_not(
    serve: Any, workspace: None, put: Put, tmp_path: Path, modern: bool, way: str
) -> None:
    parts, arguments = LEAKS[way]
    arguments = {
        key: text.replace("ABSOLUTE", f"file://{tmp_path}/workspace/private/pay.csv") for key, text in arguments.items()
    }
    text = {"type": "text", "text": "{% if file %}{{ file }}{% endif %}"}
    put(
        "prompts/look.json",
        prompt(
            "look",
            {"en": user(text, *parts), "ko": user(*parts, text)},
            file={"type": "string"},
            name={"type": "string"},
            files={"type": "array", "items": {"type": "string"}},
        ),
    )
    async with serve(KEPT, who="denied", modern=modern) as wire:
        works = wire.house.works
        answers: list[Any] = []

        async def as_denied() -> None:
            for lang in ("en", "ko", "fr", "ko-KR"):
                given = {"name": "look", "arguments": {**arguments, "lang": lang}}
                answers.append(await wire.refused("prompts/get", **given))
                answers.append(await wire.refused("prompts/get", **given, _meta={"dev.octavo/locale": lang}))
                answers.append(await wire.ask("tools/call", name="get_prompt", arguments=given))
                assert answers[-1]["isError"]

        async def as_allowed() -> None:
            if way == "odd":
                return
            for lang in ("en", "ko"):
                who = works.identity.launched("allowed")
                call = Call(
                    "render",
                    Ref("prompt", ("look",)),
                    who,
                    Trail(),
                    arguments=OwnArguments({**arguments, "lang": lang}),
                )
                result = await works.ask(call)
                assert CANARY in repr(result) or way == "large"

        await as_denied()
        await as_allowed()
        await as_denied()
        await as_allowed()
        await as_denied()
        assert works.prompts._renderings.hits == (0 if way == "odd" else 2), "the second time both were kept ones"
        assert CANARY not in json.dumps(answers)


@both_eras
@pytest.mark.seed("P2")
async def test_arguments_complete_to_what_the_caller_may_see(
    serve: Any, workspace: None, put: Put, modern: bool
) -> None:
    put(
        "prompts/look.json",
        prompt(
            "look",
            user({"type": "resource", "uri": "file://{{folder}}/{{name}}"}, {"type": "resource", "uri": "{{files}}"}),
            folder={"type": "string"},
            name={"type": "string"},
            files={"type": "array", "items": {"type": "string"}},
            draft={"type": "boolean"},
            free={"type": "string"},
        ),
    )
    async with serve(OWN, who="denied", modern=modern) as wire:

        async def complete(argument: str, value: str = "", name: str = "look", **given: str) -> list[str]:
            context = {"context": {"arguments": given}} if given else {}
            asked = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": value}}
            found: list[str] = (await wire.ask("completion/complete", **asked, **context))["completion"]["values"]
            assert CANARY not in json.dumps(found) and not any("private" in one for one in found)
            return found

        docs = "generate_docs"
        assert await complete("outputFormat", "j", docs) == ["jsdoc"]
        assert await complete("codeFileUri", "", docs) == ["file://"]
        assert await complete("codeFileUri", "file://", docs) == ["file://data/", "file://large.txt", "file://src/"]
        assert await complete("codeFileUri", "file://src/ma", docs) == ["file://src/main.ts"]
        assert await complete("codeFileUri", "file://private/", docs) == []
        assert await complete("codeFileUri", "file://../", docs) == []
        assert await complete("codeFileUri", "nope://", docs) == []
        assert await complete("files", "file://data/") == ["file://data/sales.csv"]
        assert await complete("files") == ['["file://']
        assert await complete("files", '["file://src/main.ts", "file://d') == ['["file://src/main.ts", "file://data/']
        assert await complete("files", '["file://data/s') == ['["file://data/sales.csv"]']
        assert await complete("files", '["file://data/sales.csv"') == []
        assert await complete("files", "[") == []
        assert await complete("name", "", folder="src") == ["main.ts", "utils.js"]
        assert await complete("name", "", folder="private") == []
        assert await complete("folder", "") == ["data", "src"]
        assert await complete("draft", "f") == ["false"]
        assert await complete("free", "x") == []
        for number in range(150):
            put(f"workspace/many/{number}.md", "x")
        ref = {"type": "ref/prompt", "name": docs}
        asked = {"ref": ref, "argument": {"name": "codeFileUri", "value": "file://many/"}}
        many = (await wire.ask("completion/complete", **asked))["completion"]
        assert (len(many["values"]), many["hasMore"], "total" in many) == (100, True, False)


@pytest.mark.seed("P3", "P4")
async def test_a_large_resource_is_linked_and_a_list_is_expanded(serve: Any, workspace: None) -> None:
    async with serve(CONFIG, who="allowed", modern=True) as wire:
        uris = json.dumps(["file://src/main.ts", "file://large.txt"])
        got = await wire.ask("prompts/get", name="summarise", arguments={"uris": uris})
        kinds = [one["content"]["type"] for one in got["messages"]]
        assert kinds == ["text", "text", "resource", "resource_link"]
        assert (got["messages"][3]["content"]["uri"], got["messages"][3]["content"]["size"]) == (
            "file://large.txt",
            5000,
        )
        assert "2 documents" in got["messages"][1]["content"]["text"]
        many = json.dumps(["file://src/main.ts"] * 20)
        assert len((await wire.ask("prompts/get", name="summarise", arguments={"uris": many}))["messages"]) == 22


@both_eras
@pytest.mark.seed("P1", "P11")
async def test_every_type_of_content_travels(serve: Any, workspace: None, put: Put, modern: bool) -> None:
    parts = (
        {"type": "text", "text": "look and listen"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "uri": "file://data/sales.csv"},
    )
    put("prompts/all.json", prompt("all", [{"role": "assistant", "content": list(parts)}]))
    async with serve(OWN, who="allowed", modern=modern) as wire:
        got = await wire.ask("prompts/get", name="all")
        assert [one["role"] for one in got["messages"]] == ["assistant"] * 4
        assert [one["content"] for one in got["messages"][:3]] == list(parts[:3])
        assert got["messages"][3]["content"]["resource"]["text"] == "month,sum\nJan,7\n"


@both_eras
@pytest.mark.seed("P7")
async def test_a_language_is_chosen_by_argument_then_by_request(serve: Any, workspace: None, modern: bool) -> None:
    async with serve(CONFIG, who="allowed", modern=modern) as wire:
        listed = {one["name"]: one for one in (await wire.ask("prompts/list"))["prompts"]}
        assert listed["summarise"]["title"] == "Summarise"
        assert listed["summarise"]["_meta"]["dev.octavo/titles"] == {"en": "Summarise", "ko": "요약하기"}
        uris = json.dumps(["file://src/main.ts"])

        async def locale(meta: dict[str, Any] | None = None, **arguments: str) -> str:
            asked = {"name": "summarise", "arguments": {"uris": uris, **arguments}}
            got = await wire.ask("prompts/get", **asked, **({"_meta": meta} if meta else {}))
            tag: str = got["_meta"]["dev.octavo/locale"]
            assert ("요약해 주세요" in json.dumps(got, ensure_ascii=False)) is (tag == "ko")
            return tag

        assert await locale() == "en"
        assert await locale({"dev.octavo/locale": "ko-KR"}) == "ko"
        assert await locale({"dev.octavo/locale": "ko"}, lang="en") == "en"
        assert await locale({"dev.octavo/locale": ["ko"]}, lang="xx") == "en"


@both_eras
@pytest.mark.seed("P8")
async def test_a_conversation_is_begun_by_a_tool_and_used_by_a_prompt(
    serve: Any, workspace: None, modern: bool
) -> None:
    async with serve(CONFIG, who="allowed", modern=modern) as wire:

        async def converse(**arguments: Any) -> Any:
            return await wire.ask("tools/call", name="conversation", arguments=arguments)

        began = await converse(action="begin", messages=[{"role": "user", "text": "for January"}])
        handle = began["structuredContent"]["context_id"]
        await converse(action="add", context_id=handle, messages=[{"role": "assistant", "text": "noted"}])
        arguments = {"question": "How much?", "dataUris": '["file://data/sales.csv"]', "context_id": handle}
        got = await wire.ask("prompts/get", name="ask_data", arguments=arguments)
        said = [(one["role"], one["content"].get("text")) for one in got["messages"]]
        assert said[1:3] == [("user", "for January"), ("assistant", "noted")]
        shown = await converse(action="show", context_id=handle)
        assert [one["text"] for one in shown["structuredContent"]["messages"]] == ["for January", "noted"]
        works = wire.house.works
        call = Call("render", Ref("prompt", ("ask_data",)), works.identity.launched("denied"), Trail())
        with pytest.raises(Exception, match="No such conversation of yours"):
            await works.ask(call._replace(arguments=OwnArguments(arguments)))
        assert (await converse(action="end", context_id=handle))["isError"] is False
        gone = await wire.refused("prompts/get", name="ask_data", arguments=arguments)
        assert (gone["code"], gone["data"]["reason"]) == (-32602, "unknown_conversation")
        assert (await converse(action="add", messages=[]))["isError"]


@pytest.mark.seed("P12", "P11")
async def test_the_model_itself_gets_a_prompt_in_the_seeds_shape(serve: Any, workspace: None) -> None:
    async with serve(OWN, who="allowed", modern=True) as wire:
        arguments = {"name": "generate_docs", "arguments": {"codeFileUri": "file://src/main.ts"}}
        (block,) = (await wire.ask("tools/call", name="get_prompt", arguments=arguments))["content"]
        got = json.loads(block["text"])
        assert set(got) == {"description", "messages"}
        assert [one["role"] for one in got["messages"]] == ["system", "user"]
        assert [part["type"] for part in got["messages"][1]["content"]] == ["text", "resource"]
        assert got["messages"][1]["content"][1]["uri"] == "file://src/main.ts"


@pytest.mark.seed("P12", "P8")
async def test_what_a_model_is_told_of_prompts_stays_within_the_answer_of_a_tool(
    serve: Any, workspace: None, put: Put
) -> None:
    limited = CONFIG.replace("embed: 1000", "embed: 100KB") + "limits: {answer: 16KB}\n"
    put("workspace/lines.txt", "\n" * 9_000)
    async with serve(limited, who="allowed", modern=True) as wire:
        uris = ["file://large.txt", "file://lines.txt", "file://src/main.ts"]
        asked = {"name": "summarise", "arguments": {"uris": uris}}
        (block,) = (await wire.ask("tools/call", name="get_prompt", arguments=asked))["content"]
        parts = json.loads(block["text"])["messages"][1]["content"][1:]
        assert len(block["text"]) <= 16_000
        assert [(one["uri"], "text" in one) for one in parts] == list(zip(uris, (True, False, True), strict=True))
        messages = [{"role": "user", "text": f"{number}" + "\n" * 3_000} for number in range(9)]
        begun = {"action": "begin", "messages": messages}
        handle = (await wire.ask("tools/call", name="conversation", arguments=begun))["structuredContent"]["context_id"]
        show = {"action": "show", "context_id": handle}
        shown = await wire.ask("tools/call", name="conversation", arguments=show)
        assert not shown["isError"] and "9 messages\nthe latest 1 of them" in shown["content"][0]["text"]
        assert [one["text"][0] for one in shown["structuredContent"]["messages"]] == ["8"]


@both_eras
@pytest.mark.seed("P1", "P5")
async def test_a_changed_file_is_loaded_again_and_told(serve: Any, workspace: None, put: Put, modern: bool) -> None:
    async with serve(OWN, who="allowed", modern=modern) as wire:
        if modern:
            await wire.begin("subscriptions/listen", notifications={"promptsListChanged": True})
            await wire.note("notifications/subscriptions/acknowledged")
        await wire.ask("prompts/list")
        prompts = wire.house.works.prompts
        assert await prompts.refresh() is None
        put("prompts/extra.json", prompt("extra", user({"type": "text", "text": "one"})))
        assert await prompts.refresh() == []
        await wire.note("notifications/prompts/list_changed")
        assert (await wire.ask("prompts/get", name="extra"))["messages"][0]["content"]["text"] == "one"
        put("prompts/extra.json", prompt("extra", user({"type": "text", "text": "two"})))
        assert await prompts.refresh() == []
        await wire.note("notifications/prompts/list_changed")
        assert (await wire.ask("prompts/get", name="extra"))["messages"][0]["content"]["text"] == "two"
        file = put("prompts/extra.json", '{\n "id": "extra",\n broken')
        (problem,) = await prompts.refresh()
        assert (problem.path, problem.line) == (str(file), 3)
        assert (await wire.ask("prompts/get", name="extra"))["messages"][0]["content"]["text"] == "two"
        file.unlink()
        assert await prompts.refresh() == []
        await wire.note("notifications/prompts/list_changed")
        assert [one["name"] for one in (await wire.ask("prompts/list"))["prompts"]] == ["generate_docs"]


@pytest.mark.seed("P9")
async def test_a_kept_rendering_follows_template_arguments_and_resources(serve: Any, workspace: None, put: Put) -> None:
    async with serve(KEPT, who="allowed") as wire:
        prompts = wire.house.works.prompts
        kept = prompts._renderings

        async def shown(uri: str = "file://src/main.ts") -> Any:
            got = await wire.ask("prompts/get", name="generate_docs", arguments={"codeFileUri": uri})
            return got["messages"][2]["content"]["resource"]["text"], kept.hits

        assert await shown() == ("export const answer = 42;\n", 0)
        assert await shown() == ("export const answer = 42;\n", 1)
        assert await shown("file://src/utils.js") == ("export {}\n", 1)
        put("workspace/src/main.ts", "export const answer = 43;\n")
        assert await shown() == ("export const answer = 43;\n", 1)
        assert await shown() == ("export const answer = 43;\n", 2)
        put("prompts/generate_docs.json", GENERATE_DOCS.replace("다음 코드", "이 코드"))
        assert await prompts.refresh() == []
        assert await shown() == ("export const answer = 43;\n", 2)
