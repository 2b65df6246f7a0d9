"""`search` with kind ranked (B6, O2): the documents of all sources by words, as their caller may see them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sources.documents.build import docx

from octavo.app import Octavo
from octavo.app.configuration import load, load_text
from octavo.core.errors import Forbidden, InvalidParams, NotFound
from octavo.stores.process_files import ProcessFile

pytestmark = pytest.mark.anyio

CONFIGURATION = """
sources:
  store: {kind: file, roots: [./work/handbook], extensions: [.md, .yml], expose: false}
  sops: {kind: sop, store: store, path: sops}
  skills: {kind: skill, store: store, path: skills}
  files: {kind: file, uris: relative, roots: [./work/files]}
  notes: {kind: memory, scheme: note, resources: {hello: {text: "예산 메모, a note on budgets"}}}
"""
RULES = """
agents: {agent-brand: {}}
policy:
  - {who: agent-brand, may: [list, read, search], what: ["sop://*", "file://*"]}
  - {who: agent-brand, may: "*", what: "sop://hr/*", effect: deny}
"""


def sop(title: str, text: str, *, function: str = "brand", status: str = "active", tags: str = "[]") -> str:
    facts = f"title: {title}\nversion: 1.0.0\nstatus: {status}\nfunction: func-{function}\ntags: {tags}\n"
    return f"---\n{facts}---\n# {title}\n\n{text}\n"


FILES: dict[str, str | bytes] = {
    "handbook/sops/brand/campaign-brief.md": sop("캠페인 브리프", "캠페인 예산을 정한다.", tags="[campaign]"),
    "handbook/sops/brand/old-brief.md": sop("옛 브리프", "캠페인 예산 초안", status="deprecated"),
    "handbook/sops/hr/salary-policy.md": sop("급여 정책", "연봉과 예산은 대외비", function="hr"),
    "handbook/skills/finance/budget-check.yml": "name: budget-check\ntitle: 예산 점검\nfunction: func-finance\n",
    "files/budget-2026.md": "# Budget 2026\n\nThe campaign budget is approved by finance. 예산\n",
    "files/logo.png": b"\x89PNG\r\n\x1a\n" + bytes(64),
}


async def uris(tools: Any, query: str, **asked: Any) -> list[str]:
    return [one["uri"] for one in (await tools.data("search", query=query, **asked))["results"]]


@pytest.mark.parametrize("form", ["absolute", "relative"])
async def test_files_of_every_root_are_found_once_and_as_they_are_now(serve: Any, form: str) -> None:
    two = f"sources: {{files: {{kind: file, uris: {form}, roots: [./work/a, ./work/b]}}}}"
    files = {"a/both.md": "zebra one", "b/both.md": "zebra two", "b/own.md": "zebra three"}
    tools = await serve(two, files)
    both, own = ("file:///a/both.md", "file:///b/own.md") if form == "absolute" else ("file://both.md", "file://own.md")
    await until_found(tools, [both, "file:///b/both.md", own], "zebra")
    tools.put("b/own.md", "giraffe")
    await until_found(tools, [own], "giraffe")
    await until_found(tools, [both, "file:///b/both.md"], "zebra")
    (tools.root / "a/both.md").unlink()
    left = "file:///b/both.md" if form == "absolute" else "file://both.md"
    await until_found(tools, [left], "zebra")
    (tools.root / "b/own.md").unlink()
    await until_found(tools, [], "giraffe")


async def until_found(tools: Any, expected: list[str], query: str, **asked: Any) -> None:
    with anyio.fail_after(30):
        while sorted(await uris(tools, query, kind="ranked", **asked)) != sorted(expected):
            pass


@pytest.mark.seed("B6", "O2")
async def test_documents_of_every_source_are_found_at_once_and_the_best_comes_first(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    result = await tools("search", query="캠페인 예산")
    found = result.structured["results"]
    assert found[0]["uri"] == "sop://brand/campaign-brief"
    assert {one["uri"].partition("://")[0] for one in found} == {"sop", "skill", "file", "note"}
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    best = found[0]
    assert (best["title"], best["metadata"]["status"]) == ("캠페인 브리프", "active")
    assert {best["snippet"][begin:end] for begin, end in best["marks"]} >= {"캠페인", "예산"}
    said = result.content[0].text
    assert said.startswith("sop://brand/campaign-brief  캠페인 브리프  (") and "«예산»" in said
    assert await uris(tools, "logo") == ["file://logo.png"]


@pytest.mark.seed("B6", "O2")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"target": "sop://brand"}, ["campaign-brief", "old-brief"]),
        ({"target": "sop://brand?status=active"}, ["campaign-brief"]),
        ({"target": "sop://", "where": {"function": "hr"}}, ["salary-policy"]),
        ({"target": "sop://", "where": {"function": "func-brand", "status": ["Active", "draft"]}}, ["campaign-brief"]),
        ({"where": {"tags": "campaign"}}, ["campaign-brief"]),
        ({"target": "note://"}, ["hello"]),
        ({"target": "budget-2026.md", "kind": "ranked"}, ["budget-2026.md"]),
    ],
)
async def test_a_search_is_narrowed_by_scheme_place_and_metadata(
    serve: Any, asked: dict[str, Any], found: list[str]
) -> None:
    tools = await serve(CONFIGURATION, FILES)
    assert sorted(uri.rpartition("/")[2] for uri in await uris(tools, "예산", **asked)) == found


async def test_what_is_meant_without_a_kind(serve: Any) -> None:
    """Lines, where files are meant or only they are there; else the best documents."""
    tools = await serve(CONFIGURATION, FILES)
    assert "files" in await tools.data("search", query="예산", target="file://")
    assert "files" in await tools.data("search", query="예산", regex=True)
    assert "results" in await tools.data("search", query="예산")
    with pytest.raises(NotFound):
        await tools("search", query="예산", target="sop://nothing")


async def test_over_files_alone_lines_are_found_as_ever_and_rank_on_demand(serve: Any) -> None:
    tools = await serve(files={"a.md": "budget\n", ".gitignore": "b.md\n", "b.md": "budget\n"})
    assert [one["uri"] for one in (await tools.data("search", query="budget"))["files"]] == ["file://a.md"]
    assert await uris(tools, "budget", kind="ranked") == ["file://a.md"]
    tools.put("b.md", "budget twice\n")
    tools.put("c.md", "budget three times\n")
    await until_found(tools, ["file://a.md", "file://c.md"], "budget")


async def test_pages_follow_each_other_and_a_cursor_belongs_to_its_query(serve: Any) -> None:
    tools = await serve(files={f"{n:02}.md": f"예산 {'말 ' * n}" for n in range(25)})
    got: list[str] = []
    asked: dict[str, Any] = {}
    while True:
        page = await tools.data("search", query="예산", kind="ranked", limit=7, **asked)
        got += [one["uri"] for one in page["results"]]
        if "cursor" not in page:
            break
        asked = {"cursor": page["cursor"]}
    assert len(got) == len(set(got)) == 25
    for wrong in ({"query": "다른"}, {"query": "예산", "kind": "content"}):
        with pytest.raises(InvalidParams):
            await tools("search", **{"kind": "ranked", **wrong, **asked})


async def test_an_answer_stays_within_its_budget_and_goes_on(serve: Any) -> None:
    limited = "sources: {work: {kind: file, uris: relative, roots: [./work]}}\nlimits: {answer: 16KB}"
    tools = await serve(limited, {f"{n:02}-{'가' * 60}.md": f"예산 {'말' * 200}" for n in range(40)})
    result = await tools("search", query="예산", kind="ranked", limit=100)
    assert len(json.dumps(result.structured, ensure_ascii=False).encode()) < 16_000
    assert result.structured["results"] and "cursor" in result.structured
    again = await tools.data("search", query="예산", kind="ranked", limit=100, cursor=result.structured["cursor"])
    first = {one["uri"] for one in result.structured["results"]}
    assert again["results"] and first.isdisjoint(one["uri"] for one in again["results"])


@pytest.mark.seed("B6")
async def test_who_may_not_read_a_document_does_not_find_it_by_any_word(serve: Any) -> None:
    tools = await serve(CONFIGURATION + RULES, FILES)
    assert "sop://hr/salary-policy" not in await uris(tools, "예산", who="agent-brand")
    for query in ("연봉", "급여 정책", "salary-policy"):
        assert await uris(tools, query, who="agent-brand") == []
    assert await uris(tools, "예산", who="agent-brand", where={"function": "hr"}) == []
    with pytest.raises(Forbidden):
        await tools("search", query="예산", who="agent-brand", target="note://")
    with pytest.raises(Forbidden):
        await tools("search", query="예산")  # local has no rule


@pytest.mark.seed("B6")
async def test_what_is_created_changed_renamed_or_deleted_is_found_so(serve: Any) -> None:
    tools = await serve(CONFIGURATION, FILES)
    assert await uris(tools, "추첨") == []
    tools.put("handbook/sops/brand/lottery.md", sop("추첨", "추첨 절차"))
    tools.put("files/lottery.md", "추첨\n")
    await until_found(tools, ["sop://brand/lottery", "file://lottery.md"], "추첨")
    (tools.root / "files/lottery.md").rename(tools.root / "files/raffle.md")
    await until_found(tools, ["sop://brand/lottery", "file://raffle.md"], "추첨")
    tools.put("handbook/sops/brand/lottery.md", sop("제비뽑기", "뽑는다"))
    (tools.root / "files/raffle.md").unlink()
    await until_found(tools, [], "추첨")


async def test_a_link_is_found_where_it_leads_alone(serve: Any) -> None:
    tools = await serve(files={"secret/plan.md": "추첨\n", "other.md": "다른 글\n"})
    (tools.root / "public.md").symlink_to("secret/plan.md")
    assert await uris(tools, "추첨", kind="ranked") == ["file://secret/plan.md"]
    (tools.root / "other.md").unlink()
    (tools.root / "other.md").symlink_to("secret/plan.md")
    await until_found(tools, [], "다른 글")
    assert await uris(tools, "추첨", kind="ranked") == ["file://secret/plan.md"]


async def test_a_secret_is_neither_found_nor_kept(serve: Any, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    tools = await serve(files={"notes.md": f"배포 토큰 {secret}\n"})
    (found,) = (await tools.data("search", query="배포 토큰", kind="ranked"))["results"]
    assert "[redacted:" in found["snippet"]
    assert await uris(tools, secret, kind="ranked") == []
    await tools.octavo.searching.close()
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".octavo" / "search").iterdir())
    assert "배포".encode() in kept and secret.encode() not in kept and secret.lower().encode() not in kept


def configured(home: Path, rest: str) -> Any:
    text = f'version: 1\nsources: {{work: {{kind: file, uris: relative, roots: [./work], extensions: ["*"]}}}}\n{rest}'
    return load_text(text, file=home / "octavo.yaml", environ={})


async def test_a_reload_with_other_rules_holds_for_the_next_search(serve: Any, tmp_path: Path) -> None:
    tools = await serve(files={"a.md": "예산 코드 HARU-1234\n", "hr/b.md": "예산\n"})
    assert len(await uris(tools, "예산", kind="ranked")) == 2
    assert await uris(tools, "haru-1234", kind="ranked")
    rules = 'policy: [{who: "*", may: [list, read, search, invoke], what: ["file://a.md", "tool://*"]}]\n'
    await tools.octavo.reload(configured(tmp_path, rules))
    assert await uris(tools, "예산", kind="ranked") == ["file://a.md"]
    await tools.octavo.reload(configured(tmp_path, "redact: {extra: [{name: code, pattern: 'HARU-[0-9]+'}]}\n"))
    assert await uris(tools, "haru-1234", kind="ranked") == []
    await until_found(tools, ["file://a.md", "file://hr/b.md"], "예산")
    (tools.root / "hr/b.md").unlink()
    await until_found(tools, ["file://a.md"], "예산")


async def test_the_index_outlives_the_process_and_only_what_changed_is_read_again(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = await serve(files={"a.md": "예산\n", "b.md": "예산\n"})
    assert len(await uris(tools, "예산", kind="ranked")) == 2
    await tools.octavo.searching.close()
    tools.put("b.md", "예산 둘\n")
    from octavo.app.search_documents import Documents

    reads: list[str] = []
    read = Documents.read

    async def counted(self: Documents, ref: Any, entry: Any) -> Any:
        reads.append(str(ref))
        return await read(self, ref, entry)

    monkeypatch.setattr(Documents, "read", counted)
    async with Octavo(load(tmp_path / "octavo.yaml", environ={})) as again:
        assert await again.searching.complete() == 2
    assert reads == ["file://b.md"]


async def test_of_two_processes_each_has_an_index_of_its_own(tmp_path: Path) -> None:
    first, second = ProcessFile.take(tmp_path / "search"), ProcessFile.take(tmp_path / "search")
    assert first is not None and second is not None and first.path != second.path
    first.leave()
    third = ProcessFile.take(tmp_path / "search")
    assert third is not None and third.path == first.path
    assert ProcessFile.take(tmp_path / "search", most=2) is None
    second.leave()
    third.leave()


async def test_more_documents_than_may_be_are_left_out_which_is_said_to_who_sees_all(serve: Any) -> None:
    files = {f"{n}.md": "예산\n" for n in range(5)}
    sources = "sources: {work: {kind: file, uris: relative, roots: [./work]}}\nsearch: {documents: 3, text: 1KB}\n"
    tools = await serve(sources, {**files, "0.md": "예산 " * 1000})
    found = await tools("search", query="md", kind="ranked")
    assert sorted(one["uri"] for one in found.structured["results"]) == ["file://0.md", "file://1.md", "file://2.md"]
    assert found.structured["incomplete"] and "search.documents" in found.content[0].text
    assert "file://0.md" not in await uris(tools, "예산", kind="ranked")


async def test_it_can_be_switched_off(serve: Any) -> None:
    tools = await serve(CONFIGURATION + "search: {enabled: false}\n", FILES)
    offered = tools.octavo.works.tools.tool("search")
    assert "ranked" not in json.dumps(offered.input_schema)
    with pytest.raises(InvalidParams):
        await tools("search", query="예산", kind="ranked")


HOSTILE = {
    "ten thousand words": " ".join(f"word{n}" for n in range(10_000)),
    "one long word": "가" * 100_000,
    "operators": 'a" OR 1=1 -- NEAR(b) AND NOT c* ^d {e}: "*" (((((',
    "control characters": "예\x00산\x1b[2J\u202e\x7f \ufeff예산 \ud800",
    "many quotes": '"' * 5000 + '"예산"' * 500,
    "many dates": "2025-03-14 " * 2000,
    "a regular expression": "(a+)+$" * 500,
}


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_query_is_answered_or_refused_and_bounded(serve: Any, query: str) -> None:
    tools = await serve(files={f"{n}.md": f"예산 {'a' * 200} word{n}\n" * 20 for n in range(30)})
    try:
        result = await tools("search", query=query, kind="ranked", limit=100)
        assert len(result.content[0].text.encode("utf-8", "surrogatepass")) < 64_000
    except InvalidParams:
        pass
    assert (await uris(tools, "word7", kind="ranked"))[0] == "file://7.md"


@pytest.mark.parametrize(
    "asked",
    [
        {"query": "..."},
        {"query": "예산", "where": {str(n): "x" for n in range(60)}},
        {"query": "예산", "where": {"status": ["x"] * 60}},
        {"query": "예산", "where": {"status": {"deep": 1}}},
        {"query": "예산", "target": "nowhere://x"},
        {"query": "예산", "target": "sop://" + "?a=b&" * 100},
    ],
)
async def test_what_cannot_be_asked_is_refused(serve: Any, asked: dict[str, Any]) -> None:
    tools = await serve(CONFIGURATION, FILES)
    with pytest.raises(InvalidParams):
        await tools("search", kind="ranked", **asked)


def test_nothing_of_it_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("예산\n", encoding="utf-8")
    program = f"""
