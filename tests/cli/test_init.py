"""`octavo init`: what it makes of folders as they lie there, and where it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.test_terminal import terminal

from octavo.cli._progress import _unseen
from octavo.cli.proposal.folder import look

if TYPE_CHECKING:
    from conftest import Run

SKILL = "---\nname: {name}\ndescription: Does {name} when somebody asks for it.\n---\n# {name}\n"


def filled(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def company(empty: Path) -> Path:
    """Documents, procedures, skills, a prompt and code, as they lie in many repositories."""
    return filled(
        empty / "company",
        {
            "README.md": "# The company\n\nSee [leave](team/leave.md).\n",
            "team/leave.md": "# Leave\n\nHow much leave there is.\n",
            "team/pay.md": "# Pay\n",
            "product/roadmap.md": "# Roadmap\n",
            "ops/runbooks/disk-full.md": "# Disk full\n",
            "ops/runbooks/db/slow.md": "# Slow database\n",
            ".claude/skills/triage/SKILL.md": SKILL.format(name="triage"),
            ".github/prompts/review.prompt.md": "---\ndescription: Reviews.\n---\nReview it.\n",
            ".github/ISSUE_TEMPLATE.md": "# Issue\n",
            "src/app.py": "print()\n",
            "node_modules/left-pad/README.md": "# left-pad\n",
        },
    )


def begun(run: Run, folder: Path, *options: str) -> Any:
    result = run("init", folder, "--yes", "--json", *options)
    assert result.exit_code == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def test_it_finds_what_there_is_and_what_it_writes_passes_check(run: Run, company: Path) -> None:
    found = begun(run, company)
    assert {one["scheme"]: (one["path"], one["entries"]) for one in found["sources"]} == {
        "sop": ("ops/runbooks", 2),
        "doc": ("", 4),
        "skill": (".claude/skills", 1),
    }
    assert (found["files"], found["prompts"]) == (["src"], [".github/prompts"])
    checked = run("check", "--config", company / "octavo.yaml")
    assert (checked.exit_code, checked.stderr) == (0, "")


def test_three_agents_see_list_and_find_what_the_proposal_says(run: Run, company: Path) -> None:
    found = begun(run, company)
    os.chdir(company)
    assert len(found["agents"]) == 3
    for agent in found["agents"]:
        listed = json.loads(run("ls", "--json", "--as", agent["id"]).stdout)["resources"]
        assert len(listed) == sum(agent["sees"].values()) == agent["readable"] == agent["findable"]
        assert run("cat", agent["examples"][0], "--as", agent["id"]).exit_code == 0
    first, *others = found["agents"]
    assert all(sum(one["sees"].values()) < sum(first["sees"].values()) for one in others)
    assert "doc://team/leave" in run("search", "leave", "--as", first["id"]).stdout
    addresses = run("ls", "--as", first["id"]).stdout
    assert "left-pad" not in addresses and "ISSUE" not in addresses and "octavo.yaml" not in addresses
    assert "skill://triage" in addresses and "file:///src/app.py" in addresses


def test_the_file_explains_itself_and_holds_no_key(run: Run, company: Path) -> None:
    found = begun(run, company, "--agents", "alpha,beta,gamma,delta")
    text = (company / "octavo.yaml").read_text(encoding="utf-8")
    assert text == found["text"] and text.count("#") >= 8
    assert [one["id"] for one in found["agents"]] == ["alpha", "beta", "gamma", "delta"]
    assert "key:" not in text and "octavo keys new" in text and "search" in text


def test_an_author_may_write_drafts_and_nothing_else(run: Run, company: Path) -> None:
    begun(run, company, "--write")
    os.chdir(company)
    assert run("check").stderr == ""
    shown = [one["name"] for one in json.loads(run("tools", "--json", "--as", "agent-author").stdout)["tools"]]
    assert "write" in shown
    shown = [one["name"] for one in json.loads(run("tools", "--json", "--as", "agent-reader").stdout)["tools"]]
    assert "write" not in shown and "search" in shown
    made = run("tools", "test", "write", "target=draft://new.md", "content=# New", "--as", "agent-author")
    assert made.exit_code == 0, made.output
    assert (company / "drafts" / "new.md").is_file()
    assert run("explain", "agent-author", "write", "doc://team/leave").exit_code == 1
    assert run("explain", "agent-reader", "write", "draft://new.md").exit_code == 1


def test_the_whole_folder_of_the_example_is_understood(run: Run, folder: Path) -> None:
    os.chdir(folder.parent)
    found = begun(run, folder / "handbook")
    assert [one["scheme"] for one in found["sources"]] == ["sop", "doc", "skill", "agent", "org"]
    assert found["prompts"] == ["prompts"] and found["leftOut"] == []


def test_what_check_would_refuse_is_left_out_and_said(run: Run, empty: Path) -> None:
    """A faulty document by its file; agents and prompts that are none with their folder."""
    head = "---\nid: {0}\ntitle: {0}\ncategory: team\nlast_updated: {1}\nowner: someone\nversion: '1'\n---\n# {0}\n"
    base = filled(
        empty / "mixed",
        {
            "team/good.md": "# Good\n",
            "team/bad.md": head.format("bad", "yesterday"),
            "agents/broken.yml": "name: [unfinished\n",
            "prompts/broken.json": "{",
        },
    )
    found = begun(run, base)
    assert {Path(one["file"]).name for one in found["leftOut"]} == {"bad.md", "broken.json", "broken.yml"}
    assert found["prompts"] == [] and [one["kind"] for one in found["sources"]] == ["doc"]
    assert "team/bad.md" in found["sources"][0]["without"] and found["agents"][0]["sees"]["doc"] == 1
    assert run("check", "--config", base / "octavo.yaml").exit_code == 0
    again = run("init", base, "--yes", "--force")
    assert "left out" in again.stdout and "bad.md:5" in again.stdout


def test_documents_beside_the_usual_folder_are_left_out_where_nobody_would_miss_them(run: Run, empty: Path) -> None:
    inside = {f"docs/{team}/{n}.md": "# x\n" for team in ("hr", "it") for n in range(8)}
    none = {"LICENSE.txt": "x", "requirements.txt": "x", "web/vendor/x/README.md": "x", "testdata/a.md": "x"}
    apart = filled(empty / "apart", {**inside, **none})
    assert [(one["path"], one["entries"]) for one in begun(run, apart)["sources"]] == [("docs", 16)]
    whole = filled(empty / "whole", {**inside, **none, "README.md": "# Begin here\n"})
    assert [one["path"] for one in begun(run, whole)["sources"]] == [""]
    os.chdir(whole)
    assert run("check").exit_code == 0
    assert {"doc://README", "doc://docs/hr/0"} < {*run("ls", "--as", "agent-reader").stdout.split()}


def test_procedures_alone_and_files_alone(run: Run, empty: Path) -> None:
    runbooks = filled(empty / "acme-runbooks", {"disk.md": "# Disk\n", "net/slow.md": "# Slow\n"})
    assert [(one["scheme"], one["entries"]) for one in begun(run, runbooks)["sources"]] == [("sop", 2)]
    pictures = filled(empty / "pictures", {"a.png": "x", "b.jpg": "x"})
    found = begun(run, pictures)
    assert (found["sources"], found["files"], found["agents"][0]["sees"]) == ([], ["."], {"file": 2})
    assert run("check", "--config", pictures / "octavo.yaml").exit_code == 0


ANNEX = ("a.md", "b.md", "annex/p.pdf", "annex/q.pdf", "annex/c.csv", "annex/w.DOCX", "annex/n.md", "Dockerfile")


def test_documents_and_tables_beside_the_texts_are_served_as_they_are(run: Run, empty: Path) -> None:
    base = filled(empty / "mixed", {**dict.fromkeys(ANNEX, "# x\n"), ".env": "KEY=1\n", "annex/.key.pdf": "x"})
    found = begun(run, base)
    assert found["attached"] == {".pdf": 2, ".csv": 1, ".docx": 1} and found["unserved"] == {"Dockerfile": 1}
    first, narrow = found["agents"]
    assert first["sees"] == {"doc": 3, "file": 4}
    assert (narrow["id"], narrow["sees"]) == ("agent-annex", {"doc": 1, "file": 4})
    os.chdir(base)
    checked = run("check")
    assert (checked.exit_code, checked.stderr) == (0, "")
    addresses = run("ls", "--as", "agent-annex").stdout.split()
    assert "file:///mixed/annex/c.csv" in addresses and "doc://annex/n" in addresses
    assert run("cat", "file://annex/c.csv", "--as", "agent-annex").stdout == "# x\n"
    assert run("cat", "file://a.md", "--as", "agent-reader").exit_code == 1  # a text has one address
    assert run("cat", "file://octavo.yaml", "--as", "agent-reader").exit_code == 1


def test_what_is_attached_stays_apart_from_skills_code_and_drafts(run: Run, empty: Path) -> None:
    names = ("a.md", "b.md", "x.pdf", "src/a.py", "src/data.csv", "skills/s/form.pdf", "drafts/old.pdf", "team/y.pdf")
    base = filled(empty / "base", {**dict.fromkeys(names, "x\n"), "skills/s/SKILL.md": SKILL.format(name="s")})
    found = begun(run, base, "--write")
    os.chdir(base)
    checked = run("check")
    assert (checked.exit_code, checked.stderr) == (0, ""), checked.stderr
    told = set(run("ls", "--as", "agent-author").stdout.split())
    served = {one for one in told if one.endswith((".pdf", ".csv"))}
    assert served == {
        "attachment://x.pdf", "attachment://team/y.pdf", "file:///src/data.csv", "skill://s/form.pdf",
        "draft://old.pdf",
    }  # fmt: skip
    assert found["agents"][0]["sees"]["attachment"] == 3


def test_skills_in_a_hidden_folder_are_proposed_beside_what_is_attached(run: Run, empty: Path) -> None:
    names = ("a.md", "b.md", "top.csv", ".claude/skills/pay/ref.csv")
    base = filled(
        empty / "base", {**dict.fromkeys(names, "1,2\n"), ".claude/skills/pay/SKILL.md": SKILL.format(name="pay")}
    )
    begun(run, base)
    os.chdir(base)
    checked = run("check")
    assert (checked.exit_code, checked.stderr) == (0, ""), checked.stderr
    told = {one for one in run("ls", "--as", "agent-reader").stdout.split() if "://" in one}
    assert {one for one in told if one.endswith(".csv")} == {"skill://pay/ref.csv", "file:///base/top.csv"}


def test_an_outer_source_of_other_endings_does_not_reach_the_texts(run: Run, empty: Path) -> None:
    """Two sources on one folder are refused unless no file could be served by both."""
    filled(empty, {"a.md": "# A\n", "b.pdf": "x", "skills/s/SKILL.md": SKILL.format(name="s"), "skills/s/c.pdf": "x"})
    for more, holds in (
        ("extensions: [.pdf]", True), ("extensions: [pdf, .CSV]", True), ("extensions: [.pdf, MD]", False),
        ('extensions: ["*"]', False), ("extensions: [a.md]", False), ("hide: [skills]", False),
    ):  # fmt: skip
        text = "version: 1\nsources:\n  all: {kind: file, roots: [.], expose: false}\n"
        text += f'  docs: {{kind: doc, store: all, path: ""}}\n  files: {{kind: file, roots: [.], {more}}}\n'
        (empty / "octavo.yaml").write_text(text, encoding="utf-8")
        checked = run("check")
        assert ("two addresses" not in checked.stderr) is holds, more
        with_skills = text.replace('path: ""', 'path: "", without: [skills]')
        with_skills += "  skills: {kind: skill, store: all, path: skills}\n"
        (empty / "octavo.yaml").write_text(with_skills, encoding="utf-8")
        assert "two addresses" in run("check").stderr, more
        (empty / "octavo.yaml").write_text(with_skills.replace(more, f"{more}, hide: [Skills]"), encoding="utf-8")
        assert ("two addresses" not in run("check").stderr) is (holds and "hide" not in more), more
    for more in ("extensions: [.pdf], hide: [skills]", "extensions: [.pdf], hide: [skills], write: true"):
        (empty / "octavo.yaml").write_text(with_skills.replace("hide: [skills]", more), encoding="utf-8")
        assert ("two addresses" in run("check").stderr) is ("write" in more)
    (empty / "octavo.yaml").write_text(
        with_skills.replace("hide: [skills]", "extensions: [.pdf], hide: [skills]"), encoding="utf-8"
    )
    (empty / "alias").symlink_to("skills")
    assert run("check").exit_code == 0
    assert run("cat", "file://b.pdf").exit_code == 0
    for address in ("file://skills/s/c.pdf", "file://alias/s/c.pdf", "file://a.md"):
        assert run("cat", address).exit_code == 1, address


def test_what_would_not_be_served_is_counted_by_ending_with_the_lines_that_serve_it(run: Run, empty: Path) -> None:
    base = filled(empty / "mixed", dict.fromkeys(("a.md", "b.md", "p/x.pdf", "p/y.png", "Makefile"), "x"))
    found = begun(run, base)
    assert found["unserved"] == {".png": 1, "Makefile": 1}
    told = run("init", base, "--dry-run").stdout
    assert "2 files would not be served: " in told and "add to extensions of the source files: [" in told
    config = base / "octavo.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("extensions: [.pdf]", 'extensions: [.pdf, ".png", "Makefile"]'), encoding="utf-8")
    assert run("check", "--config", config).exit_code == 0
    assert len(run("ls", "--config", config, "--as", "agent-reader").stdout.split()) == 5
    bare = filled(empty / "bare", dict.fromkeys(("a.md", "b.md", "p/y.png"), "x"))
    told = run("init", bare, "--yes").stdout
    line = 'a source {kind: file, roots: [.], extensions: [".png"], hide: [".*"]}'
    assert line in told
    config = bare / "octavo.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace("agents:\n", f"  files: {line.removeprefix('a source ')}\nagents:\n"), encoding="utf-8"
    )
    assert run("check", "--config", config).exit_code == 0
    plain = filled(empty / "plain", {"a.csv": "a,b\n", "b.hwp": "x"})
    found = begun(run, plain)
    assert (found["unserved"], found["agents"][0]["sees"]) == ({}, {"file": 2})
    assert 'extensions: ["*"]' in found["text"]


@pytest.mark.parametrize(
    ("files", "agents"),
    [
        (("a.md", "b.md", "c.md"), ["agent-reader"]),
        (("a.md", "policies/b.md", "policies/c.md"), ["agent-reader", "agent-policies"]),
        (("a.md", "x.pdf", ".agents/agents/b.md", ".agents/skills/none.md"), ["agent-reader"]),
        (("t/a.md", "u/b.md", "v/c.md"), ["agent-reader", "agent-t", "agent-u"]),
    ],
)
def test_agents_are_as_many_as_differ_and_are_called_by_folders(
    run: Run, empty: Path, files: tuple[str, ...], agents: list[str]
) -> None:
    found = begun(run, filled(empty / "base", dict.fromkeys(files, "# x\n")))
    assert [one["id"] for one in found["agents"]] == agents
    sees = [one["sees"] for one in found["agents"]]
    assert all(sees) and sees[0].get("doc", 0) == sum(
        one["entries"] for one in found["sources"] if one["kind"] == "doc"
    )


@pytest.mark.parametrize("answer", ["y", "No", "예", "a,아니오"])
def test_an_answer_to_another_question_is_no_id(run: Run, company: Path, answer: str) -> None:
    assert "is an answer and no id of an agent" in refused(run, company, "--agents", answer, "--yes")


def test_a_file_that_cannot_be_read_is_not_counted(run: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = filled(empty / "base", {"a.md": "# A\n", "no.md": "# No\n"})
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("no.md"))
    found = begun(run, base)
    assert (found["looked"]["unread"], found["sources"][0]["entries"]) == (1, 1)


@pytest.mark.parametrize("name", ["업무 매뉴얼", "a: b", "'quoted' \"twice\"", "#1", "50%", "- dash", "[x]", "yes"])
def test_names_of_any_kind_stay_what_they_are(run: Run, empty: Path, name: str) -> None:
    base = filled(
        empty / name, {f"{name}/{name}.md": "# One\n", f"{name}/b.md": "# Two\n", f"sops {name}/c.md": "# C\n"}
    )
    found = begun(run, base)
    assert sum(found["agents"][0]["sees"].values()) == 3
    checked = run("check", "--config", base / "octavo.yaml")
    assert (checked.exit_code, checked.stderr) == (0, "")


def test_links_are_not_followed_and_secrets_are_not_counted(run: Run, empty: Path) -> None:
    outside = filled(empty / "outside", {"private.md": "# Private\n"})
    base = filled(empty / "base", {"a.md": "# A\n", ".env": "KEY=1\n"})
    (base / "link").symlink_to(outside)
    (base / "again").symlink_to(base)
    found = begun(run, base)
    assert (found["looked"]["files"], found["looked"]["linked"]) == (1, 2)
    assert found["agents"][0]["sees"] == {"doc": 1}


def test_a_link_to_a_file_inside_is_counted_as_it_is_served(run: Run, empty: Path) -> None:
    base = filled(empty / "base", {"a.md": "# A\n", ".hidden/b.md": "# B\n", "sub/c.md": "# C\n", "b.md": "# B\n"})
    for name, target in (("CLAUDE.md", "a.md"), ("d.md", "sub/c.md"), ("e.md", ".hidden/b.md"), ("f.md", "nowhere.md")):
        (base / name).symlink_to(target)
    found = begun(run, base)
    assert found["agents"][0]["sees"] == {"doc": 5}
    assert [one["entries"] for one in found["sources"]] == [5]
    assert (found["looked"]["files"], found["looked"]["linked"]) == (5, 2)


def test_a_handbook_that_takes_long_to_read_is_waited_for(
    run: Run, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request gives up after a while, and says how far the first look is; whoever asks once is told the end."""
    monkeypatch.setattr("octavo.sources.catalog.kind._PATIENCE", 0.0)
    assert sum(begun(run, company)["agents"][0]["sees"].values()) == 9
    os.chdir(company)
    assert run("explain", "agent-reader", "read", "doc://team/leave").exit_code == 0
    assert run("scan").exit_code == 0


