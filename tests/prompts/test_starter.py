"""The prompts that come with Octavo: in Korean and in English, and of use in the example organisation (P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.arguments import OwnArguments
from octavo.core.errors import Forbidden
from octavo.core.ref import Ref
from octavo.core.tools import Embedded, PromptResult, Text
from octavo.core.values import Call, Trail
from octavo.prompts.loader import STARTER
from octavo.prompts.loader import load as load_prompts
from octavo.prompts.new_file import begun
from octavo.stores.state import StateDirectory
from octavo.tools.schema import compile_schema

pytestmark = pytest.mark.anyio

EXAMPLE = Path(__file__).parents[2] / "examples" / "maison-haru"
USES: dict[str, tuple[dict[str, str], list[str]]] = {
    "summarise": (
        {"uris": '["doc://product/collection-27ss", "doc://product/collection-26fw"]', "audience": "매장 직원"},
        ["doc://product/collection-27ss", "doc://product/collection-26fw"],
    ),
    "reviewCode": (
        {"codeFileUri": "skill://brand/tone-check", "guidelineUri": "doc://brand/tone-of-voice"},
        ["skill://brand/tone-check", "doc://brand/tone-of-voice"],
    ),
    "ask_data": (
        {"question": "M 사이즈 어깨는 몇 cm입니까?", "dataUris": '["doc://product/size-guide"]', "show_work": "false"},
        ["doc://product/size-guide"],
    ),
    "generate_docs": ({"codeFileUri": "skill://finance/budget-check"}, ["skill://finance/budget-check"]),
    "sop_walkthrough": ({"sop": "brand/campaign-brief", "role": "캠페인 매니저"}, ["sop://brand/campaign-brief"]),
    "meeting_brief": (
        {"topic": "27SS", "attendees": '["하루", "Mina"]', "materialUris": '["doc://product/collection-27ss"]'},
        ["doc://product/collection-27ss"],
    ),
    "campaign_brief": (
        {"campaign": "27SS", "goal": "600벌", "guideUris": '["sop://brand/campaign-brief", "doc://brand/guidelines"]'},
        ["sop://brand/campaign-brief", "doc://brand/guidelines"],
    ),
}


async def rendered(house: Octavo, name: str, **arguments: str) -> PromptResult:
    who = house.works.identity.launched("agent-brand")
    result = await house.works.ask(
        Call("render", Ref("prompt", (name,)), who, Trail(), arguments=OwnArguments(arguments))
    )
    assert isinstance(result, PromptResult)
    return result


@pytest.fixture
async def house(tmp_path: Path) -> Octavo:
    """The example with the starters alone: it has a campaign brief of its own, which goes before theirs."""
    text = (EXAMPLE / "octavo.yaml").read_text(encoding="utf-8").replace("dirs: [./handbook/prompts]", "dirs: []")
    file = tmp_path / "octavo.yaml"
    agents = ("agent-brand", "agent-finance", "agent-hr", "agent-ops", "agent-orchestrator")
    for name in agents:
        text = text.replace(f'key: "file:.keys/{name}", ', "")
    file.write_text(text.replace("./handbook", str(EXAMPLE / "handbook")), encoding="utf-8")
    return Octavo(load(file), state=StateDirectory.in_memory())


@pytest.mark.seed("P6", "P7")
@pytest.mark.parametrize("name", USES)
async def test_each_is_of_use_in_the_example_in_both_languages(house: Octavo, name: str) -> None:
    arguments, uris = USES[name]
    texts: dict[str, str] = {}
    async with house:
        for lang in ("ko", "en"):
            result = await rendered(house, name, **arguments, lang=lang)
            assert result.locale == lang
            assert [one.content.uri for one in result.messages if isinstance(one.content, Embedded)] == uris
            texts[lang] = "\n".join(one.content.text for one in result.messages if isinstance(one.content, Text))
            assert result.messages[0].role == "system" and "{{" not in texts[lang] and "{%" not in texts[lang]
            assert not any(line != line.rstrip() for line in texts[lang].splitlines())
    given = [value for value in arguments.values() if not value.startswith(("[", "doc:", "skill:", "brand/", "false"))]
    assert all(value in text for value in given for text in texts.values())
    hangul = {lang: sum("가" <= c <= "힣" for c in text) for lang, text in texts.items()}
    assert hangul["ko"] > 40 > hangul["en"]


def _elsewhere(value: str) -> str:
    if value.startswith('["') and "://" in value:
        return '["sop://hr/grievance"]'
    return "hr/grievance" if value == "brand/campaign-brief" else "sop://hr/grievance" if "://" in value else value


@pytest.mark.seed("P6")
async def test_none_shows_what_an_agent_may_not_read(house: Octavo) -> None:
    async with house:
        for name, (arguments, _) in USES.items():
            denied = {key: _elsewhere(value) for key, value in arguments.items()}
            with pytest.raises(Forbidden) as caught:
                await rendered(house, name, **denied)
            assert "고충" not in str(caught.value)


@pytest.mark.seed("P6")
def test_the_starters_hold_and_say_everything_in_both_languages() -> None:
    templates, problems = load_prompts([STARTER], compile_schema)
    assert problems == [] and sorted(one.info.name for one in templates) == sorted(USES)
    for template in templates:
        assert set(template.variants) == set(template.info.titles) == {"ko", "en"}
        assert all(argument.description for argument in template.info.arguments)


def test_an_own_prompt_goes_before_a_starter_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(begun("summarise", "나의 요약"), encoding="utf-8")
    templates, problems = load_prompts([tmp_path, STARTER], compile_schema)
    assert problems == []
    assert [one.info.title for one in templates if one.info.name == "summarise"] == ["나의 요약"]