import asyncio, sys
from pathlib import Path
from tests.sources.documents.build import docx

from octavo.app import Octavo
from octavo.app.configuration import zero
from octavo.core.values import EVERYTHING, Call, Trail
from octavo.core.ref import Ref
from octavo.stores.state import StateDirectory

async def main():
    async with Octavo(zero(Path({str(tmp_path)!r})), state=StateDirectory.in_memory()) as house:
        who = house.works.identity.launched(None)
        await house.works.ask(Call("read", Ref.parse("file://a.md"), who, Trail()))
        await house.works.ask(Call("list", EVERYTHING, who, Trail()))
        print(sorted(name for name in sys.modules if name == "sqlite3" or name.startswith("octavo.search")))

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


PAGES: dict[str, str | bytes] = {
    "guide/cron.md": "---\ntitle: 크론잡\n---\n정해진 시간에 일을 시작합니다.\n",
    "guide/README.md": "이 폴더의 안내\n",
    "guide/other.md": "# Making pages\n\nHow to make a page, and what a page is.\n",
}


@pytest.mark.seed("B6")
async def test_a_question_over_files_is_answered_by_the_best_documents_and_said_so(serve: Any) -> None:
    tools = await serve(files=PAGES)
    result = await tools("search", query="CronJob은 어떻게 만들기")
    (best, *_) = result.structured["results"]
    assert (best["uri"], best["title"]) == ("file://guide/cron.md", "크론잡")
    assert result.structured["instead"] == "ranked"
    assert result.content[0].text.startswith("[no line says exactly this")


