"""Progress, and a cancellation that really stops the work: both transports, both eras. Limits that leave room."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.harness import ENVELOPE, LEGACY, LIMIT, MODERN, Asking, Pipe, Place, Server
from tests.e2e.organisation import BRAND, OPS
from tests.security.task_kills import plant

pytestmark = [pytest.mark.slow, pytest.mark.seed("T9")]
both_eras = pytest.mark.parametrize("era", ("modern", "legacy"))

IN_FLIGHT = 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    base = tmp_path_factory.mktemp("stops")
    planted = plant(base)
    file = base / "octavo.yaml"
    text = file.read_text(encoding="utf-8").replace("page: 3}", f"page: 3, in_flight: {IN_FLIGHT}}}")
    file.write_text(text, encoding="utf-8")
    return planted


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with place.serve("--config", place.base / "octavo.yaml") as running:
        yield running
    assert "Traceback" not in running.log.text


def waits(label: str) -> dict[str, Any]:
    return {"name": "wait", "arguments": {"label": label}, "_meta": {"progressToken": f"token-{label}"}}


def stopped(place: Place, label: str, asking: Pipe | Asking) -> bool:
    """Once the tool was really stopped. Each turn waits for an answer of the server."""
    for _ in range(10_000):
        if (place.base / "signals" / f"{label}.stopped").exists():
            return True
        asking.ask("tools/list")
    return False


@both_eras
def test_on_stdio(place: Place, era: str) -> None:
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-brand", era=era) as pipe:
        request = pipe.request("tools/call", waits(f"pipe-{era}"))
        pipe.tell(request)
        told = pipe.next_message()
        assert told["method"] == "notifications/progress"
        assert told["params"]["progressToken"] == f"token-pipe-{era}"
        assert (told["params"]["progress"], told["params"]["total"]) == (1, 2)
        pipe.tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}})
        assert stopped(place, f"pipe-{era}", pipe)


@both_eras
def test_over_http(place: Place, server: Server, era: str) -> None:
    """In the modern era whoever hangs up has cancelled; in the older one that must be said."""
    label = f"http-{era}"
    other = server.asking(BRAND, era).open()
    params = waits(label)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {BRAND}",
        "MCP-Protocol-Version": MODERN if era == "modern" else LEGACY,
    }
    if era == "modern":
        params["_meta"] = {**ENVELOPE, **params["_meta"]}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "wait"}
    else:
        headers["Mcp-Session-Id"] = other._session
    address = server.url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(address, timeout=LIMIT)
    body = {"jsonrpc": "2.0", "id": "to-be-stopped", "method": "tools/call", "params": params}
    connection.request("POST", "/mcp", json.dumps(body).encode(), headers)
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")
    lines = iter(stream.readline, b"")
    told = next(line for line in lines if b"notifications/progress" in line)
    assert f"waiting for {label}" in told.decode()
    if era == "modern":
        stream.close()
        connection.close()
    else:
        other._send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "to-be-stopped"}}, {}
        )
    assert stopped(place, label, other)
    connection.close()


def test_who_has_all_his_calls_at_work_leaves_room_for_others(place: Place, server: Server) -> None:
    labels = [f"fair-{number}" for number in range(IN_FLIGHT)]
    answers: dict[str, Any] = {}

    def call(label: str) -> None:
        asked = {"name": "wait", "arguments": {"label": label}}
        asking = server.asking(BRAND)
        while (told := asking.ask("tools/call", asked).result)["isError"]:
            pass  # the call that looks whether all have come took the place
        answers[label] = told

    threads = [threading.Thread(target=call, args=(label,)) for label in labels]
    for thread in threads:
        thread.start()
    brand, ops = server.asking(BRAND), server.asking(OPS)
    while not (refused := brand.ask("tools/call", {"name": "step", "arguments": {"label": "x"}})).result["isError"]:
        pass  # not all of them have come yet
    error = refused.result["structuredContent"]["error"]["data"]
    assert (error["reason"], error["limit"]) == ("rate_limited", "in_flight")
    done = ops.ask("tools/call", {"name": "step", "arguments": {"label": "other"}}).result
    assert done["content"][0]["text"] == "other was done"
    for label in labels:
        (place.base / "signals" / label).touch()
    for thread in threads:
        thread.join(LIMIT)
    assert {label: told["content"][0]["text"] for label, told in answers.items()} == {
        label: f"{label} came" for label in labels
    }
