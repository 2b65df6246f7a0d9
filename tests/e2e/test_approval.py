"""Approval by a human, seen from outside: real clients in both eras, the queue, foreign handles, races, restarts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.e2e.harness import ERAS, Asking, Place, Server, audit_records, octavo
from tests.e2e.organisation import BRAND, OPS, configure, organisation
from tests.e2e.python_client import linked, over_http

pytestmark = [
    pytest.mark.slow,
    pytest.mark.seed("T5"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
both_eras = pytest.mark.parametrize("era", ERAS)

CONFIGURATION = """\
version: 1
sources:
  work: {kind: file, roots: [./root], write: true}
agents:
  agent-brand: {key: "file:keys/agent-brand"}
  agent-ops:   {key: "file:keys/agent-ops"}
plugins: [{path: ./plugin.py}]
policy:
  - {who: "*", may: "*", what: "**"}
  - {who: "*", may: invoke, what: "tool://pay", approve: {by: 2}, why: "money"}
  - {who: "*", may: delete, what: "file://notes/*", approve: human}
  - {who: "*", may: invoke, what: "tool://info", approve: human}
"""
PLUGIN = """\
import os
from octavo.core.tools import Hints

DONE = os.path.join(os.path.dirname(__file__), "done")
ONE = {"type": "object", "properties": {"path": {"type": "string"}}}


def register(octavo):
    async def act(ctx, arguments):
        with open(DONE, "a", encoding="utf-8") as file:
            file.write(f"{ctx.principal.id} {arguments.get('path')}\\\\n")
        return "done"

    for name, destructive in (("wipe", True), ("pay", False), ("look", False)):
        hints = Hints(read_only=False, destructive=destructive, idempotent=False, open_world=False)
        octavo.tool(name, act, description=name, hints=hints, input_schema=ONE)