async def test_a_line_that_says_it_is_given_as_ever(serve: Any) -> None:
    tools = await serve(files=PAGES)
    told = await tools.data("search", query="일을 시작합니다")
    assert [one["uri"] for one in told["files"]] == ["file://guide/cron.md"]
    for asked in ({"kind": "content"}, {"word": True}, {"include": ["*.md"]}):
        assert await tools.data("search", query="cron how", **asked) == {"files": []}
    assert await tools.data("search", query="zzqx") == {"files": []}


@pytest.mark.parametrize(
    "filled",
    [
        {"regex": False}, {"word": False}, {"context": 0}, {"include": []}, {"exclude": []}, {"case": ""},
        {"case": False}, {"where": {}},
        {"regex": False, "word": False, "context": 0, "include": [], "exclude": [], "case": "", "where": {},
         "kind": None, "cursor": "", "target": ""},
    ],
)  # fmt: skip
async def test_what_is_filled_with_its_default_is_not_given(serve: Any, filled: dict[str, Any]) -> None:
    tools = await serve(files=PAGES)
    for query in ("CronJob은 어떻게 만들기", "일을 시작합니다"):
        assert await tools.data("search", query=query, **filled) == await tools.data("search", query=query)
    for asked in ({"query": "예산"}, {"query": "예산", "target": "sop://"}, {"query": "예산", "kind": "ranked"}):
        tools = await serve(CONFIGURATION, FILES)
        assert await uris(tools, **{**filled, **asked}) == await uris(tools, **asked)


