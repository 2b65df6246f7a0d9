"""Every request has its record: counted from outside, over both transports and eras, and after a kill."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, Asking, Pipe, Place, audit_records, octavo
from tests.e2e.organisation import BRAND, CONFIGURATION, OPS, configure, organisation

pytestmark = [pytest.mark.slow, pytest.mark.seed("A7", "F9")]
both_eras = pytest.mark.parametrize("era", ERAS)

GUIDE, SALARY = "file://docs/guide.md", "file://hr/salary.md"
MIXED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resources/list", {}),
    ("resources/list", {"cursor": "nonsense"}),
    ("resources/read", {"uri": GUIDE}),
    ("resources/read", {"uri": GUIDE}),
    ("resources/read", {"uri": SALARY}),
    ("resources/read", {"uri": "file://docs/none.md"}),
    ("resources/read", {"uri": "file://../etc/passwd"}),
    ("resources/read", {"uri": "no address"}),
    ("resources/read", {"uri": 7}),
    ("resources/read", {}),
    ("resources/templates/list", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "nothing", "arguments": {}}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "nothing"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "file://{+path}"}, "argument": {"name": "path", "value": "do"}},
    ),
    ("no/such/method", {}),
)
OF_AN_ERA: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "legacy": (
        ("ping", {}),
        ("resources/subscribe", {"uri": "file://docs/*"}),
        ("resources/subscribe", {"uri": SALARY}),
        ("logging/setLevel", {"level": "info"}),
    ),
    "modern": (("server/discover", {}), ("resources/subscribe", {"uri": GUIDE})),
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    organisation(made)
    return made


def verified(place: Place) -> tuple[int, Any]:
    done = place.run("audit", "verify", "--config", place.base / "octavo.yaml", "--json")
    return done.returncode, json.loads(done.stdout)


def roots(place: Place) -> list[dict[str, Any]]:
    """Records of requests: not those of child calls, nor of subscriptions that ended."""
    return [one for one in audit_records(place.base) if "parent" not in one and one["outcome"] != "end"]


def session(asker: Asking | Pipe, era: str) -> None:
    for method, params in (*MIXED, *OF_AN_ERA[era]) * 3:
        asker.ask(method, params)


@both_eras
def test_one_record_per_request_over_stdio(place: Place, era: str) -> None:
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-brand", era=era) as pipe:
        session(pipe, era)
        pipe.ask_all([pipe.request(method, params) for method, params in MIXED * 20])
    records = roots(place)
    counted = sum(one.get("count", 1) for one in records)  # what was refused for its number is in summaries
    assert counted == pipe.requests, Counter((one["op"], one["outcome"]) for one in records)
    assert {one["who"] for one in records} == {"agent-brand"}
    code, report = verified(place)
    assert (code, report["ok"], [chain["end"] for chain in report["chains"]]) == (0, True, ["closed"])
    assert report["records"] == len(audit_records(place.base))


@both_eras
def test_one_record_per_request_over_http(place: Place, era: str) -> None:
    with place.serve("--config", place.base / "octavo.yaml") as server:
        brand, ops, nobody = server.asking(BRAND, era), server.asking(OPS, era), server.asking("wrong", era)
        for asking in (brand, ops):
            session(asking.open(), era)
        for _ in range(3):
            assert nobody.ask("ping").status == 401
        if era == "legacy":
            assert {brand.close(), ops.close()} == {200}
    records = roots(place)
    # What a client only tells, without a question, may have a record of its own in the handshake era.
    told = [one for one in records if one["op"] == "request" and one["outcome"] == "status 202"]
    counted = Counter(one["who"] for one in records if one not in told)
    assert counted == {"agent-brand": brand.requests, "agent-ops": ops.requests, "unknown": 3}, Counter(
        (one["op"], one["outcome"]) for one in records
    )
    code, report = verified(place)
    assert (code, report["ok"], len(report["chains"])) == (0, True, 1)


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_server_that_is_told_to_stop_seals_its_log(place: Place, number: signal.Signals) -> None:
    with place.serve("--config", place.base / "octavo.yaml") as server:
        assert server.asking(OPS).ask("resources/read", {"uri": GUIDE}).result
        server.process.send_signal(number)
        assert server.process.wait(20) == (130 if number == signal.SIGINT else 0)
    _, report = verified(place)
    assert [chain["end"] for chain in report["chains"]] == ["closed"]


@both_eras
@pytest.mark.parametrize("after", (1, 40, 150))
def test_after_a_kill_what_was_answered_is_on_record_once(place: Place, era: str, after: int) -> None:
    """Many requests at once, each with an address of its own, and a kill amid the answers."""
    uris = [f"file://docs/{number}.md" for number in range(400)]
    answered = []
    configure(place, CONFIGURATION.replace("page: 3", "page: 3, in_flight: 1000, total: 1000"))
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-brand", era=era) as pipe:
        assert pipe.ask("resources/read", {"uri": GUIDE})["result"]  # afterwards the hot lane is open
        requests = [pipe.request("resources/read", {"uri": uri}) for uri in uris]
        for request in requests:
            pipe.tell(request)
        asked = {request["id"]: uri for request, uri in zip(requests, uris, strict=True)}
        answered = [asked[pipe.next_message()["id"]] for _ in range(after)]
        pipe.process.send_signal(signal.SIGKILL)
        answered += [asked[json.loads(line)["id"]] for line in pipe.rest()]
    counted = Counter(one["uri"] for one in roots(place) if one["op"] == "read" and one["uri"] != GUIDE)
    assert set(counted.values()) == {1}, "no request has two records"
    assert len(answered) == len(set(answered)) >= after
    assert set(answered) <= set(counted), "every answered request has its record"
    code, report = verified(place)
    assert (code, report["ok"], report["chains"][0]["end"]) == (0, True, "open")


def test_a_changed_byte_is_found(place: Place) -> None:
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-ops") as pipe:
        for number in range(5):
            pipe.ask("resources/read", {"uri": f"file://docs/{number}.md"})
    (file,) = place.base.rglob("audit/*.jsonl")
    raw = file.read_bytes()
    assert verified(place)[0] == 0
    spots = [raw.index(b"agent-ops"), raw.index(b"docs/3.md"), raw.rindex(b'"mac"') + 8, raw.index(b'"number"') + 9]
    for spot in spots:
        file.write_bytes(raw[:spot] + bytes([raw[spot] ^ 1]) + raw[spot + 1 :])
        code, report = verified(place)
        assert (code, report["ok"]) == (1, False), raw[spot - 20 : spot + 20]
        assert report["chains"][0]["broken"]["file"] == file.name
    lines = raw.splitlines(keepends=True)
    for shorter in (lines[:2] + lines[3:], lines[:-1], lines[:-3]):
        file.write_bytes(b"".join(shorter))
        assert verified(place)[0] == 1
    file.write_bytes(raw)
    assert verified(place)[0] == 0


@pytest.mark.parametrize("closed", (True, False))
def test_a_full_audit_disk_stops_answers_or_is_told_and_the_log_stays_whole(place: Place, closed: bool) -> None:
    """The process may write no file beyond 16 KiB, which to it is a disk without room."""
    configure(place, CONFIGURATION + f"audit: {{fail_closed: {str(closed).lower()}}}\n")
    command = octavo("serve", "--config", place.base / "octavo.yaml", "--http", "127.0.0.1:0")
    with place.start("bash", "-c", 'ulimit -f 16; exec "$@"', "bash", *command) as server:
        server.ready()
        asking = server.asking(OPS)
        answers = [asking.ask("resources/read", {"uri": GUIDE}) for _ in range(200)]
        server.log.wait_for("The audit log cannot be written: File too large")
        assert server.process.poll() is None
    refused = [answer for answer in answers if answer.status == 503]
    served = [answer for answer in answers if answer.status == 200]
    assert len(refused) + len(served) == 200
    assert all(answer.error["message"] == "The audit log cannot be written" for answer in refused)
    assert all("contents" not in json.dumps(answer.body) for answer in refused)
    code, report = verified(place)
    assert (code, report["ok"]) == (0, True)
    if closed:
        assert answers == [*served, *refused], "once the log is full nothing is served"
        assert len(served) == report["records"] > 0
    else:
        assert not refused
        assert report["records"] < 200


def test_checkpoints_are_appended_behind_the_second_wall(place: Place) -> None:
    (place.base / "second").mkdir()
    configure(place, CONFIGURATION + "audit: {checkpoints: {path: second/checkpoints.jsonl, every: 10ms}}\n")
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-ops") as pipe:
        assert pipe.ask("resources/read", {"uri": GUIDE})["result"]
    assert pipe.log.text == ""
    code, report = verified(place)
    (chain,) = report["chains"]
    assert (code, chain["witnessed"], chain["records"], chain["end"]) == (0, 1, 1, "closed")


@both_eras
def test_no_secret_that_a_client_sends_is_on_record(place: Place, era: str) -> None:
    """As a key, in an address, as the name or argument of a tool, as a prompt, as a method, as a cursor."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    with place.serve("--config", place.base / "octavo.yaml") as server:
        assert server.asking(token, era).ask("ping").status == 401
        ops = server.asking(OPS, era).open()
        for method, params in (
            ("resources/read", {"uri": f"file://docs/{token}.md"}),
            ("resources/read", {"uri": f"nonsense {token}"}),
            ("resources/list", {"cursor": token}),
            ("tools/call", {"name": token, "arguments": {}}),
            ("tools/call", {"name": "read", "arguments": {"target": f"file://{token}"}}),
            ("prompts/get", {"name": token, "arguments": {token: token}}),
            (f"secret/{token}", {}),
        ):
            ops.ask(method, params)
    assert len(roots(place)) >= 8
    for file in (place.base / ".octavo").rglob("*"):
        assert file.is_dir() or token.encode() not in file.read_bytes(), file.name
    assert token not in server.log.text
