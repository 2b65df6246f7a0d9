"""The first minutes of three people who have just installed Octavo, up to the first surprise.

    python bench/first_minutes.py [--agents 10] [--only editor,team,author]

Somebody has a folder and an editor; somebody has a handbook and ten agents that come over HTTP; somebody writes a
handbook in Korean. Each line is a command as they would type it: seconds, lines printed, and whether it did what the
page says. A surprise ends the play of that person, and the script with 1.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OCTAVO = (sys.executable, "-m", "octavo")
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
HANDBOOK = {
    "README.md": "# Handbook\n\nHow we work: [leave](people/leave.md), [incidents](runbooks/incident.md).\n",
    "people/leave.md": "# Leave\n\nTwenty-five days a year; ask your lead two weeks before.\n",
    "people/expenses.md": "# Expenses\n\nKeep the receipt, and hand it in within a month.\n",
    "product/pricing.md": "# Pricing\n\nThree plans; the smallest one is free.\n",
    "runbooks/incident.md": "# Incident\n\nCall the duty phone, then write to #incidents.\n",
    "runbooks/disk-full.md": "# Disk full\n\nLook for large files first.\n",
}
KOREAN = {
    "소개.md": "# 우리 회사\n\n일하는 방식을 모은 핸드북입니다.\n",
    "정책/휴가.md": "# 휴가\n\n휴가는 일 년에 스물다섯 날이며, 두 주 전에 팀장에게 알립니다.\n",
    "정책/경비.md": "# 경비\n\n영수증을 한 달 안에 냅니다.\n",
    "업무절차/장애.md": "# 장애 대응\n\n당직 전화로 먼저 알립니다.\n",
}


class Surprise(Exception):
    """What nobody would have expected, with what was printed."""


class Play:
    """One person in a home of their own; every step prints its line."""

    def __init__(self, person: str, home: Path, locale: str, told: Callable[[str], None]) -> None:
        self.person, self.home, self._told = person, home, told
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        self.environment = {**kept, "HOME": str(home), "LC_ALL": locale, "PYTHONUTF8": "1"}
        self.commands = self.lines = 0
        self.seconds = 0.0

    def run(self, *arguments: str, within: Path, expects: str) -> str:
        begun = time.perf_counter()
        done = subprocess.run(
            [*OCTAVO, *arguments], cwd=within, env=self.environment, capture_output=True, encoding="utf-8", check=False
        )
        printed = done.stdout + done.stderr
        fine = done.returncode == 0 and "Traceback" not in printed and re.search(expects, printed) is not None
        self.step(f"octavo {' '.join(arguments)}", time.perf_counter() - begun, printed, fine=fine)
        return printed

    def step(self, what: str, seconds: float, printed: str, *, fine: bool) -> None:
        lines = len(printed.splitlines())
        self.commands, self.lines, self.seconds = self.commands + 1, self.lines + lines, self.seconds + seconds
        self._told(f"{self.person:8} {seconds:6.2f}s {lines:4} lines  {what}")
        if not fine:
            raise Surprise(f"{self.person}: {what}\n{printed}")


def editor(play: Play, agents: int) -> None:
    """A folder in an editor: one command, and the client starts the rest by itself."""
    notes = filled(play.home / "notes", HANDBOOK)
    play.run("install", "claude-code", str(notes), "--yes", within=play.home, expects="written")
    entry = json.loads((play.home / ".claude.json").read_text("utf-8"))["mcpServers"]["octavo"]
    asked = [
        ("server/discover", {}),
        ("tools/list", {}),
        ("resources/list", {}),
        ("tools/call", {"name": "search", "arguments": {"query": "how much leave is there"}}),
        ("tools/call", {"name": "read", "arguments": {"target": "people/leave.md"}}),
    ]
    frames = "".join(f"{json.dumps(_frame(number, *one))}\n" for number, one in enumerate(asked, 1))
    begun = time.perf_counter()
    client = subprocess.Popen(
        [entry["command"], *entry["args"]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=play.environment, encoding="utf-8",
    )  # fmt: skip
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write(frames)
    client.stdin.flush()
    answers = {one["id"]: one for one in (json.loads(line) for _, line in zip(asked, client.stdout, strict=False))}
    _, printed = client.communicate()
    good = len(answers) == len(asked) and all("result" in one for one in answers.values())
    fine = good and not printed and all("Twenty-five" in json.dumps(answers[n]) for n in (4, 5))
    printed += "" if fine else json.dumps(answers)
    play.step("(the client: tools, a search, a read)", time.perf_counter() - begun, printed, fine=fine)
    play.run("uninstall", "claude-code", "--yes", within=play.home, expects="removed|taken")


def team(play: Play, agents: int) -> None:
    """A handbook for several agents over HTTP, each with a key, and with no more than its own."""
    base = filled(play.home / "handbook", HANDBOOK)
    names = [f"agent-{number}" for number in range(1, agents + 1)]
    play.run("init", "handbook", "--agents", ",".join(names), "--yes", within=play.home, expects="written")
    proposed = json.loads(
        play.run("init", ".", "--agents", ",".join(names), "--dry-run", "--json", within=base, expects='"sees"')
    )
    play.run("check", within=base, expects="agents")
    keys = [play.run("keys", "new", name, "--json", within=base, expects="octavo_") for name in names]
    with _serving(play, base) as port:
        for agent, key in zip(proposed["agents"], keys, strict=True):
            begun = time.perf_counter()
            told = _asked(port, re.findall(r"octavo_[\w-]+", key)[0], "resources/list", {})
            listed = [one["uri"] for one in told["result"]["resources"]]
            fine = len(listed) == sum(agent["sees"].values())
            play.step(f"({agent['id']} lists {len(listed)})", time.perf_counter() - begun, "", fine=fine)
        begun = time.perf_counter()
        refused = _asked(port, "octavo_of_nobody", "resources/list", {})
        play.step("(a key of nobody is refused)", time.perf_counter() - begun, "", fine="result" not in refused)
    play.run("audit", "verify", within=base, expects="ok")


def author(play: Play, agents: int) -> None:
    """A handbook in Korean, by whoever writes it."""
    base = filled(play.home / "핸드북", KOREAN)
    play.run("init", "핸드북", "--yes", within=play.home, expects="에 썼습니다")
    play.run("check", within=base, expects="에이전트")
    play.run("new", "doc", "정책/재택", "--title", "재택 근무", within=base, expects="doc://정책/재택")
    play.run("ls", "--as", "agent-reader", within=base, expects="doc://정책/재택")
    play.run("search", "휴가가 며칠인가요", "--as", "agent-reader", within=base, expects="doc://정책/휴가")
    play.run("cat", "sop://장애", "--as", "agent-reader", within=base, expects="당직")
    play.run("explain", "agent-reader", "read", "doc://정책/휴가", within=base, expects="허용")


PEOPLE: dict[str, tuple[Callable[[Play, int], None], str]] = {
    "editor": (editor, "C.UTF-8"),
    "team": (team, "C.UTF-8"),
    "author": (author, "ko_KR.UTF-8"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10, help="how many agents the team has")
    parser.add_argument("--only", default=",".join(PEOPLE), help="of these people alone, with commas")
    given = parser.parse_args()
    surprised = False
    for person in given.only.split(","):
        acts, locale = PEOPLE[person]
        with tempfile.TemporaryDirectory() as home:
            play = Play(person, Path(home), locale, lambda line: print(line, flush=True))
            try:
                acts(play, given.agents)
                end = "no surprise"
            except Surprise as surprise:
                surprised, end = True, f"SURPRISE: {surprise}"
            print(f"{person:8} {play.seconds:6.2f}s {play.lines:4} lines  {play.commands} steps, {end}\n", flush=True)
    return int(surprised)


def filled(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def _frame(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}


@contextmanager
def _serving(play: Play, base: Path) -> Iterator[int]:
    begun = time.perf_counter()
    server = subprocess.Popen(
        [*OCTAVO, "serve", "--port", "0"], cwd=base, env=play.environment, stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert server.stderr is not None
    printed = ""
    try:
        for line in server.stderr:
            printed += line
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line):
                break
        else:
            found = None
        play.step("octavo serve --port 0", time.perf_counter() - begun, printed, fine=found is not None)
        assert found is not None
        yield int(found[1])
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        server.stderr.close()


def _asked(port: int, key: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
    }
    connection.request("POST", "/mcp", json.dumps(_frame(1, method, params)), headers)
    body = connection.getresponse().read()
    connection.close()
    found: dict[str, Any] = json.loads(body) if body else {}
    return found


if __name__ == "__main__":
    sys.exit(main())