async def test_where_there_is_no_rank_a_question_finds_no_line(serve: Any) -> None:
    rules = """
    sources: {work: {kind: file, uris: relative, roots: [./work]}}
    agents: {guest: {}}
    policy: [{who: guest, may: [list, read, search], what: "file://*"}]
    redact: {principals: {guest: [email]}}
    """
    tools = await serve(rules, PAGES)
    assert await tools.data("search", who="guest", query="CronJob은 어떻게 만들기") == {"files": []}
    tools = await serve(files=PAGES)
    assert await tools.data("search", query="}{ ::") == {"files": []}


async def test_the_ranked_answer_to_a_question_goes_on_by_its_cursor(serve: Any) -> None:
    tools = await serve(files={f"{n}.md": f"# Page {n}\n\nA budget, and then the approval.\n" for n in range(7)})
    seen: list[str] = []
    asked: dict[str, Any] = {}
    while True:
        told = await tools.data("search", query="approval of budget", limit=3, **asked)
        seen += [one["uri"] for one in told["results"]]
        if "cursor" not in told:
            break
        asked = {"cursor": told["cursor"]}
    assert sorted(seen) == sorted(f"file://{n}.md" for n in range(7))


async def test_a_plain_page_is_called_by_its_title_its_heading_or_its_folder(serve: Any) -> None:
    tools = await serve(files=PAGES)
    told = await tools.data("search", query="크론잡 안내 page", kind="ranked")
    assert {one["uri"]: one["title"] for one in told["results"]} == {
        "file://guide/cron.md": "크론잡",
        "file://guide/README.md": "guide",
        "file://guide/other.md": "Making pages",
    }