def test_a_look_has_a_bound_and_says_so(empty: Path) -> None:
    base = filled(empty / "many", {f"{n % 7}/{n}.md": "# x\n" for n in range(50)})
    found = look(base, _unseen, most=20)
    assert (len(found.files), found.whole) == (20, False)
    assert look(base, _unseen).whole


def refused(run: Run, *args: object) -> str:
    result = run("init", *args)
    assert result.exit_code in (1, 2) and result.stdout == "", result.stdout
    assert "Traceback" not in result.stderr
    return str(result.stderr)


def test_each_folder_that_cannot_be_begun_gets_its_sentence(run: Run, empty: Path, company: Path) -> None:
    (empty / "nothing").mkdir()
    assert "has no file that could be served" in refused(run, empty / "nothing", "--yes")
    assert "is not there" in refused(run, empty / "absent", "--yes")
    assert "is a file" in refused(run, company / "README.md", "--yes")
    begun(run, company)
    before = (company / "octavo.yaml").read_bytes()
    assert "is there already and is left as it is" in refused(run, company, "--yes")
    assert (company / "octavo.yaml").read_bytes() == before
    told = run("init", company / "team", "--yes")
    assert told.exit_code == 0 and f"{company}/octavo.yaml is a configuration too" in told.stderr
    assert "agents" in refused(run, empty, "--agents", "a,a", "--yes")
    assert "local" in refused(run, empty, "--agents", "local", "--yes")


