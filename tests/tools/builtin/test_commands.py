"""`run_command`: listed programs, typed words, limits, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.tools.builtin.conftest import Serve, Tools

from octavo.app.configuration import load
from octavo.config.problems import ConfigError
from octavo.core.arguments import OwnArguments
from octavo.core.errors import Forbidden, InvalidParams, NotFound, OctavoError, TooLarge
from octavo.core.ref import Ref
from octavo.core.tools import Text, ToolResult
from octavo.core.values import Call, Trail
from octavo.tools.builtin.process import run_command

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="programs of Linux")]


def configuration(programs: str, *, write: bool = False, commands: str = "", more: str = "") -> str:
    policy = "" if "policy:" in more else 'policy: [{who: "*", may: "*", what: "**", approve: never}]'
    return f"""
        {policy}
        sources: {{work: {{kind: file, roots: [./work], extensions: ["*"], write: {str(write).lower()}}}}}
        toolsets: [files, process]
        commands:
          {commands or "at_once: 8"}
          programs: {{{programs}}}
        {more}
    """


def python(code: str, more: str = "") -> str:
    real = os.path.realpath(sys.executable)
    return f"{{run: [{real}, -S, -B, -c, {quoted(code)}], reads: [{sys.base_prefix}]{more}}}"


def quoted(text: str) -> str:
    return json.dumps(text)  # which is YAML too


def printed(result: ToolResult) -> str:
    return "".join(block.text for block in result.content[1:] if isinstance(block, Text))


def ended(result: ToolResult) -> str:
    assert isinstance(result.content[0], Text)
    return result.content[0].text


def processes_with(mark: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(name)
    return found


@pytest.mark.seed("T4")
async def test_a_listed_program_is_run_and_what_it_prints_is_told(serve: Serve) -> None:
    tools = await serve(configuration("say: {run: [echo, hello], args: [{name: whom}]}"))
    result = await tools("run_command", program="say", args={"whom": "$(id); 세계"})
    assert ended(result) == "exit 0"
    assert printed(result) == "hello $(id); 세계\n"
    assert result.structured is not None and result.structured["exit"] == 0


async def test_the_exit_code_and_the_errors_are_told_and_are_no_failure_of_the_tool(serve: Serve) -> None:
    tools = await serve(configuration("show: {run: cat, args: [{name: file}]}"))
    result = await tools("run_command", program="show", args={"file": "missing"})
    assert ended(result) == "exit 1" and not result.is_error
    assert "missing" in printed(result)


async def test_a_program_that_is_not_listed_is_refused_with_those_that_are(serve: Serve) -> None:
    tools = await serve(configuration("say: {run: echo}, show: {run: cat}"))
    with pytest.raises(InvalidParams, match="say"):
        await tools("run_command", program="rm")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"text": "-rf"}, "dash"),
        ({"text": "x" * 11}, "10 characters"),
        ({"text": "a\x00b"}, "characters"),
        ({"text": "\ud800"}, "characters"),
        ({"text": ["a"]}, "single"),
        ({"text": 1}, "text"),
        ({"word": "Abc"}, "match"),
        ({"count": 0}, "at least 1"),
        ({"count": 10}, "at most 9"),
        ({"count": "1; id"}, "integer"),
        ({"count": True}, "integer"),
        ({"kind": "c"}, "one of a, b"),
        ({"loud": "yes"}, "true or false"),
        ({"file": "../x"}, "below"),
        ({"file": "/etc/passwd"}, "below"),
        ({"file": "file:///etc/passwd"}, "below"),
        ({"files": ["a"] * 101}, "100 values"),
        ({"unknown": 1}, "not known; there is text"),
        ({}, "required"),
    ],
)
async def test_wrong_arguments_are_told_and_nothing_is_started(
    serve: Serve, args: dict[str, Any], complaint: str
) -> None:
    rules = (
        "{name: text, longest: 10}, {name: word, pattern: '[a-z]+'}, {name: count, type: integer, min: 1, max: 9}, "
        "{name: kind, type: choice, choices: [a, b]}, {name: loud, type: switch, flag: --loud}, "
        "{name: file, type: path}, {name: files, type: path, many: true}, {name: must, required: true}"
    )
    tools = await serve(configuration(f"say: {{run: echo, args: [{rules}]}}"))
    given = args if not args else {"must": "x", **args}
    with pytest.raises(InvalidParams, match=complaint) as raised:
        await tools("run_command", program="say", args=given)
    assert raised.value.data["validationErrors"]


async def test_each_value_is_one_word_in_the_order_of_the_configuration(serve: Serve) -> None:
    code = "import sys; print(sys.argv[1:])"
    rules = (
        "{name: n, type: integer, flag: -n}, {name: since, flag: '--since='}, {name: loud, type: switch, flag: -v}, "
        "{name: rest, many: true}, {name: file, type: path}"
    )
    tools = await serve(configuration(f"show: {python(code, f', args: [{rules}]')}"), {"-a b.txt": "x"})
    args = {"file": "-a b.txt", "rest": ["x y", "'"], "loud": True, "n": 3, "since": "-1"}
    result = await tools("run_command", program="show", args=args)
    assert printed(result) == "['-n', '3', '--since=-1', '-v', 'x y', \"'\", './-a b.txt']\n"


async def test_it_works_in_a_served_folder_that_its_caller_may_see(serve: Serve) -> None:
    more = """
        agents: {ann: {}}
        policy:
          - {who: ann, may: [invoke], what: "tool://*", approve: never}
          - {who: ann, may: [list, read], what: "file://open/*"}
    """
    files: dict[str, str | bytes] = {"open/a.txt": "a", "open/secret.txt": "s", "closed/b.txt": "b"}
    tools = await serve(configuration("show: {run: cat, args: [{name: file, type: path}]}", more=more), files)
    result = await tools("run_command", who="ann", program="show", folder="open", args={"file": "a.txt"})
    assert printed(result) == "a"
    for folder, file in (("closed", "b.txt"), ("nowhere", "b.txt"), ("/etc", "passwd"), ("open", "missing")):
        with pytest.raises((NotFound, Forbidden)):
            await tools("run_command", who="ann", program="show", folder=folder, args={"file": file})


async def test_a_file_that_its_caller_may_not_read_cannot_be_named(serve: Serve) -> None:
    more = """
        agents: {ann: {}}
        policy:
          - {who: ann, may: [invoke], what: "tool://*", approve: never}
          - {who: ann, may: [list, read], what: "file://*"}
          - {who: ann, may: [read], what: "file://secret.txt", effect: deny}
    """
    show = "show: {run: cat, args: [{name: file, type: path}]}"
    tools = await serve(configuration(show, more=more), {"a.txt": "a", "secret.txt": "s"})
    assert printed(await tools("run_command", who="ann", program="show", args={"file": "a.txt"})) == "a"
    with pytest.raises(Forbidden):
        await tools("run_command", who="ann", program="show", args={"file": "secret.txt"})


COPY = "copy: {run: cp, write: true, args: [{name: source, type: path}, {name: to, type: path}]}"


async def test_a_command_that_writes_reads_nothing_that_is_hidden_from_its_caller(serve: Serve) -> None:
    """What is hidden is told as absent, and a new file is absent too."""
    more = """
        agents: {ann: {}}
        policy:
          - {who: ann, may: "*", what: ["tool://*", "file://*"], approve: never}
          - {who: ann, may: "*", what: "file://secret/*", effect: deny}
    """
    files: dict[str, str | bytes] = {
        "a.txt": "a", ".env": "TOKEN=x", "secret/s.txt": "s", ".git/config": "c", "own/a.txt": "a"
    }  # fmt: skip
    tools = await serve(configuration(COPY, write=True, more=more), files)
    (tools.root / "link").symlink_to(tools.root / "secret" / "s.txt")
    (tools.root / "folder").symlink_to(tools.root / "secret")
    for source, to in (
        (".env", "out"),
        ("link", "out"),
        ("folder/s.txt", "out"),
        ("secret/s.txt", "out"),
        ("a.txt", "secret/new"),
        ("a.txt", "folder/new"),
        ("a.txt", "link"),
        ("a.txt", ".env"),
        ("a.txt", ".git/new"),
    ):
        with pytest.raises((NotFound, Forbidden)):
            await tools("run_command", who="ann", program="copy", args={"source": source, "to": to})
    assert not (tools.root / "out").exists() and (tools.root / "secret" / "s.txt").read_text(encoding="utf-8") == "s"
    args = {"source": "a.txt", "to": "new"}
    assert ended(await tools("run_command", who="ann", program="copy", folder="own", args=args)) == "exit 0"
    assert (tools.root / "own" / "new").read_text(encoding="utf-8") == "a"


async def test_a_command_writes_only_where_its_caller_may(serve: Serve) -> None:
    more = """
        agents: {ann: {}}
        policy:
          - {who: ann, may: [invoke], what: "tool://*", approve: never}
          - {who: ann, may: [list, read], what: "file://*"}
          - {who: ann, may: [write], what: "file://drafts/*"}
          - {who: ann, may: [write], what: "file://drafts/final/*", effect: deny}
    """
    touch = "touch: {run: touch, write: true, args: [{name: file, type: path}]}, change: " + python(
        'open("final.txt", "w").write("x")', ", write: true"
    )
    files: dict[str, str | bytes] = {"a.txt": "a", "final.txt": "a", "drafts/a/b.txt": "b", "drafts/final/c.txt": "c"}
    tools = await serve(configuration(touch, write=True, more=more), files)

    async def run(program: str, **asked: Any) -> ToolResult:
        return await tools("run_command", who="ann", program=program, **asked)

    assert "Permission" in printed(await run("change"))
    assert (tools.root / "final.txt").read_text(encoding="utf-8") == "a"
    assert ended(await run("touch", folder="drafts/a", args={"file": "new.txt"})) == "exit 0"
    with pytest.raises(Forbidden, match=r"may not write.* file:///work/drafts/a"):
        await run("touch", folder="drafts", args={"file": "a/new.txt"})
    with pytest.raises(NotFound):
        await run("touch", args={"file": "new.txt"})


async def test_a_link_is_no_way_out_of_the_folder(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "s.txt").write_text("secret", encoding="utf-8")
    tools = await serve(configuration("show: {run: cat, args: [{name: file, type: text}]}"), {"a.txt": "a"})
    (tools.root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(OctavoError):
        await tools("run_command", program="show", folder="link")
    for way in ("link/s.txt", "../outside/s.txt", f"{tmp_path}/outside/s.txt"):
        result = await tools("run_command", program="show", args={"file": way})
        assert "secret" not in printed(result), way


@pytest.mark.parametrize(("may", "left"), [(True, True), (False, False)])
async def test_files_are_changed_only_by_programs_that_may(serve: Serve, may: bool, left: bool) -> None:
    code = 'open("new.txt", "w").write("x")'
    program = python(code, f", write: {str(may).lower()}")
    tools = await serve(configuration(f"make: {program}", write=True))
    await tools("run_command", program="make")
    assert (tools.root / "new.txt").exists() is left


async def test_the_environment_is_empty_but_for_what_is_configured(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_SECRET", "canary")
    code = "import os; print(sorted(os.environ.items()))"
    tools = await serve(configuration(f"env: {python(code, ', env: {ZONE: x}')}"))
    told = printed(await tools("run_command", program="env"))
    assert "canary" not in told and "('ZONE', 'x')" in told and "PYTHONPATH" not in told


async def test_there_is_no_network_unless_it_is_configured(serve: Serve) -> None:
    listener = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    code = f'import socket; socket.create_connection(("127.0.0.1", {port}), 5); print("rea" + "ched")'
    tools = await serve(configuration(f"in: {python(code)}, out: {python(code, ', network: true')}"))
    assert "reached" not in printed(await tools("run_command", program="in"))
    assert "reached" in printed(await tools("run_command", program="out"))
    listener.close()


ENDLESS = "import time\nwhile True: time.sleep(100)"
HOSTILE: dict[str, tuple[str, str, str]] = {
    "hangs": (ENDLESS, "time: 500ms", "did not end within"),
    "hangs and ignores SIGTERM": (
        f"import signal; signal.signal(15, signal.SIG_IGN)\n{ENDLESS}", "time: 500ms", "did not end within"
    ),
    "closes everything and hangs": (f"import os; os.closerange(0, 3)\n{ENDLESS}", "time: 500ms", "did not end within"),
    "prints without end": ("while True: print(\"x\" * 10000)", "output: 100KB", "printed more than"),
    "prints errors without end": (
        "import sys\nwhile True: sys.stderr.write(\"x\" * 10000)", "output: 100KB", "printed more than"
    ),
    "uses the processor": ("while True: pass", "cpu: 1s", "processor time"),
    "takes memory": ("x = bytearray(10**10)", "memory: 300MB", "exit 1"),
    "writes a large file": ("open(\"big\", \"wb\").write(bytes(10**7))", "file: 100KB", ""),
    "forks without end": (
        f"import os\nwhile True:\n  if not os.fork(): os.setsid()\n{ENDLESS}", "processes: 10", "processes"
    ),
    "leaves daemons": (
        "import os, time\nfor _ in range(3):\n  if not os.fork():\n    os.setsid()\n    os.closerange(0, 3)\n"
        "    while True: time.sleep(100)",
        "at_once: 1", "exit 0",
    ),
}  # fmt: skip


async def contained(serve: Serve, kind: str, tmp_path: Path) -> tuple[Tools, ToolResult]:
    """Runs it: it is told how it ended, and nothing of it is left."""
    code, limit, told = HOSTILE[kind]
    mark = f"mark-{tmp_path.name}"
    program = python(f"# {mark}\n{code}", ", write: true")
    tools = await serve(configuration(f"bad: {program}", commands=limit, write=True))
    result = await tools("run_command", program="bad")
    assert told in ended(result), ended(result)
    assert processes_with(mark) == []
    return tools, result


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.seed("T7")
async def test_a_hostile_program_is_contained_explained_and_gone(serve: Serve, kind: str, tmp_path: Path) -> None:
    tools, _ = await contained(serve, kind, tmp_path)
    if kind == "writes a large file":
        assert (tools.root / "big").stat().st_size <= 100_000


async def test_a_cancelled_call_ends_the_program_and_all_that_it_started(serve: Serve, tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    code = f'# {mark}\nimport os, time\nif not os.fork(): os.setsid()\nopen(f"up-{{os.getpid()}}", "w")\n{ENDLESS}'
    tools = await serve(configuration(f"bad: {python(code, ', write: true')}", write=True))
    call = asyncio.ensure_future(tools("run_command", program="bad"))
    await until(lambda: len([*tools.root.glob("up-*")]) == 2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: not processes_with(mark))


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await asyncio.to_thread(os.sched_yield)


async def test_input_reaches_the_program_where_it_takes_one(serve: Serve) -> None:
    tools = await serve(configuration("count: {run: [wc, -c], input: true}, not: {run: cat}", commands="input: 10"))
    assert printed(await tools("run_command", program="count", input="12345")).strip() == "5"
    with pytest.raises(TooLarge):
        await tools("run_command", program="count", input="x" * 11)
    with pytest.raises(InvalidParams, match="takes no input"):
        await tools("run_command", program="not", input="x")


async def test_a_program_that_never_reads_its_input_is_no_problem(serve: Serve) -> None:
    tools = await serve(configuration("not: {run: echo, input: true}"))
    assert ended(await tools("run_command", program="not", input="x" * 900_000)) == "exit 0"


async def test_an_answer_is_not_larger_than_the_limit(serve: Serve) -> None:
    code = 'print("word " * 60000)'
    tools = await serve(configuration(f"long: {python(code)}", more="limits: {answer: 16KB}"))
    told = printed(await tools("run_command", program="long"))
    assert len(told) < 16_000 and "more characters]" in told


async def test_secrets_in_what_a_program_prints_are_hidden(serve: Serve) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    tools = await serve(configuration(f"tell: {{run: [echo, {token}]}}"))
    assert token not in printed(await tools("run_command", program="tell"))


def problems(tmp_path: Path, text: str) -> str:
    (tmp_path / "work").mkdir(exist_ok=True)
    file = tmp_path / "octavo.yaml"
    file.write_text("version: 1\n" + text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load(file, environ={"PATH": "/usr/bin:/bin"})
    return str(raised.value)


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("{run: no-such-program-here}", "there is no program"),
        ("{run: ./missing}", "no program that can be run"),
        ("{run: []}", "run"),
        ("{run: echo, args: [{name: a}, {name: a}]}", "two args of one name"),
        ("{run: echo, args: [{name: a, type: choice}]}", "choices"),
        ("{run: echo, args: [{name: a, type: switch}]}", "flag"),
        ("{run: echo, args: [{name: a, min: 1}]}", "type: integer"),
        ("{run: echo, args: [{name: a, pattern: '('}]}", "RE2"),
        ("{run: echo, env: {'a b': x}}", "variables"),
        ("{run: work/tool.sh}", "callers could replace"),
    ],
)
async def test_a_program_that_cannot_be_run_safely_is_a_problem_of_the_configuration(
    tmp_path: Path, program: str, complaint: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tool.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "work" / "tool.sh").chmod(0o755)
    text = (
        f"sources: {{work: {{kind: file, roots: [./work], write: true}}}}\ncommands: {{programs: {{x: {program}}}}}\n"
    )
    assert complaint in problems(tmp_path, text)


async def test_the_set_is_off_unless_it_is_named(serve: Serve) -> None:
    tools: Tools = await serve(
        "sources: {work: {kind: file, roots: [./work]}}\ncommands: {programs: {say: {run: echo}}}"
    )
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await tools("run_command", program="say")


async def test_scripts_run_with_their_interpreter(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text('#!/bin/sh\necho "from a script: $1"\n', encoding="utf-8")
    script.chmod(0o755)
    tools = await serve(configuration(f"tool: {{run: {script}, args: [{{name: x}}]}}"))
    assert printed(await tools("run_command", program="tool", args={"x": "$(id)"})) == "from a script: $(id)\n"


async def test_whoever_waits_hears_that_a_command_still_runs(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_command, "_BEAT", 0.01)
    heard = asyncio.Event()
    told: list[tuple[float, float | None, str | None]] = []

    class Waits:
        async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
            told.append((value, total, message))
            if len(told) == 3:
                heard.set()

    tools = await serve(configuration(f"wait: {python(ENDLESS)}"))
    works = tools.octavo.works
    who, tool = works.identity.launched(None), Ref.of("tool", ("run_command",))
    call = Call("invoke", tool, who, Trail(), "tool://run_command", OwnArguments({"program": "wait"}), channel=Waits())
    waiting = asyncio.ensure_future(works.ask(call))
    await asyncio.wait_for(heard.wait(), 20)
    waiting.cancel()
    assert [value for value, _, _ in told] == sorted({value for value, _, _ in told})
    assert told[0][2] is not None and told[0][2].startswith("wait has run for")
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.seed("T7")
async def test_a_program_that_writes_does_not_work_where_the_server_stands(serve: Serve, tmp_path: Path) -> None:
    """It would replace the configuration without asking; in a folder below it may."""
    code = 'open("octavo.yaml", "w").write("version: 1")'
    text = configuration(f"bad: {python(code, ', write: true')}, look: {{run: ls}}", write=True)
    tools = await serve(text.replace("[./work]", "[.]"))
    before = (tmp_path / "octavo.yaml").read_bytes()
    with pytest.raises(Forbidden, match="stands on"):
        await tools("run_command", program="bad")
    assert "not every name there is for you" in printed(await tools("run_command", program="look"))
    await tools("run_command", program="bad", folder="work")
    assert (tmp_path / "octavo.yaml").read_bytes() == before
    assert (tmp_path / "work" / "octavo.yaml").read_text(encoding="utf-8") == "version: 1"
