"""Calls that become tasks, over the wire: begun, followed, answered, stopped, and of use to nobody else."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ENVELOPE, Asking, Place, Server, audit_records
from tests.e2e.organisation import BRAND, OPS, configure
from tests.security.task_kills import DECLARED, EXTENSION, call, get, plant

pytestmark = [pytest.mark.slow, pytest.mark.seed("T9")]

UNKNOWN, UNDECLARED, MISMATCH = -32602, -32021, -32020


class World:
    def __init__(self, place: Place, server: Server) -> None:
        self.place, self.server = place, server
        self.brand, self.ops = server.asking(BRAND), server.asking(OPS)

    def signal(self, name: str) -> None:
        (self.place.base / "signals" / name).touch()

    def ended(self, asking: Asking, task: str) -> Any:
        """Once it has ended; each look is a request, and the server takes its time to answer none."""
        while True:
            now = get(asking, task)["result"]
            if now["status"] not in ("working", "input_required"):
                return now


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Server]]:
    base = tmp_path_factory.mktemp("tasks")
    place = plant(base)
    with place.serve("--config", base / "octavo.yaml") as server:
        yield place, server
    assert "Traceback" not in server.log.text


@pytest.fixture
def world(served: tuple[Place, Server]) -> World:
    return World(*served)


def test_a_call_that_lasts_is_answered_with_a_handle_and_its_result_comes_with_the_handle(world: World) -> None:
    discovered = world.brand.ask("server/discover").result
    assert discovered["capabilities"]["extensions"][EXTENSION] == {}
    made = call(world.brand, "wait", "rain")
    assert made["resultType"] == "task" and made["status"] == "working" and len(made["taskId"]) == 32
    assert made["ttlMs"] == (3600 + 120) * 1000
    working = get(world.brand, made["taskId"])["result"]
    assert (working["status"], working["statusMessage"]) == ("working", "1 of 2: waiting for rain")
    world.signal("rain")
    done = world.ended(world.brand, made["taskId"])
    assert done["status"] == "completed" and done["result"]["content"] == [{"type": "text", "text": "rain came"}]
    assert world.ended(world.brand, made["taskId"])["result"] == done["result"]


def test_a_handle_serves_nobody_but_its_owner(world: World) -> None:
    made = call(world.brand, "wait", "swap")
    never = {"error": get(world.ops, "x" * 32)["error"]["code"]}
    answers = {"inputResponses": {}}
    for method, more in (("tasks/get", {}), ("tasks/update", answers), ("tasks/cancel", {})):
        told = world.ops.ask(method, {"taskId": made["taskId"], "_meta": DECLARED, **more}).error
        assert {"error": told["code"]} == never == {"error": UNKNOWN}
    assert get(world.brand, made["taskId"])["result"]["status"] == "working"
    world.signal("swap")
    assert world.ended(world.brand, made["taskId"])["status"] == "completed"


def test_a_cancelled_task_really_stops(world: World) -> None:
    made = call(world.brand, "wait", "stop")
    ack = world.brand.ask("tasks/cancel", {"taskId": made["taskId"], "_meta": DECLARED}).result
    assert ack.keys() - {"_meta"} == {"resultType"}
    assert world.ended(world.brand, made["taskId"])["status"] == "cancelled"
    assert (world.place.base / "signals" / "stop.stopped").exists()
    assert world.brand.ask("tasks/cancel", {"taskId": made["taskId"], "_meta": DECLARED}).result == ack


def test_a_task_that_asks_waits_for_an_answer_that_fits(world: World) -> None:
    task = call(world.brand, "ask", "Kim")["taskId"]
    asked = get(world.brand, task)["result"]
    assert asked["status"] == "input_required"
    ((key, question),) = asked["inputRequests"].items()
    assert question["method"] == "elicitation/create" and question["params"]["message"] == "Who is Kim?"
    wrong: tuple[Any, ...] = ({}, {"name": 5}, {"further": "Kim"}, "text")
    for content in wrong:
        update(world.brand, task, key, content)
        assert get(world.brand, task)["result"]["inputRequests"].keys() == {key}
    update(world.brand, task, "question-99", {"name": "Lee"})
    update(world.brand, task, key, {"name": "김", "further": 1})
    assert world.ended(world.brand, task)["result"]["content"][0]["text"] == "accept: 김"


def update(asking: Asking, task: str, key: str, content: Any) -> None:
    answers = {key: {"action": "accept", "content": content}}
    asked = {"taskId": task, "inputResponses": answers, "_meta": DECLARED}
    assert asking.ask("tasks/update", asked).result["resultType"] == "complete"


def test_a_client_without_the_extension_gets_no_task(world: World) -> None:
    plain = world.ops.ask("tools/call", {"name": "step", "arguments": {"label": "x"}}).result
    assert plain["resultType"] == "complete" and plain["content"][0]["text"] == "x was done"
    needed = world.ops.ask("tools/call", {"name": "only_ops", "arguments": {"label": "x"}}).error
    assert needed["code"] == UNDECLARED
    assert needed["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}
    assert world.ops.ask("tasks/get", {"taskId": "x"}).error["code"] == UNDECLARED
    # Who may not call the tool is not told that it is there.
    hidden = world.brand.ask("tools/call", {"name": "only_ops", "arguments": {"label": "x"}})
    assert "error" not in hidden.body or hidden.error["code"] != UNDECLARED


def test_a_handle_in_the_header_that_is_not_the_one_in_the_body_is_refused(world: World) -> None:
    params = {"taskId": "x" * 32, "_meta": DECLARED, "name": "other"}
    assert world.brand.ask("tasks/get", params).error["code"] == UNKNOWN
    sent = world.brand._send(  # a header that no client of ours would send
        {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {**params, "_meta": {**ENVELOPE, **DECLARED}}},
        {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tasks/get", "Mcp-Name": "y"},
    )
    assert sent.error["code"] == MISMATCH


def test_a_human_is_asked_before_a_call_becomes_a_task_and_not_about_its_handle(world: World) -> None:
    asked = {"name": "guarded", "arguments": {"label": "g"}, "_meta": DECLARED}
    first = world.ops.ask("tools/call", asked).result
    assert first["resultType"] == "input_required" and "taskId" not in first
    answers = {key: {"action": "accept", "content": {"allow": True}} for key in first["inputRequests"]}
    again = {**asked, "inputResponses": answers, "requestState": first["requestState"]}
    made = world.ops.ask("tools/call", again).result
    assert made["resultType"] == "task" and "requestState" not in made
    assert world.ended(world.ops, made["taskId"])["status"] == "completed"


def test_tasks_are_bounded_for_each_agent(tmp_path: Path) -> None:
    place = plant(tmp_path, more=", kept: 3")
    with place.serve("--config", tmp_path / "octavo.yaml") as server:
        brand = server.asking(BRAND)
        for number in range(3):
            assert call(brand, "wait", f"many-{number}")["resultType"] == "task"
        refused = call(brand, "wait", "one-more")
        assert refused["isError"] and refused["structuredContent"]["error"]["data"]["limit"] == "tasks"
        assert (tmp_path / "signals" / "one-more.stopped").exists()
        assert call(server.asking(OPS), "wait", "other")["resultType"] == "task"


def test_every_request_about_a_task_has_one_record_and_the_work_is_a_child(world: World) -> None:
    before, asked = len(audit_records(world.place.base / ".octavo")), world.brand.requests
    made = call(world.brand, "wait", "audit")
    world.signal("audit")
    world.ended(world.brand, made["taskId"])
    get(world.ops, made["taskId"])
    records = audit_records(world.place.base / ".octavo")[before:]
    begun, work = sorted((one for one in records if one["op"] == "invoke"), key=lambda one: "parent" in one)
    polls = [one for one in records if one["op"] == "poll"]
    assert work["parent"] == begun["id"] and work["outcome"] == begun["outcome"] == "ok"
    assert len(polls) == world.brand.requests - asked - 1 + 1
    assert polls[-1]["outcome"] == "invalid_params"
    assert made["taskId"] not in json.dumps(records)


def test_each_new_state_of_a_task_is_told_to_who_listens(world: World) -> None:
    with world.place.pipe("--config", world.place.base / "octavo.yaml", "--as", "agent-ops") as pipe:
        asked = {"name": "wait", "arguments": {"label": "heard"}, "_meta": DECLARED}
        task = pipe.ask("tools/call", asked)["result"]["taskId"]
        wanted = {"notifications": {"taskIds": [task, "x" * 32]}, "_meta": DECLARED}
        pipe.tell(pipe.request("subscriptions/listen", wanted))
        acknowledged = pipe.next_message()
        assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
        first = pipe.next_message()
        assert (first["method"], first["params"]["status"]) == ("notifications/tasks", "working")
        world.signal("heard")
        last = pipe.next_message()
        assert (last["params"]["status"], last["params"]["taskId"]) == ("completed", task)
        assert last["params"]["result"]["content"][0]["text"] == "heard came"


def test_who_may_no_longer_call_the_tool_is_told_nothing_of_its_task(tmp_path: Path) -> None:
    place = plant(tmp_path)
    rules = (tmp_path / "octavo.yaml").read_text(encoding="utf-8")
    taken = '{who: agent-brand, may: invoke, what: "tool://wait", effect: deny%s}'
    with place.serve("--config", tmp_path / "octavo.yaml") as server:
        brand = server.asking(BRAND)
        ended, working = call(brand, "wait", "soon")["taskId"], call(brand, "wait", "later")["taskId"]
        (tmp_path / "signals" / "soon").touch()
        World(place, server).ended(brand, ended)
        for hide in ("", ", hide: true"):
            said = len(server.log)
            configure(place, rules.replace("policy:\n", f"policy:\n  - {taken % hide}\n"))
            server.process.send_signal(signal.SIGHUP)
            server.log.wait_for("configuration reloaded from", after=said)
            never = json.dumps({**get(brand, "x" * 32), "id": 0})
            for task in (ended, working):
                for method in ("tasks/get", "tasks/cancel"):
                    told = brand.ask(method, {"taskId": task, "_meta": DECLARED}).body
                    assert "result" not in told
                    assert (json.dumps({**told, "id": 0}).replace(task, "x" * 32) == never) is bool(hide), told
    assert "Traceback" not in server.log.text


def test_a_task_can_be_asked_for_and_stopped_when_its_tool_is_no_longer_configured(tmp_path: Path) -> None:
    place = plant(tmp_path)
    text = (tmp_path / "octavo.yaml").read_text(encoding="utf-8")
    with place.serve("--config", tmp_path / "octavo.yaml") as server:
        brand = server.asking(BRAND)
        task = call(brand, "wait", "never")["taskId"]
        said = len(server.log)
        configure(place, text.replace("plugins: [{path: ./plugin.py}]\n", ""))
        server.process.send_signal(signal.SIGHUP)
        server.log.wait_for("configuration reloaded from", after=said)
        assert get(brand, task)["result"]["status"] == "working"
        assert brand.ask("tasks/cancel", {"taskId": task, "_meta": DECLARED}).result
        assert World(place, server).ended(brand, task)["status"] == "cancelled"
    assert (tmp_path / "signals" / "never.stopped").exists()


def test_a_stopped_server_says_so_and_a_client_in_the_older_era_knows_no_tasks(tmp_path: Path) -> None:
    place = plant(tmp_path)
    with place.serve("--config", tmp_path / "octavo.yaml") as server:
        task = call(server.asking(BRAND), "wait", "never")["taskId"]
    with place.serve("--config", tmp_path / "octavo.yaml") as server:
        told = get(server.asking(BRAND), task)["result"]
        assert told["status"] == "failed" and "stopped" in told["error"]["message"]
        old = server.asking(BRAND, "legacy").open()
        assert old.ask("tasks/get", {"taskId": task}).error["code"] == -32601
        plain = old.ask("tools/call", {"name": "step", "arguments": {"label": "x"}}).result
        assert plain["content"][0]["text"] == "x was done"
