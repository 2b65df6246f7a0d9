"""Prompts in several languages: which one is chosen, and what lists tell (P7)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.core.arguments import OwnArguments
from octavo.core.errors import InvalidParams
from octavo.core.languages import accepted, chosen
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Trail
from octavo.prompts.registry import PromptRegistry
from octavo.tools.schema import compile_schema
from octavo.transport.mcp.channel import McpChannel

pytestmark = pytest.mark.anyio


@pytest.mark.seed("P7")
@pytest.mark.parametrize(
    "offered, wanted, preferred, found",
    [
        (("en", "ko"), ("ko",), (), "ko"),
        (("en", "ko"), ("KO-kr",), (), "ko"),
        (("en", "ko"), ("fr", "ko"), (), "ko"),
        (("en", "ko"), ("fr",), ("ko", "en"), "ko"),
        (("en", "ko"), ("fr",), ("de",), "en"),
        (("en-GB", "ko"), ("en-US",), (), "en-GB"),
        (("en-GB", "ko"), ("en",), (), "en-GB"),
        (("zh-Hant-TW", "zh"), ("zh-Hant-HK",), (), "zh"),
        (("", "ko"), ("en",), (), ""),
        (("", "ko"), ("ko",), (), "ko"),
        (("en",), ("",), (), "en"),
        (("en", "ko"), ("ko-" + "a-" * 1_000_000,), (), "ko"),
    ],
)
def test_the_nearest_language_is_chosen(offered: Any, wanted: Any, preferred: Any, found: str) -> None:
    assert chosen(offered, wanted, preferred) == found


@pytest.mark.parametrize(
    "header, found",
    [
        ("ko-KR,ko;q=0.9,en;q=0.8", ["ko-KR", "ko", "en"]),
        ("en;q=0.1, ko;q=0.7, fr;q=0", ["ko", "en"]),
        ("*, ;q=x, en;q=nope, <script>", []),
        ("", []),
        (",".join(["ko"] * 100_000), ["ko"] * 10),
    ],
)
def test_a_header_tells_languages_by_weight(header: str, found: list[str]) -> None:
    assert accepted(header) == found


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


class Speaks:
    wire = None

    def __init__(self, *locales: str) -> None:
        self.locales = locales

    async def progress(self, *_: Any) -> None: ...


async def text(registry: PromptRegistry, name: str = "p", speaks: tuple[str, ...] = (), **arguments: str) -> Any:
    call = Call("render", Ref("prompt", (name,)), Principal("x"), Trail(), arguments=OwnArguments(arguments))
    result = await registry.render(call._replace(channel=Speaks(*speaks)))
    return result.locale, result.description, result.messages[0].content.text


def put(folder: Path, name: str, **body: Any) -> None:
    (folder / name).write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")


def loaded(folder: Path, *locales: str) -> PromptRegistry:
    registry = PromptRegistry(compile_schema, locales=locales)
    assert registry.load([folder]) == []
    return registry


@pytest.mark.seed("P7")
async def test_one_file_says_it_in_several_languages(tmp_path: Path) -> None:
    title, description = {"en": "Hello", "ko": "인사"}, {"en": "Greets.", "ko": "인사합니다."}
    put(
        tmp_path,
        "p.json",
        id="p",
        title=title,
        description=description,
        messages={"en": said("Hi"), "ko": said("안녕")},
    )
    registry = loaded(tmp_path)
    assert await text(registry) == ("en", "Greets.", "Hi")
    assert await text(registry, speaks=("ko-KR", "en")) == ("ko", "인사합니다.", "안녕")
    assert await text(registry, speaks=("ko",), lang="en-AU") == ("en", "Greets.", "Hi")
    assert await text(registry, lang="fr") == ("en", "Greets.", "Hi")
    assert await text(loaded(tmp_path, "fr", "ko")) == ("ko", "인사합니다.", "안녕")
    info, korean = registry.prompt("p"), loaded(tmp_path, "ko").prompt("p")
    assert info is not None and korean is not None
    assert (info.title, korean.title, dict(info.titles)) == ("Hello", "인사", title)
    assert [(one.name, one.required) for one in info.arguments] == [("lang", False)]


@pytest.mark.seed("P7")
async def test_a_file_of_its_own_says_it_in_another_language(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    put(tmp_path, "p.json", id="p", locale="en", description="Greets.", inputSchema=schema, messages=said("Hi {{who}}"))
    put(tmp_path, "p.ko.json", id="p", title="인사", description="인사합니다.", messages=said("{{who}}님 안녕"))
    (tmp_path / "p.fr.yaml").write_text(
        "description: Salue.\nmessages:\n  - {role: user, content: [{type: text, text: 'Salut {{who}}'}]}\n",
        encoding="utf-8",
    )
    registry = loaded(tmp_path)
    assert registry.names == ("p",)
    assert await text(registry, who="Haru") == ("en", "Greets.", "Hi Haru")
    assert await text(registry, who="하루", lang="ko") == ("ko", "인사합니다.", "하루님 안녕")
    assert await text(registry, who="Haru", lang="fr") == ("fr", "Salue.", "Salut Haru")


@pytest.mark.seed("P5", "P7")
@pytest.mark.parametrize(
    "file, body, says",
    [
        ("p.ko.json", {"description": "d", "messages": said("{{nope}}")}, "not declared"),
        ("p.ko.json", {"description": "d", "messages": said("x"), "inputSchema": {}}, "unknown key 'inputSchema'"),
        ("p.ko.json", {"id": "q", "description": "d", "messages": said("x")}, "a translation has the id of its prompt"),
        ("q.json", {"id": "q", "description": "d", "messages": {"korean": said("x")}}, "no language tag"),
        ("q.json", {"id": "q", "description": "d", "messages": {}}, "at least one language"),
        ("q.json", {"id": "q", "description": {"fr": "d"}, "messages": {"ko": said("x")}}, "description is in fr"),
        ("q.json", {"id": "q", "description": {"ko": "d"}, "messages": said("x")}, "by language only where"),
        ("q.json", {"id": "q", "locale": "?", "description": "d", "messages": said("x")}, "locale is a language tag"),
    ],
)
def test_what_is_wrong_with_a_language_is_said_of_its_file(
    tmp_path: Path, file: str, body: dict[str, Any], says: str
) -> None:
    put(tmp_path, "good.json", id="good", description="d", messages=said("x"))
    if file.startswith("p."):
        put(tmp_path, "p.json", id="p", description="d", messages=said("x"))
    put(tmp_path, file, **body)
    registry = PromptRegistry(compile_schema)
    (problem,) = registry.load([tmp_path])
    assert (Path(problem.path).name, says in problem.reason) == (file, True), problem
    assert registry.names == (("good", "p") if file.startswith("p.") else ("good",)), "only that language is left out"


async def test_a_prompt_in_one_language_takes_no_lang(tmp_path: Path) -> None:
    put(tmp_path, "p.json", id="p", description="d", messages=said("x"))
    registry = loaded(tmp_path)
    assert (await text(registry, speaks=("ko",)))[0] == ""
    with pytest.raises(InvalidParams, match="lang: is not an argument"):
        await text(registry, lang="ko")


@pytest.mark.seed("P7")
@pytest.mark.parametrize(
    "meta, header, found",
    [
        ({"dev.octavo/locale": "ko-KR"}, "en;q=0.5, fr", ["ko-KR", "fr", "en"]),
        ({"dev.octavo/locale": "no tag"}, "en", ["en"]),
        ({"dev.octavo/locale": 3}, None, []),
        (None, None, []),
    ],
)
def test_a_request_says_its_language_in_meta_or_in_its_header(meta: Any, header: str | None, found: list[str]) -> None:
    request = None if header is None else SimpleNamespace(headers={"accept-language": header})
    context: Any = SimpleNamespace(params=None if meta is None else {"_meta": meta}, request=request)
    assert McpChannel(context, None, lambda _: None, None).locales == found