@pytest.mark.seed("B6")
async def test_documents_of_other_programs_are_found_by_their_text(serve: Any) -> None:
    word = docx("<w:p><w:r><w:t>연간 추첨 계획</w:t></w:r></w:p>")
    tools = await serve(files={"plan.docx": word, "broken.docx": b"no archive", "a.md": "다른 글\n"})
    assert await uris(tools, "추첨", kind="ranked") == ["file://plan.docx"]
    assert await uris(tools, "broken", kind="ranked") == ["file://broken.docx"]


async def test_a_secret_in_such_a_document_is_not_found_either(serve: Any) -> None:
    word = docx("<w:p><w:r><w:t>열쇠 AKIAQ3EGRJ5XTWMZPBR7</w:t></w:r></w:p>")
    tools = await serve(files={"plan.docx": word})
    (found,) = (await tools.data("search", query="열쇠", kind="ranked"))["results"]
    assert "AKIAQ3EGRJ5XTWMZPBR7" not in found["snippet"]
    assert await uris(tools, "AKIAQ3EGRJ5XTWMZPBR7", kind="ranked") == []


async def test_files_named_as_text_whose_bytes_are_none_are_said_where_nothing_is_found(serve: Any) -> None:
    files = FILES | {"files/cut.md": b"# Zebracorn\n\0\0 of the zebracorn\n", "files/app.bin": b"zebracorn\0\0"}
    tools = await serve(CONFIGURATION, files)
    note = "[1 file named as text whose bytes are none, as with a NUL: not searched, found by name alone]"
    for asked in ({"kind": "ranked"}, {"target": "file://"}, {}):
        assert await tools.text("search", query="zebracorn", **asked) == f"Nothing was found\n{note}", asked
        assert (await tools.data("search", query="zebracorn", **asked))["unread"] == 1, asked
    assert await uris(tools, "cut", kind="ranked") == ["file://cut.md"]
    assert "unread" not in await tools.data("search", query="zebracorn", kind="ranked", target="sop://")
    tools.put("files/cut.md", "# Zebracorn\n")
    with anyio.fail_after(30):
        while "unread" in (told := await tools.data("search", query="zebracorn", kind="ranked")):
            pass
    assert [one["uri"] for one in told["results"]] == ["file://cut.md"]


async def test_who_may_not_find_a_file_is_not_told_that_its_bytes_are_no_text(serve: Any) -> None:
    tools = await serve(
        CONFIGURATION + RULES.replace('sop://*", "file://*', "sop://*"), FILES | {"files/cut.md": b"a\0"}
    )
    assert await tools.text("search", query="zebracorn", kind="ranked", who="agent-brand") == "Nothing was found"