"""
FORMS = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}


def settled(base: Path) -> Place:
    made = Place(base)
    organisation(made)
    (made.base / "plugin.py").write_text(PLUGIN.replace("\\\\", "\\"), encoding="utf-8")
    configure(made, CONFIGURATION)
    return made


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return settled(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Server]]:
    """One server for tests that need no other state than their own."""
    place = settled(tmp_path_factory.mktemp("shared"))
    with place.serve("--config", place.base / "octavo.yaml") as running:
        yield place, running
    assert "Traceback" not in running.log.text


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    with place.serve("--config", place.base / "octavo.yaml") as running:
        yield running
    assert "Traceback" not in running.log.text


def done(place: Place) -> list[str]:
    file = place.base / "done"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def call(asking: Asking, name: str = "wipe", path: str = "notes/plan.txt", **more: Any) -> Any:
    asking.hang_up()  # a command in between may take longer than the server keeps an idle connection
    return asking.ask("tools/call", {"name": name, "arguments": {"path": path}, **more}).body


def error_of(body: Any) -> Any:
    assert body["result"]["isError"], body
    return body["result"]["_meta"]["dev.octavo/error"]


def pending(asking: Asking, *what: str) -> str:
    error = error_of(call(asking, *what))
    assert (error["code"], error["data"]["reason"]) == (-31008, "approval_required"), error
    return str(error["data"]["approval"])


def answer(state: str, allow: object = True, action: str = "accept") -> dict[str, Any]:
    said = {"action": action, **({"content": {"allow": allow}} if action == "accept" else {})}
    return {"requestState": state, "inputResponses": {"approval": said}, **FORMS}


def question(body: Any) -> Any:
    assert body["result"]["resultType"] == "input_required", body
    return body["result"]


def steps(place: Place) -> list[str]:
    return [record["outcome"] for record in audit_records(place.base) if record["op"] == "approval"]


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["stdio", "http"])
@both_eras
async def test_a_real_client_asks_its_user(place: Place, transport: str, era: str) -> None:
    asked: list[str] = []

    async def user(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        if len(asked) == 2:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"allow": True})

    config = place.base / "octavo.yaml"

    async def use(streams: Any) -> None:
        async with linked(streams, era, user) as link:
            for path, allowed in (("a", True), ("b", False), ("b", False)):
                result = await link.client.call_tool("wipe", {"path": path})
                assert result.is_error is not allowed
            assert not (await link.client.call_tool("look", {"path": "c"})).is_error
            deleted = await link.client.call_tool("delete", {"target": "notes/plan.txt"})
            assert not deleted.is_error, deleted

    if transport == "http":
        with place.serve("--config", config) as server:
            await use(over_http(server.url, BRAND))
    else:
        command, *arguments = octavo("serve", "--config", config, "--as", "agent-brand")
        with (place.base / "stderr.log").open("w+", encoding="utf-8") as log:
            served = StdioServerParameters(command=command, args=arguments, env=place.environment)
            await use(stdio_client(served, errlog=log))
    assert done(place) == ["agent-brand a", "agent-brand c"]
    assert not (place.root / "notes" / "plan.txt").exists()
    assert [line for message in asked for line in message.splitlines() if line.startswith("what")] == [
        'what: "invoke tool://wipe"', 'what: "invoke tool://wipe"', 'what: "delete file://notes/plan.txt"',
    ]  # fmt: skip
    assert 'tool: "tool://delete"' in asked[2] and "policy[2]" in asked[2] and '"agent-brand"' in asked[2]
    assert steps(place) == ["asked", "allowed", "used", "asked", "denied", "asked", "allowed", "used"]


def test_a_client_that_cannot_ask_waits_for_the_queue(place: Place) -> None:
    with place.serve("--config", place.base / "octavo.yaml") as server:
        name = pending(server.asking(BRAND, "legacy").open())
        assert pending(server.asking(BRAND, "modern")) == name
        server.log.wait_for(f"approval {name} waits for a human")
    (listed,) = json.loads(place.run("approvals", "list", "--json").stdout)["approvals"]
    assert (listed["id"], listed["state"], listed["who"]) == (name, "pending", "agent-brand")
    shown = place.run("approvals", "show", name).stdout
    assert '"path": "notes/plan.txt"' in shown and "a destructive tool of a plugin" in shown
    unsure = place.run("approvals", "allow", name, "--by", "kim")
    assert unsure.returncode != 0 and '"path": "notes/plan.txt"' in unsure.stderr
    assert place.run("approvals", "allow", name, "--by", "kim", "--yes").returncode == 0
    again = place.run("approvals", "deny", name, "--by", "lee")
    assert again.returncode == 1 and "was allowed by kim already" in again.stderr
    with place.serve("--config", place.base / "octavo.yaml") as server:  # another process: nothing is in memory alone
        ops, brand = server.asking(OPS, "legacy").open(), server.asking(BRAND, "legacy").open()
        assert pending(ops) != name
        assert pending(brand, "wipe", "notes/plan.txt ") != name
        assert done(place) == []
        assert not call(brand)["result"]["isError"]
        assert pending(brand) != name
    assert done(place) == ["agent-brand notes/plan.txt"]
    late = place.run("approvals", "allow", name, "--yes")
    assert late.returncode == 1 and f"no approval {name} now" in late.stderr
    assert steps(place).count("used") == steps(place).count("allowed") == 1
    answers = [record for record in audit_records(place.base) if record["op"].startswith("approvals ")]
    assert sorted(record["outcome"] for record in answers if "intent" in record) == ["conflict", "not_found", "ok"]
    assert place.run("audit", "verify").returncode == 0


def test_two_people_are_needed_where_the_rule_says_so(place: Place, server: Server) -> None:
    brand = server.asking(BRAND)
    name = pending(brand, "pay")
    for by, code in (("kim", 0), ("kim", 1), ("lee", 0)):
        assert "have)" in error_of(call(brand, "pay"))["message"] or by == "kim"
        assert place.run("approvals", "allow", name, "--by", by, "--yes").returncode == code
    assert not call(brand, "pay")["result"]["isError"]
    assert done(place) == ["agent-brand notes/plan.txt"]


def test_what_has_changed_since_the_question_is_asked_anew(place: Place, server: Server) -> None:
    brand = server.asking(BRAND)
    name = pending(brand)
    assert place.run("approvals", "allow", name, "--yes").returncode == 0
    place.edit("notes/plan.txt", "another plan\n")
    assert pending(brand) != name
    assert done(place) == [] and "outdated" in steps(place)


def test_a_state_is_good_for_one_principal_one_call_and_one_time(place: Place, server: Server) -> None:
    brand, ops = server.asking(BRAND), server.asking(OPS)
    first, foreign = question(call(brand, **FORMS)), question(call(ops, **FORMS))
    state = first["requestState"]
    assert first["inputRequests"]["approval"]["method"] == "elicitation/create"
    assert "default" not in json.dumps(first["inputRequests"]["approval"]["params"]["requestedSchema"])
    for refused in (
        call(ops, **answer(state)),
        call(brand, **answer(foreign["requestState"])),
        call(brand, path="notes/plan.txu", **answer(state)),
        call(brand, "pay", **answer(state)),
        call(brand, **answer(state[:-1] + ("A" if state[-1] != "A" else "B"))),
        call(brand, **answer("")),
    ):
        assert refused["error"]["code"] == -32602 and refused["error"]["data"]["reason"] == "invalid_request_state"
    for unanswered in (
        call(brand, **{**answer(state), "requestState": None}),
        call(brand, requestState=state, **FORMS),
        call(brand, **answer(state, allow="yes")),
        call(brand, **answer(state, allow=1)),
    ):
        assert question(unanswered)["inputRequests"]
    assert done(place) == []
    assert not call(brand, **answer(state))["result"]["isError"]
    replayed = question(call(brand, **answer(state)))
    assert replayed["requestState"] != state
    assert done(place) == ["agent-brand notes/plan.txt"]
    put_away = error_of(call(brand, **answer(replayed["requestState"], action="cancel")))
    assert put_away["data"]["reason"] == "forbidden"
    assert question(call(brand, **answer(replayed["requestState"])))["inputRequests"]
    assert len(done(place)) == 1


def test_what_a_person_denies_stays_denied(shared: tuple[Place, Server]) -> None:
    place, server = shared
    brand = server.asking(BRAND)
    state = question(call(brand, path="denied", **FORMS))["requestState"]
    for allow in (False, False, True):
        refused = error_of(call(brand, path="denied", **answer(state, allow=allow)))
        assert refused["data"]["reason"] == "forbidden"
    assert done(place) == []


def test_a_client_is_not_asked_what_it_cannot_show(shared: tuple[Place, Server]) -> None:
    _, server = shared
    only_links = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}}}
    assert error_of(call(server.asking(BRAND), **only_links))["data"]["reason"] == "approval_required"


def test_what_is_answered_on_the_short_way_is_asked_for_too(shared: tuple[Place, Server]) -> None:
    """`info` is a tool that the lane would answer, once it has seen the client's envelope."""
    _, server = shared
    brand, arguments = server.asking(BRAND), {"target": "docs/guide.md"}
    for name in ("read", "read", "info", "info"):
        asked = brand.ask("tools/call", {"name": name, "arguments": arguments, **FORMS}).result
        assert asked["resultType"] == ("input_required" if name == "info" else "complete")
    given = brand.ask("tools/call", {"name": "info", "arguments": arguments, **answer(asked["requestState"])}).result
    assert given["resultType"] == "complete" and not given["isError"]


