"""A program sees and changes what its caller may, and nothing beside it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tools.builtin.conftest import Serve, Tools
from tests.tools.builtin.test_commands import configuration, ended, printed, processes_with, python, until
from tests.tools.builtin.test_walls import LANDLOCK, change_launcher

from octavo.core.errors import Conflict, Forbidden, OctavoError
from octavo.core.tools import ToolResult
from octavo.sandbox import landlock

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux"),
    pytest.mark.seed("T7"),
]

CANARY = "canary-4711"
WALK = """
import os, sys
for folder, folders, files in os.walk(".", onerror=lambda e: print("no", e.filename)):
    for name in sorted(folders): print("folder", os.path.join(folder, name))
    for name in sorted(files):
        path = os.path.join(folder, name)
        try: print(path, open(path).read())
        except OSError: print("closed", path)
"""
GREP = "grep: {run: [grep, -rn, --], args: [{name: text}, {name: where, type: path}]}"
SHOW = "show: {run: cat, args: [{name: file}]}"
WALKS = f"walk: {python(WALK)}"
PROGRAMS = ", ".join((GREP, SHOW, WALKS))
WRITE = """
import os, sys
os.makedirs(os.path.dirname(sys.argv[1]) or ".", exist_ok=True)
open(sys.argv[1], "w").write("x")
"""
WRITES = "write: " + python(WRITE, ", write: true, args: [{name: file}]")


def rules(*more: str, may: str = '"*"') -> str:
    """For ann, who may see everything but what `more` says."""
    lines = [
        "agents: {ann: {}}",
        "        policy:",
        '          - {who: ann, may: [invoke], what: "tool://*", approve: never}',
        f'          - {{who: ann, may: {may}, what: "file://*", approve: never}}',
        *(f"          - {{who: ann, {one}}}" for one in more),
    ]
    return "\n".join(lines)


async def run(tools: Tools, program: str, **asked: Any) -> ToolResult:
    return await tools("run_command", who="ann", program=program, **asked)


FILES: dict[str, str | bytes] = {
    "pub/a.txt": "open a",
    "pub/deep/b.txt": "open b",
    "hr/pay.txt": CANARY,
    "top.txt": "open top",
}


async def test_a_program_that_walks_finds_no_file_that_its_caller_may_not_read(serve: Serve) -> None:
    more = rules('may: [read, search], what: "file://hr/*", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    for program, args in (("grep", {"text": "canary", "where": "."}), ("walk", {}), ("show", {"file": "hr/pay.txt"})):
        assert CANARY not in printed(await run(tools, program, args=args)), program
    told = printed(await run(tools, "grep", args={"text": "open", "where": "."}))
    assert "open a" in told and "open b" in told and "open top" in told


@pytest.mark.parametrize("hide", ["", ", hide: true"])
async def test_names_that_a_caller_may_not_list_are_not_told_by_a_program(serve: Serve, hide: str) -> None:
    more = rules(f'may: "*", what: "file://pub/secret-plan/*", effect: deny{hide}')
    tools = await serve(configuration(PROGRAMS, more=more), {**FILES, "pub/secret-plan/x.txt": CANARY})
    told = printed(await run(tools, "walk"))
    assert "secret-plan" not in told and CANARY not in told
    result = await run(tools, "walk", folder="pub/deep")
    assert "open b" in printed(result)


@pytest.mark.parametrize("hide", ["", ", hide: true"])
async def test_what_a_program_may_list_does_not_tell_whether_what_is_denied_is_there(serve: Serve, hide: str) -> None:
    more = rules(f'may: "*", what: "file://pub/secret-plan/*", effect: deny{hide}')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    without = await run(tools, "walk", folder="pub")
    tools.put("pub/secret-plan/x.txt", CANARY)
    with_it = await run(tools, "walk", folder="pub")
    assert without.content == with_it.content


async def test_hidden_names_and_kinds_that_are_not_served_are_not_seen_by_a_program(serve: Serve) -> None:
    text = configuration(PROGRAMS, more=rules()).replace('extensions: ["*"]', "extensions: [.txt]")
    files = {**FILES, ".env": CANARY, "pub/id_rsa_x": CANARY, ".git/config": CANARY, "deep/raw.bin": CANARY}
    tools = await serve(text, files)
    told = printed(await run(tools, "walk"))
    for name in (".env", "id_rsa_x", ".git", "raw.bin", CANARY):
        assert name not in told
    assert "open b" in printed(await run(tools, "walk", folder="pub/deep"))
    for name in (".env", ".git/config", "deep/raw.bin"):
        assert CANARY not in printed(await run(tools, "show", args={"file": name}))
    assert "open a" in printed(await run(tools, "show", args={"file": "pub/a.txt"}))


async def test_the_state_the_prompts_and_files_of_secrets_are_not_seen_by_a_program(
    serve: Serve, tmp_path: Path
) -> None:
    text = configuration(PROGRAMS, more="prompts: {dirs: [./work/prompts]}").replace("./work]", ".]")
    tools = await serve(text, {"prompts/p.md": f"---\nname: p\n---\n{CANARY}", "a.txt": "open a"})
    (tmp_path / ".octavo").mkdir(exist_ok=True)
    (tmp_path / ".octavo" / "x.txt").write_text(CANARY, encoding="utf-8")
    for file in (".octavo/x.txt", "work/prompts/p.md"):
        assert CANARY not in printed(await tools("run_command", program="show", args={"file": file}))
    assert "open a" in printed(await tools("run_command", program="show", args={"file": "work/a.txt"}))


async def test_a_link_leads_a_program_nowhere_its_caller_may_not_go(serve: Serve) -> None:
    more = rules('may: "*", what: "file://hr/*", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    (tools.root / "pub" / "way.txt").symlink_to("../hr/pay.txt")
    (tools.root / "pub" / "deep" / "dir").symlink_to("../../hr")
    for folder in (".", "pub", "pub/deep"):
        told = printed(await run(tools, "walk", folder=folder))
        assert CANARY not in told and "way.txt" not in told and "hr" not in told
    for file in ("pub/way.txt", "pub/deep/dir/pay.txt"):
        assert CANARY not in printed(await run(tools, "show", args={"file": file}))


async def test_a_link_that_is_not_listed_is_not_told_by_a_program(serve: Serve) -> None:
    """One to a folder is none of the entries, wherever it leads."""
    tools = await serve(configuration(PROGRAMS, more=rules()), FILES)
    (tools.root / "pub" / "shortcut").symlink_to("deep")
    assert "shortcut" not in printed(await run(tools, "walk", folder="pub"))


async def test_a_refusal_tells_no_name_that_only_a_rule_knows(serve: Serve) -> None:
    more = rules('may: [write], what: "file://pub/layoffs.bin", effect: deny')
    text = configuration(WRITES, write=True, more=more).replace('extensions: ["*"]', "extensions: [.txt]")
    tools = await serve(text, FILES)
    with pytest.raises(Forbidden) as refused:
        await run(tools, "write", folder="pub", args={"file": "new.txt"})
    assert "layoffs" not in f"{refused.value} {refused.value.data}"


async def test_a_hard_link_that_is_not_served_is_not_seen_by_a_program(serve: Serve) -> None:
    text = configuration(PROGRAMS, more=rules()).replace("write:", "hard_links: refuse, write:")
    tools = await serve(text, {"pub/a.txt": "open a", "other/b.txt": "open b"})
    outside = tools.root.parent / "outside.txt"
    outside.write_text(CANARY, encoding="utf-8")
    os.link(outside, tools.root / "pub" / "linked.txt")
    for folder in (".", "pub"):
        told = printed(await run(tools, "walk", folder=folder))
        assert CANARY not in told and "linked" not in told


async def test_the_folders_that_a_program_could_not_list_are_told(serve: Serve) -> None:
    more = rules('may: "*", what: "file://hr/*", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    result = await run(tools, "walk")
    assert result.structured is not None and result.structured["unlisted"] == ["file:///work"]
    assert "could not list" in printed(result)
    whole = await run(tools, "walk", folder="pub")
    assert whole.structured is not None and whole.structured["unlisted"] == []


REMOVES = "remove: {run: rm, write: true, args: [{name: file}]}"


@pytest.mark.parametrize(
    "rule",
    [
        'may: [write], what: "file://hr/*", effect: deny',
        'may: "*", what: "file://later/*", effect: deny',  # which is not there yet
        'may: "*", what: "file://**/private/*", effect: deny, hide: true',
    ],
)
async def test_a_program_does_not_write_where_something_below_is_denied(serve: Serve, rule: str) -> None:
    tools = await serve(configuration(WRITES, write=True, more=rules(rule)), FILES)
    for file in ("hr/new.txt", "later/new.txt", "pub/private/new.txt", "top.txt"):
        with pytest.raises(Forbidden, match="write"):
            await run(tools, "write", args={"file": file})
    assert not (tools.root / "later").exists() and not (tools.root / "hr" / "new.txt").exists()


async def test_the_refusal_to_write_names_the_rule_and_folders_that_would_work(serve: Serve) -> None:
    more = rules('may: [write], what: "file://hr/*", effect: deny, why: pay')
    tools = await serve(configuration(WRITES, write=True, more=more), FILES)
    with pytest.raises(Forbidden, match=r"policy\[2\] \(pay\).* file:///work/pub") as refused:
        await run(tools, "write", args={"file": "new.txt"})
    assert refused.value.data["rules"] == ["policy[2]"] and "file:///work/pub" in refused.value.data["folders"]
    assert ended(await run(tools, "write", folder="pub", args={"file": "deep/new.txt"})) == "exit 0"


@pytest.mark.parametrize("name", [".env", ".git/config", "raw.bin"])
async def test_a_program_does_not_write_beside_what_is_not_served(serve: Serve, name: str) -> None:
    text = configuration(WRITES, write=True, more=rules()).replace('extensions: ["*"]', "extensions: [.txt]")
    tools = await serve(text, {**FILES, name: "kept"})
    with pytest.raises(Forbidden, match="not served"):
        await run(tools, "write", args={"file": name})
    assert (tools.root / name).read_text(encoding="utf-8") == "kept"


async def test_a_program_does_not_write_beside_what_the_server_stands_on(serve: Serve, tmp_path: Path) -> None:
    text = configuration(WRITES, write=True, more=rules()).replace("./work]", ".]")
    await serve(text, FILES)
    tools = await serve(text, FILES)
    with pytest.raises(Forbidden):
        await run(tools, "write", args={"file": "octavo.yaml"})
    assert "sources" in (tmp_path / "octavo.yaml").read_text(encoding="utf-8")


async def test_a_program_does_not_write_a_file_that_has_another_name_elsewhere(serve: Serve) -> None:
    tools = await serve(configuration(WRITES, write=True, more=rules()), {"pub/a.txt": "a", "kept/b.txt": "b"})
    os.link(tools.root / "kept" / "b.txt", tools.root / "pub" / "b.txt")
    with pytest.raises(Forbidden):
        await run(tools, "write", folder="pub", args={"file": "b.txt"})
    assert (tools.root / "kept" / "b.txt").read_text(encoding="utf-8") == "b"


async def test_a_program_of_a_caller_who_may_not_delete_deletes_nothing(serve: Serve) -> None:
    more = rules(may="[list, read, write]")
    tools = await serve(configuration(f"{WRITES}, {REMOVES}", write=True, more=more), FILES)
    assert ended(await run(tools, "write", folder="pub", args={"file": "new.txt"})) == "exit 0"
    assert ended(await run(tools, "remove", folder="pub", args={"file": "a.txt"})) != "exit 0"
    assert (tools.root / "pub" / "a.txt").exists()


async def test_a_program_does_not_write_where_a_human_is_asked_before_each_change(serve: Serve) -> None:
    more = rules('may: [write], what: "file://prod/*", approve: human')
    tools = await serve(configuration(WRITES, write=True, more=more), {**FILES, "prod/p.txt": "p"})
    with pytest.raises(Forbidden):
        await run(tools, "write", folder="prod", args={"file": "p.txt"})


async def test_a_rule_that_looks_at_metadata_keeps_programs_out_and_is_named(serve: Serve) -> None:
    more = rules('may: [read], what: "file://pub/*", when: {metadata: {status: draft}}, effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    with pytest.raises(Forbidden, match=r"policy\[2\]"):
        await run(tools, "walk")
    assert CANARY in printed(await run(tools, "walk", folder="hr"))


async def test_more_than_a_thousand_entries_beside_what_is_withheld_are_refused(serve: Serve) -> None:
    files: dict[str, str | bytes] = {f"many/{n}.txt": "x" for n in range(1001)}
    more = rules('may: [read], what: "file://many/7.txt", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), {**FILES, **files})
    with pytest.raises(Forbidden, match=r"1,000.*file:///work/pub") as refused:
        await run(tools, "walk")
    assert "file:///work/pub" in refused.value.data["folders"]
    assert "open b" in printed(await run(tools, "walk", folder="pub"))


async def test_without_landlock_nothing_runs_beside_what_is_withheld(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_launcher(monkeypatch, tmp_path, LANDLOCK)
    more = rules('may: [read], what: "file://hr/*", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    with pytest.raises(OctavoError):  # the launcher itself refuses
        await run(tools, "walk")
    monkeypatch.setattr(landlock, "version", lambda: 0)
    for folder in (".", "pub"):  # from which `../hr` could be reached
        with pytest.raises(Forbidden, match="Landlock"):
            await run(tools, "walk", folder=folder)
    tools = await serve(configuration(PROGRAMS, more=rules()), FILES)
    assert "open a" in printed(await run(tools, "walk"))


async def test_what_a_program_is_given_beside_its_folder_opens_no_folder_that_is_served(
    serve: Serve, tmp_path: Path
) -> None:
    more = rules('may: [read], what: "file://hr/*", effect: deny')
    show = f"show: {{run: cat, args: [{{name: file}}], reads: [{tmp_path}]}}"
    tools = await serve(configuration(show, more=more), FILES)
    with pytest.raises(Forbidden, match="reads"):
        await run(tools, "show", folder="pub", args={"file": "../hr/pay.txt"})


async def test_a_refused_path_is_named_as_it_was_written(serve: Serve) -> None:
    more = rules('may: [read], what: "file://hr/*", effect: deny')
    tools = await serve(configuration("point: {run: cat, args: [{name: file, type: path}]}", more=more), FILES)
    with pytest.raises(Forbidden) as refused:
        await run(tools, "point", args={"file": "hr/pay.txt"})
    told = f"{refused.value} {refused.value.data}"
    assert "file://hr/pay.txt" in told and "?" not in told


async def test_a_started_process_sees_no_more_than_a_command(serve: Serve) -> None:
    more = rules('may: "*", what: "file://hr/*", effect: deny')
    tools = await serve(configuration(PROGRAMS, more=more), FILES)
    name = (await tools.data("start_process", who="ann", program="show", args={"file": "hr/pay.txt"}))["process"]
    told, state, after = "", "running", 0
    while state == "running":
        part = await tools("read_output", who="ann", process=name, after=after, seconds=20)
        state, after = (part.structured or {})["state"], (part.structured or {})["next"]
        told += ended(part)
    assert "denied" in told and CANARY not in told


ONCE = """
import os, sys, time
print("up", flush=True)
while not os.path.exists("go.txt"): time.sleep(0.01)
for name in sorted(os.listdir(".")): print(name, open(name).read(), flush=True)
"""


async def test_what_is_put_into_the_folder_while_a_program_runs_is_not_told(serve: Serve, tmp_path: Path) -> None:
    """By its name nobody is shown it, and the program may have read it."""
    mark = f"mark-{tmp_path.name}"
    tools = await serve(configuration(f"once: {python(f'# {mark}{ONCE}')}", more=rules()), {"pub/a.txt": "a"})
    call = asyncio.ensure_future(run(tools, "once", folder="pub"))
    await until(lambda: bool(processes_with(mark)))
    tools.put("pub/.env", CANARY)
    tools.put("pub/go.txt", "")
    with pytest.raises(Conflict, match="while"):
        await call


async def test_what_is_put_into_the_folder_of_a_started_process_is_not_told(serve: Serve) -> None:
    tools = await serve(configuration(f"once: {python(ONCE)}", more=rules()), {"pub/a.txt": "a"})
    name = (await tools.data("start_process", who="ann", program="once", folder="pub"))["process"]
    assert "up" in await tools.text("read_output", who="ann", process=name, seconds=20)
    tools.put("pub/.env", CANARY)
    tools.put("pub/go.txt", "")
    with pytest.raises(Conflict, match="while"):
        await tools("read_output", who="ann", process=name, after=3, seconds=20)
    with pytest.raises(OctavoError):  # it is gone
        await tools("read_output", who="ann", process=name)