def test_force_keeps_what_was_there(run: Run, company: Path) -> None:
    (company / "octavo.yaml").write_text("version: 1\n# mine\n", encoding="utf-8")
    told = run("init", company, "--yes", "--force")
    assert told.exit_code == 0
    assert (company / "octavo.yaml.1.old").read_text(encoding="utf-8") == "version: 1\n# mine\n"
    assert "octavo.yaml.1.old" in told.stderr
    assert run("init", company, "--yes", "--force").exit_code == 0
    assert (company / "octavo.yaml.2.old").is_file()


def test_a_link_in_its_place_is_left_as_it_is(run: Run, company: Path, empty: Path) -> None:
    (empty / "elsewhere.yaml").write_text("version: 1\n", encoding="utf-8")
    (company / "octavo.yaml").symlink_to(empty / "elsewhere.yaml")
    told = run("init", company, "--yes", "--force")
    assert told.exit_code == 1 and "is a link" in told.stderr
    assert (empty / "elsewhere.yaml").read_text(encoding="utf-8") == "version: 1\n"


def test_a_dry_run_and_a_pipe_without_an_answer_write_nothing(run: Run, company: Path) -> None:
    shown = run("init", company, "--dry-run", "--write")
    assert shown.exit_code == 0 and "version: 1" in shown.stdout
    told = run("init", company)
    assert told.exit_code == 1 and "give --yes" in told.stderr
    assert not (company / "octavo.yaml").exists() and not (company / "drafts").exists()
    assert not (company / ".octavo").exists()


