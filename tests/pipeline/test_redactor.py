"""The values that leave the house, and when the rules are loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.pipeline import secrets_corpus as corpus

from octavo.core.errors import NotFound, RateLimited, SourceUnavailable
from octavo.core.ref import Ref
from octavo.core.tools import PromptMessage, PromptResult, Text
from octavo.core.values import Call, Entry, Op, Page, Principal, Trail
from octavo.pipeline.redact.fold import Redact
from octavo.pipeline.redact.redactor import Redactor

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
REF = Ref.parse("doc://a")
SECRET = corpus.ALL["github-token"](corpus.Maker(3))[1]


async def through(op: Op, reply: Any) -> Any:
    async def source(call: Call) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    return await Redact(KEY)(Call(op, REF, Principal("local"), Trail(), str(REF)), source)


@pytest.mark.seed("A6")
async def test_what_a_prompt_says_is_redacted() -> None:
    told = await through("render", PromptResult(messages=(PromptMessage("user", Text(f"use {SECRET}")),)))
    assert told.messages[0].content.text.startswith("use [redacted:github-token:")


async def test_a_completion_with_a_secret_in_it_is_left_out() -> None:
    assert await through("complete", ["a.md", f"{SECRET}.md", "b.md"]) == ["a.md", "b.md"]


async def test_an_error_keeps_its_kind_and_its_facts_and_loses_the_secret() -> None:
    with pytest.raises(RateLimited) as limited:
        await through("read", RateLimited(f"slow down, {SECRET}", retry_after=3.0, uri=str(REF), query=SECRET))
    assert limited.value.retry_after == 3.0 and limited.value.data["uri"] == str(REF)
    assert SECRET not in f"{limited.value!r}{limited.value}{limited.value.data}"
    with pytest.raises(SourceUnavailable) as down:
        await through("read", SourceUnavailable("Source unavailable: notion", source="notion"))
    assert down.value.message == "Source unavailable: notion"
    absent = NotFound("nothing there", uri="doc://a")
    with pytest.raises(NotFound) as raised:
        await through("read", absent)
    assert raised.value is absent


def test_a_long_number_in_metadata_is_looked_at_as_a_number() -> None:
    redactor = Redactor(KEY, personal=["payment"])
    number = int(corpus.card(corpus.Maker(1)))
    told = redactor.value({"card": number, "count": 12, "big": 10**12, "on": True})
    assert told == {"card": redactor.text(str(number)), "count": 12, "big": 10**12, "on": True}


def test_a_value_is_hidden_for_the_name_it_has_unless_the_rule_is_left_out() -> None:
    word = "tr0ub4dor" + "3xy"
    assert Redactor(KEY).value({"db_password": word})["db_password"].startswith("[redacted:password:")
    assert Redactor(KEY, skip=["password"]).value({"db_password": word}) == {"db_password": word}


def test_an_address_is_redacted_and_most_need_no_rules_for_it() -> None:
    redactor = Redactor(KEY)
    assert redactor.address("file://docs/guide.md") == "file://docs/guide.md"
    assert not redactor.ready
    assert SECRET not in redactor.address(f"http://x/{SECRET}")
    login = "postgres://app:" + "tr0ub4dor3" + "@db/x"
    assert "tr0ub4dor3" not in redactor.address(login)
    for one in corpus.positives(1):
        if one.group.startswith("secrets") and "\n" not in one.secret:
            assert one.secret not in redactor.address(f"x://{one.text.strip()}"), one.rule


async def test_a_page_without_words_passes_as_it_is() -> None:
    plain = Page(tuple(Entry(ref=REF.child(str(n)), name=str(n)) for n in range(3)))
    assert await through("list", plain) is plain


def test_to_start_needs_no_rules() -> None:
    probe = (
        "import sys, octavo.pipeline.redact.fold as r; one = r.Redact(b'k' * 32); one.address('file://a.md');"
        "rules = 'octavo.pipeline.redact.rules';"
        "print(sorted({'re2', f'{rules}.engine', f'{rules}.book'} & set(sys.modules)));"
        "one.text('x'); print('re2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]
