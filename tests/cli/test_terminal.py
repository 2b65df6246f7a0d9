"""Octavo typed by a person: a real pseudo-terminal, and what Ctrl-C does to whatever runs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run

LIMIT = 30.0
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
OCTAVO = (sys.executable, "-m", "octavo")


class Terminal:
    """A program whose stdin, stdout and stderr are one terminal of so many columns."""

    def __init__(self, *args: str | Path, columns: int = 80, environ: Mapping[str, str] | None = None) -> None:
        self.pid, self.screen = pty.fork()
        if self.pid == 0:  # pragma: no cover: another program
            os.execve(sys.executable, [*OCTAVO, *map(str, args)], {**os.environ, **(environ or {})})
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.shown = ""

    def wait_for(self, pattern: str) -> None:
        until = time.monotonic() + LIMIT
        while not re.search(pattern, self.shown):
            assert time.monotonic() < until and self._look(), self.shown

    def type(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def ends(self) -> int:
        """Its exit code, as a shell tells it."""
        while self._look():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code if code >= 0 else 128 - code

    def _look(self) -> bool:
        assert select.select([self.screen], [], [], LIMIT)[0], self.shown
        try:
            data = os.read(self.screen, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def terminal(*args: str | Path, columns: int = 80, **environ: str) -> Iterator[Terminal]:
    made = Terminal(*args, columns=columns, environ=environ)
    try:
        yield made
    finally:
        if made.pid:
            with suppress(ProcessLookupError):
                os.kill(made.pid, signal.SIGKILL)
            os.waitpid(made.pid, 0)
        os.close(made.screen)


def frame(method: str, number: int, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}) + "\n"


@pytest.fixture
def notes(empty: Path) -> Path:
    (empty / "notes").mkdir()
    (empty / "notes" / "a.md").write_text("# One\n", encoding="utf-8")
    return empty / "notes"


@pytest.mark.seed("F1")
@pytest.mark.parametrize("columns", [20, 80])
def test_a_person_is_told_what_it_waits_for_and_the_first_ctrl_c_ends_it(notes: Path, columns: int) -> None:
    with terminal("serve", "notes", columns=columns) as person:
        person.wait_for("to end it: Ctrl-C")
        assert "waiting for an MCP client on stdin and stdout" in person.shown
        assert f"claude mcp add octavo -- octavo serve {notes}\n" in person.shown
        assert f"octavo serve {notes} --http --no-auth\n" in person.shown
        person.type(b"\x03")
        assert person.ends() == 130
        assert "Traceback" not in person.shown


def test_in_korean_where_the_terminal_is(notes: Path) -> None:
    with terminal("serve", notes, LC_ALL="ko_KR.UTF-8") as person:
        person.wait_for("끝내려면 Ctrl-C를 누르십시오")
        assert "MCP 클라이언트를 기다립니다" in person.shown
        person.type(b"\x03")
        assert person.ends() == 130


def test_a_person_may_also_talk_to_it_and_end_the_input(notes: Path) -> None:
    with terminal("serve", notes) as person:
        person.wait_for("to end it: Ctrl-C")
        person.type(frame("resources/list", 1).encode())
        person.wait_for(r'"uri":\s?"file://')
        person.type(b"\x04")
        assert person.ends() == 0


def test_a_client_that_starts_it_hears_no_such_words(notes: Path) -> None:
    done = subprocess.run(
        [*OCTAVO, "serve", notes], input=frame("ping", 1), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["id"] == 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_closed_stream_is_the_null_device_and_no_abort(notes: Path, number: int) -> None:
    line = f'exec "$@" {number}{"<" if number == 0 else ">"}&-'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *OCTAVO, "serve", notes],
        input=b"", capture_output=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_closing_the_terminal_ends_a_server_of_a_configuration(notes: Path) -> None:
    """Without a terminal the same signal loads the configuration again."""
    config = notes.parent / "octavo.yaml"
    config.write_text("version: 1\nsources: {n: {kind: file, roots: [notes]}}\n", encoding="utf-8")
    command = ("serve", "--config", config, "--http", "127.0.0.1:0", "--no-auth")
    with terminal(*command) as person:
        person.wait_for("to end it: Ctrl-C")
        os.kill(person.pid, signal.SIGHUP)
        assert person.ends() in (128 + signal.SIGHUP, 0)
    with subprocess.Popen([*OCTAVO, *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for waits in (b"serving MCP at", b"reloaded from"):
            while waits not in (line := process.stderr.readline()):
                assert line, "it has ended"
            if process.poll() is None:
                process.send_signal(signal.SIGHUP)
        process.terminate()


def talk(*args: str | Path, asked: list[str], environ: Mapping[str, str] | None = None) -> tuple[list[Any], str]:
    """All answers to requests that are asked one after the other, and what it said on stderr."""
    with subprocess.Popen(
        [*OCTAVO, *args],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout and process.stderr
        answers = []
        for one in asked:
            process.stdin.write(one)
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        said = process.stderr.read()
        assert process.wait(LIMIT) == 0
    return answers, said


def test_plain_files_for_input_and_output(notes: Path, tmp_path: Path) -> None:
    asked, answers = tmp_path / "asked", tmp_path / "answers"
    asked.write_text(frame("resources/list", 1), encoding="utf-8")
    with asked.open("rb") as reads, answers.open("wb") as writes:
        done = subprocess.run([*OCTAVO, "serve", notes], stdin=reads, stdout=writes, timeout=LIMIT, check=False)
    assert done.returncode == 0
    assert json.loads(answers.read_text(encoding="utf-8"))["id"] == 1


def test_over_http_a_person_is_told_how_to_end_it(notes: Path) -> None:
    with terminal("serve", notes, "--http", "127.0.0.1:0", "--no-auth") as person:
        person.wait_for("to end it: Ctrl-C")
        assert re.search(r"octavo: serving MCP at http://127\.0\.0\.1:\d+/mcp\n", person.shown)
        person.type(b"\x03")
        assert person.ends() == 130


@pytest.mark.parametrize("http", [(), ("--port", "0", "--no-auth")])
def test_the_first_sigint_ends_it_on_pipes_too(notes: Path, http: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*OCTAVO, "serve", notes, *http],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        if http:
            assert "octavo: serving MCP at http://127.0.0.1:" in process.stderr.readline()
        else:
            process.stdin.write(frame("ping", 1))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
        assert process.stderr.read().strip() == ""


def test_a_person_is_told_whether_a_human_is_asked_before_changes(notes: Path) -> None:
    with terminal("serve", notes, "--write") as person:
        person.wait_for("to end it: Ctrl-C")
        assert "nobody is asked before a change, since undo takes each back" in person.shown
        assert f"octavo serve {notes} --write\n" in person.shown
    (notes / "../octavo.yaml").write_text(
        "version: 1\nsources: {notes: {kind: file, roots: [./notes], write: true}}\n"
        'policy: [{who: "*", may: "*", what: "**", approve: human}]\n',
        encoding="utf-8",
    )
    with terminal("serve") as person:
        person.wait_for("to end it: Ctrl-C")
        assert "a human is asked where a rule of the policy says approve" in person.shown
        assert f"-- octavo serve --config {notes.parent / 'octavo.yaml'}\n" in person.shown


@pytest.fixture
def slow(empty: Path) -> Path:
    """Enough to look at that a person would wonder."""
    (empty / "docs").mkdir()
    for number in range(1500):
        (empty / "docs" / f"{number}.md").write_text(f"# Note {number}\n\nbudget {number}\n", encoding="utf-8")
    (empty / "octavo.yaml").write_text("version: 1\nsources: {docs: {kind: file, roots: [./docs]}}\n", encoding="utf-8")
    return empty


@pytest.mark.parametrize("columns", [20, 80])
def test_long_work_shows_how_far_it_is_on_one_line(slow: Path, columns: int) -> None:
    with terminal("search", "budget", "--limit", "1", columns=columns) as person:
        assert person.ends() == 0
    shown = re.findall(r"\r\x1b\[K([^\r\n]*)", person.shown)
    assert "looking at documen" in shown[0] and all(len(line) < columns for line in shown[:-1])
    assert shown[-1].startswith(("", "file://")), "the line is gone"
    with terminal("scan", "docs") as person:
        assert person.ends() == 0
        assert "0 to hide" in person.shown


def test_without_a_terminal_there_is_no_progress_and_no_colour(run: Run, slow: Path) -> None:
    assert run("search", "budget", "--limit", "1").stderr == ""
    done = subprocess.run([*OCTAVO, "cat", "file://none"], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.stderr.startswith("octavo: error: ") and "\x1b" not in done.stderr


def test_colours_are_for_terminals_that_want_them(empty: Path) -> None:
    for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with terminal("check", **{"TERM": "xterm", **environ}) as person:
            assert person.ends() == 2
            assert ("\x1b[31m" in person.shown) == coloured, environ


@pytest.fixture
def korean(empty: Path) -> Path:
    (empty / "문서").mkdir()
    (empty / "문서" / "보고서.md").write_text("# 보고서\n", encoding="utf-8")
    (empty / "octavo.yaml").write_text("version: 1\nsources: {docs: {kind: file, roots: [./문서]}}\n", encoding="utf-8")
    return empty


@pytest.mark.parametrize(
    "environ",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "ko_KR.UTF-8", "PYTHONIOENCODING": "ascii"},
    ],
)
def test_what_a_terminal_cannot_show_is_escaped(korean: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [*OCTAVO, "ls", "-l"], capture_output=True, timeout=LIMIT, check=False, env={**os.environ, **environ}
    )
    shown, said = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in said
    if "PYTHONUTF8" in environ:
        assert (done.returncode, "set PYTHONUTF8=1" in said) == (1, True)
        return
    assert done.returncode == 0 and ("보고서.md" in shown or "\\ubcf4" in shown)
    broken = subprocess.run(
        [*OCTAVO, "check", "--config", "없음.yaml"],
        capture_output=True, timeout=LIMIT, check=False, env={**os.environ, **environ},
    )  # fmt: skip
    assert broken.returncode == 1 and b"there is no such file" in broken.stderr and b"Traceback" not in broken.stderr


EVIL = "\x1b]0;OWNED\x07\x08\x9b2J\u202etxt.\u200bx"
RAW = ("\x1b]", "\x07", "\x08", "\x9b", "\u202e", "\u200b")


@pytest.fixture
def evil(empty: Path) -> Path:
    """Whatever others may write, with what moves the cursor, renames the window and turns the direction."""
    front = f"---\ndescription: {json.dumps(EVIL, ensure_ascii=True)}\n---\n"
    files = {
        "docs/a.md": f"# budget {EVIL}\n\nbudget of {EVIL} text\n\tindented\r\n",
        "docs/a.json": json.dumps({"text": EVIL}, ensure_ascii=False),
        "prompts/greet.prompt.md": f"{front}Hello {EVIL}\nsecond line\n",
        "prompts/odd\u202e\x9b.json": "{",
        ".vscode/mcp.json": f'{{\n  "servers": {{\n    // {EVIL}\n  }}\n}}\n',
        "octavo.yaml": "version: 1\nsources: {docs: {kind: file, roots: [./docs], uris: relative}}\n",
    }
    for name, text in files.items():
        (empty / name).parent.mkdir(exist_ok=True)
        (empty / name).write_text(text, encoding="utf-8", newline="")
    return empty


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (("search", "budget"), "\\u001b]0;OWNED"),
        (("prompts", "list"), "\\u001b]0;OWNED"),
        (("prompts", "render", "greet"), "\\u001b]0;OWNED"),
        (("install", "vscode", "docs", "--project", "--dry-run"), "\\u001b]0;OWNED"),
        (("check",), "\\u202e\\u009b"),
        (("cat", "file://a.md"), "\\u001b]0;OWNED"),
        (("cat", "file://a.json", "--json"), "\\u009b"),
        (("ls", "-l"), "prompts/odd⟨U+202E⟩\\u009b"),
        (("explain", f"who{EVIL}", "read", "file://a.md"), "\\u001b"),
        (("tools", "test", "read", "target=file://a.md"), "\\u001b"),
    ],
)
def test_nothing_that_others_wrote_steers_the_terminal(evil: Path, command: tuple[str, ...], shows: str) -> None:
    with terminal(*command) as person:
        person.ends()
    assert shows in person.shown
    assert not [one for one in RAW if one in person.shown]


def test_cat_keeps_lines_at_a_terminal_and_every_byte_in_a_pipe(evil: Path) -> None:
    with terminal("cat", "file://a.md") as person:
        person.ends()
    assert "\n\tindented\n" in person.shown
    done = subprocess.run([*OCTAVO, "cat", "file://a.md"], capture_output=True, timeout=LIMIT, check=False)
    assert b"\x1b]0;OWNED\x07\x08\xc2\x9b2J" in done.stdout and b"\n\tindented\r\n" in done.stdout


def test_a_reader_that_has_seen_enough(slow: Path) -> None:
    with subprocess.Popen([*OCTAVO, "ls"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline().startswith("file://")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(LIMIT) in (0, 1)


def test_a_closed_stdout_is_no_crash(korean: Path) -> None:
    command = f"{sys.executable} -m octavo ls >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["missing", "a file"])
def test_a_home_that_cannot_be_used_stops_nobody(notes: Path, kind: str) -> None:
    """Of a read-only one root knows nothing; a file in its place cannot be written by anybody."""
    home = notes.parent / "home"
    if kind == "a file":
        home.write_text("mine", encoding="utf-8")
    environ = {**{key: value for key, value in os.environ.items() if not key.startswith("XDG")}, "HOME": str(home)}
    answers, said = talk("serve", notes, asked=[frame("resources/list", 1)], environ=environ)
    assert "a.md" in json.dumps(answers) and "Traceback" not in said
    if kind == "a file":
        assert "octavo: WARNING" in said and home.read_text(encoding="utf-8") == "mine"


def test_a_taken_port_is_said_before_anything_else(run: Run, folder: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("demo", "--dir", folder), ("serve",)):
            result = run(*command, "--port", port)
            assert (result.exit_code, result.stdout) == (1, ""), result.stdout
            assert result.stderr == (
                f"octavo: error: Cannot listen on 127.0.0.1:{port}: Address already in use "
                "(another program has it: choose another port with --port, or make demo PORT=…)\n"
            )


def test_keys_that_would_travel_in_clear_are_warned_of(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.app.serve.serve_http", lambda *_, **__: None)
    assert "octavo: warning: 0.0.0.0:9 is plain HTTP" in run("serve", "--http", "0.0.0.0:9").stderr
    assert run("serve", "--http", "0.0.0.0:9", "--no-auth").exit_code == 2
    assert run("serve", "--port", "9").stderr == ""
    assert "give it or --port" in run("serve", "--http", "127.0.0.1:9", "--port", "9").stderr


def test_one_line_a_request_in_the_log(notes: Path) -> None:
    asked = [frame("resources/list", 1), frame("resources/read", 2, uri=f"file://{notes}/none\nx.md")]
    _, said = talk("serve", notes, "--log-level", "info", asked=asked)
    lines = [line for line in said.splitlines() if line.startswith("octavo: INFO: octavo.requests: ")]
    assert len(lines) == 2
    assert any(re.search(r": local list \S* ?ok [0-9.]+ ms$", line) for line in lines), lines
    assert any(re.search(r": local read .*(not_found|invalid_params)", line) for line in lines), lines


def test_an_empty_list_says_who_asked_and_what_they_may(run: Run, empty: Path) -> None:
    (empty / "docs").mkdir()
    config = empty / "octavo.yaml"
    config.write_text("version: 1\nsources: {docs: {kind: file, roots: [./docs]}}\n", encoding="utf-8")
    assert "note: there is no policy, so local may see everything, and there is nothing" in run("ls").stderr
    with config.open("a", encoding="utf-8") as file:
        file.write(
            "agents: {brand: {roles: [marketing]}, idle: {}}\n"
            'policy: [{who: "role:marketing", may: [list, read], what: "file://brand/*"}]\n'
        )
    said = "octavo: note: nothing is visible to {} here: {}\n"
    assert run("ls", "--as", "brand").stderr == said.format("brand", "it may list, read file://brand/*")
    nothing = "no rule of the policy allows it anything"
    assert run("ls", "--as", "idle").stderr == said.format("idle", nothing)
    assert run("ls").stderr == said.format("local", f"{nothing}; choose an agent with --as: brand, idle")


def test_with_json_errors_are_json_too(run: Run, folder: Path) -> None:
    def error(*args: object) -> dict[str, Any]:
        result = run(*args, "--json")
        assert result.exit_code in (1, 2)
        told: dict[str, Any] = json.loads(result.stdout)["error"]
        return told

    assert error("cat", "sop://hr/salary-policy", "--as", "agent-brand")["reason"] == "forbidden"
    told = error("ls", "nope://x")  # an error that says more exactly which it is, as it does on the wire
    assert told["reason"] == "unknown_scheme" and told["message"].startswith("No source serves nope://")
    assert error("ls", "--as", "nobody")["reason"] == "usage"
    assert error("ls", "--wrong")["message"].startswith("No such option")
    (folder / "octavo.yaml").write_text("version: 2\n", encoding="utf-8")
    assert error("ls")["problems"][0]["message"] == "must be 1"


def test_the_version_is_one_letter_away(run: Run) -> None:
    assert run("-V").stdout == run("--version").stdout != ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_completion(empty: Path, shell: str) -> None:
    program = Path(sys.executable).parent / "octavo"
    environ = {**os.environ, "_OCTAVO_COMPLETE": f"{shell}_source", "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run([program], capture_output=True, text=True, timeout=LIMIT, check=False, env=environ)
    assert done.returncode == 0 and f"_OCTAVO_COMPLETE={shell}_complete" in done.stdout