def test_a_call_that_could_not_be_made_is_nobodys_question(shared: tuple[Place, Server]) -> None:
    place, server = shared
    before = steps(place)
    wrong = server.asking(BRAND).ask("tools/call", {"name": "wipe", "arguments": {"path": 7}, **FORMS}).body
    assert error_of(wrong)["data"]["reason"] == "invalid_params"
    assert steps(place) == before


def test_where_the_operator_wants_the_queue_the_client_is_not_asked(place: Place) -> None:
    configure(place, CONFIGURATION + "approval: {ask: queue, expires: 5m}\n")
    with place.serve("--config", place.base / "octavo.yaml") as server:
        assert error_of(call(server.asking(BRAND), **FORMS))["data"]["reason"] == "approval_required"


def test_two_servers_that_race_for_an_approval_use_it_once(place: Place, server: Server) -> None:
    with place.serve("--config", place.base / "octavo.yaml") as other:
        askings = [one.asking(BRAND) for one in (server, other) for _ in range(2)]
        name = pending(askings[0])
        assert place.run("approvals", "allow", name, "--yes").returncode == 0
        ready, outcomes = threading.Barrier(len(askings)), list[bool]()

        def race(asking: Asking) -> None:
            ready.wait()
            outcomes.append(call(asking)["result"]["isError"])

        racers = [threading.Thread(target=race, args=(asking,)) for asking in askings]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
    assert sorted(outcomes) == [False, True, True, True]
    assert done(place) == ["agent-brand notes/plan.txt"]
    assert steps(place).count("used") == 1
