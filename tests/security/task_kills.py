"""Kills a real server, again and again, while its tools are at work as tasks.

    python -m tests.security.task_kills --kills 30

After each kill the next life of the server must know every handle that was given out: a task that was seen to end says
the same as before, one that can begin again ends well, and any other says that it was lost or how it ended. The handles
of one agent are tried by the other and must look as if they never were. Every request that was answered must have one
record. Prints one line of JSON.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.audit.kills import of_life
from tests.e2e.harness import Asking, Place
from tests.e2e.organisation import BRAND, CONFIGURATION, OPS, configure, organisation

EXTENSION = "io.modelcontextprotocol/tasks"
DECLARED = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}, "elicitation": {}}}
CLIENTS = {"agent-brand": BRAND, "agent-ops": OPS}

# A tool that waits for a file waits for an event that the test decides about.
PLUGIN = """
import asyncio, pathlib
from octavo.core.tools import Hints

HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
HERE = pathlib.Path(__file__).parent / "signals"
LABEL = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def until(name):
    while not (HERE / name).exists():
        await asyncio.sleep(0.005)


def register(octavo):
    def tool(name, handler, **more):
        octavo.tool(name, handler, description="Waits.", hints=HINTS, input_schema=LABEL, timeout=120.0, **more)

    async def wait(ctx, arguments):
        label = arguments["label"]
        await ctx.progress(1, 2, f"waiting for {label}")
        try:
            await until(label)
        except asyncio.CancelledError:
            (HERE / f"{label}.stopped").touch()
            raise
        return f"{label} came"

    async def ask(ctx, arguments):
        answer = await ctx.ask_user(f"Who is {arguments['label']}?", FORM)
        return f"{answer.action}: {answer.content.get('name')}"

    async def step(ctx, arguments):
        await until("always")
        await asyncio.sleep(0.02)
        return f"{arguments['label']} was done"

    tool("wait", wait, task="may")
    tool("again", wait, task="may", resumes=True)
    tool("ask", ask, task="may")
    tool("step", step, task="may")
    tool("only_ops", step, task="must")
    tool("guarded", step, task="may")
"""
RULES = """\
  - {who: "*", may: invoke, what: "tool://*"}
  - {who: agent-brand, may: invoke, what: "tool://only_ops", effect: deny}
  - {who: "*", may: invoke, what: "tool://guarded", approve: human}
"""


@dataclass
class Figures:
    kills: int = 0
    tasks: int = 0
    ended_before: int = 0
    lost: int = 0
    resumed: int = 0
    finished: int = 0
    wrong: list[str] = field(default_factory=list)
    handles_tried_by_others: int = 0
    handles_used_by_others: int = 0
    answered: int = 0
    records: int = 0

    @property
    def good(self) -> bool:
        return not self.wrong and not self.handles_used_by_others and self.records >= self.answered > 0


def plant(base: Path, *, more: str = "") -> Place:
    place = Place(base)
    organisation(place)
    (base / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    (base / "signals").mkdir()
    (base / "signals" / "always").touch()
    text = CONFIGURATION.replace("limits:", f"{RULES}plugins: [{{path: ./plugin.py}}]\nlimits:")
    configure(place, f"{text}tasks: {{after: 1ms, running: 1000{more}}}\n")
    return place


def call(asking: Asking, tool: str, label: str) -> Any:
    asked = {"name": tool, "arguments": {"label": label}, "_meta": DECLARED}
    return asking.ask("tools/call", asked).result


def get(asking: Asking, task: str) -> Mapping[str, Any]:
    body: Mapping[str, Any] = asking.ask("tasks/get", {"taskId": task, "_meta": DECLARED}).body
    return body


def live(place: Place, life: int, kill_after: int, given: dict[str, tuple[str, str, str]], seen: dict[str, Any]) -> int:
    """Until so many requests were answered; how many were."""
    answered: list[str] = []
    with place.serve("--config", place.base / "octavo.yaml") as server:

        def work(agent: str, key: str, seed: int) -> None:
            chance, asking, mine = random.Random(seed), server.asking(key), list[str]()
            with suppress(OSError, HTTPException):
                for number in range(10_000):
                    tool = chance.choice(("wait", "again", "step", "step"))
                    label = f"{life}-{agent}-{number}"
                    made = call(asking, tool, label)
                    answered.append("call")
                    if made["resultType"] == "task":
                        given[made["taskId"]] = agent, tool, label
                        mine.append(made["taskId"])
                    if mine:
                        now = get(asking, chance.choice(mine))["result"]
                        answered.append("poll")
                        if now["status"] == "completed":
                            seen[now["taskId"]] = now
                    if len(answered) >= kill_after:
                        server.process.send_signal(signal.SIGKILL)

        clients = [threading.Thread(target=work, args=(*one, life)) for one in CLIENTS.items()]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    return len(answered)


def look(place: Place, given: Mapping[str, tuple[str, str, str]], seen: Mapping[str, Any], figures: Figures) -> None:
    for _, tool, label in given.values():
        if tool == "again":
            (place.base / "signals" / label).touch()
    with place.serve("--config", place.base / "octavo.yaml") as server:
        asking = {agent: server.asking(key) for agent, key in CLIENTS.items()}
        unknown = get(asking["agent-ops"], "x" * 32)["error"]
        for task, (agent, tool, label) in given.items():
            other = next(asking[one] for one in CLIENTS if one != agent)
            figures.handles_tried_by_others += 1
            figures.handles_used_by_others += get(other, task).get("error", {}).get("code") != unknown["code"]
            told = get(asking[agent], task)
            if "result" not in told:
                figures.wrong.append(f"{label} of {tool} is not known: {told}")
                continue
            now = told["result"]
            while now["status"] == "working" and tool == "again":
                now = get(asking[agent], task)["result"]
            before = seen.get(task)
            if before is not None:
                figures.ended_before += 1
                if now["result"] != before["result"]:
                    figures.wrong.append(f"{label} of {tool} says something else")
            elif now["status"] == "completed":
                figures.resumed += tool == "again"
                figures.finished += tool == "step"
                if tool == "wait" or now["result"]["isError"]:
                    figures.wrong.append(f"{label} of {tool} has ended: {now}")
            elif now["status"] == "failed" and tool != "again" and "stopped" in now["error"]["message"]:
                figures.lost += 1
            else:
                figures.wrong.append(f"{label} of {tool} is {now['status']}")


def run(base: Path, kills: int, seed: int, requests: int = 40) -> Figures:
    chance, figures, place, known = random.Random(seed), Figures(), plant(base), set[Path]()
    for life in range(kills):
        given: dict[str, tuple[str, str, str]] = {}
        seen: dict[str, Any] = {}
        answered = live(place, life, chance.randint(4, requests), given, seen)
        mine = [one for one in of_life(place, known) if one["op"] in ("invoke", "poll") and "parent" not in one]
        look(place, given, seen, figures)
        of_life(place, known)
        figures.kills += 1
        figures.tasks += len(given)
        figures.answered += answered
        figures.records += len(mine)
        if not answered <= len(mine) <= answered + len(CLIENTS):  # each may have one more that was not answered
            figures.wrong.append(f"{answered} answers, {len(mine)} records")
        print(f"life {life + 1}: {answered} answers, {len(given)} tasks", file=sys.stderr)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), asked.kills, asked.seed)
    print(json.dumps({**vars(figures), "good": figures.good}))
    raise SystemExit(not figures.good)


if __name__ == "__main__":
    main()