def test_at_a_terminal_there_are_three_questions_with_defaults(company: Path) -> None:
    with terminal("init", company, columns=200) as screen:
        screen.wait_for("Ids of the agents.*: ")
        screen.type(b"bot-a,bot-b\n")
        screen.wait_for("may write.*: ")
        screen.type(b"\n")
        screen.wait_for("Write .*: ")
        screen.type(b"\n")
        assert screen.ends() == 0
    assert "bot-b: {}" in (company / "octavo.yaml").read_text(encoding="utf-8")


def test_ctrl_c_at_a_question_writes_nothing(company: Path) -> None:
    with terminal("init", company, columns=200) as screen:
        screen.wait_for("Ids of the agents.*: ")
        screen.type(b"\x03")
        assert screen.ends() == 130
    assert not (company / "octavo.yaml").exists()


def test_in_korean_by_locale_and_in_english_for_programs(
    run: Run, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    told = run("init", company, "--yes")
    assert "제공할 것" in told.stdout and "에 썼습니다" in told.stderr
    text = (company / "octavo.yaml").read_text(encoding="utf-8")
    assert "# 업무 절차, sop://…" in text
    assert run("check", "--config", company / "octavo.yaml").exit_code == 0


def test_check_warns_of_tools_that_an_agent_can_never_use(
    run: Run, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first configuration of the documentation once did: a search that is always refused."""
    rules = '[{who: bot, may: [list, read, watch], what: "file://*"}, {who: bot, may: invoke, what: "tool://write"}]'
    config = company / "octavo.yaml"
    source = (
        "sources: {files: {kind: file, roots: [./team]}, more: {kind: file, roots: [./src], scheme: src, write: true}}"
    )
    config.write_text(f"version: 1\n{source}\nagents: {{bot: {{}}}}\npolicy: {rules}\n", encoding="utf-8")
    told = run("check", "--config", config)
    assert told.exit_code == 0
    line = "agents.bot: is shown search, write, which it can never use: no rule allows it search, write"
    assert f"octavo: warning: {config}:3: {line} (allow search, write in a rule, or deny invoke on" in told.stderr
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8")
    assert "search, write 도구가 보이지만 결코 쓸 수 없습니다" in run("check", "--config", config).stderr
    config.write_text(
        config.read_text(encoding="utf-8").replace("read, watch", "read, search, watch"), encoding="utf-8"
    )
    config.write_text(config.read_text(encoding="utf-8").replace("tool://write", "tool://nothing"), encoding="utf-8")
    assert "결코" not in run("check", "--config", config).stderr


def test_whoever_is_served_and_may_see_nothing_is_told_so_everywhere(
    run: Run, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After init nobody is local: what is started without --as serves an empty server."""
    begun(run, company, "--agents", "bot-a,bot-b")
    monkeypatch.chdir(company)
    monkeypatch.setenv("HOME", str(company.parent))
    told = "nothing is visible to local here: "
    choose = "choose an agent with --as: bot-a, bot-b\n"
    commands = (("ls",), ("search", "leave"), ("install", "claude-code", "--dry-run"))
    for command in commands:
        result = run(*command)
        assert told in result.stderr and choose in result.stderr, command
        assert "Access denied" not in result.stderr
        assert "nothing is visible" not in run(*command, "--as", "bot-a").stderr
    served = [sys.executable, "-m", "octavo", "serve"]
    stderr = subprocess.run(served, input=b"", capture_output=True, timeout=60, check=True).stderr.decode()
    assert told in stderr and choose in stderr
    assert subprocess.run([*served, "--as", "bot-a"], input=b"", capture_output=True, check=True).stderr == b""
    with terminal("serve", columns=200) as person:
        person.wait_for(r"claude mcp add octavo -- octavo serve --config \S+ --as AGENT\r?\n")
