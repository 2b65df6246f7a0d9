"""One policy, seen from outside: two agents with keys over HTTP, refusals, hiding, lists, cursors and reloads."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, Answer, Asking, Place, Server, audit_records
from tests.e2e.organisation import BRAND, CONFIGURATION, OPENED, OPS, REVOKED, WHY, configure, organisation

pytestmark = pytest.mark.slow
both_eras = pytest.mark.parametrize("era", ERAS)

SALARY, MERGER = "file://hr/salary.md", "file://board/merger.md"
RELOADED, KEPT = "configuration reloaded from", "the new configuration is not used, the old one stays"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    organisation(made)
    return made


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    with place.serve("--config", place.base / "octavo.yaml") as running:
        yield running
    assert "Traceback" not in running.log.text


def read(asking: Asking, uri: str) -> Answer:
    return asking.ask("resources/read", {"uri": uri})


def listed(asking: Asking, **params: Any) -> list[str]:
    uris: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = asking.ask("resources/list", {**params, **cursor}).result
        uris += [one["uri"] for one in page["resources"]]
        if "nextCursor" not in page:
            return uris
        cursor = {"cursor": page["nextCursor"]}


@both_eras
@pytest.mark.seed("O13", "O14", "B2", "A8")
def test_a_refusal_says_who_lacks_what_and_why(place: Place, server: Server, era: str) -> None:
    refused = read(server.asking(BRAND, era).open(), SALARY).error
    assert (refused["code"], refused["message"]) == (-32003, f"Access denied to resource: {SALARY}")
    assert refused["data"] == {
        "reason": "forbidden",
        "agent": "agent-brand",
        "required_permission": "read",
        "resource": "file://hr/*",
        "why": WHY,
    }
    (content,) = read(server.asking(OPS, era).open(), SALARY).result["contents"]
    assert content["text"] == "# Salaries, 급여\n"


@pytest.mark.seed("O14", "B2", "A7")
def test_explain_and_the_audit_name_the_rule_that_refused(place: Place, server: Server) -> None:
    assert read(server.asking(BRAND), SALARY).error["data"]["why"] == WHY
    (record,) = audit_records(place.base)
    assert (record["who"], record["op"], record["uri"], record["outcome"]) == (
        "agent-brand", "read", SALARY, "forbidden",
    )  # fmt: skip
    done = place.run("explain", "agent-brand", "read", SALARY, "--config", place.base / "octavo.yaml", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["allowed"], told["why"], told["pattern"]) == (1, False, WHY, "file://hr/*")
    assert told["rule"] == record["rule"] == "policy[1]"
    text = (place.base / "octavo.yaml").read_text(encoding="utf-8").splitlines()
    assert "file://hr/*" in text[told["line"] - 1]
    allowed = place.run("explain", "agent-ops", "read", SALARY, "--config", place.base / "octavo.yaml", "--json")
    assert (allowed.returncode, json.loads(allowed.stdout)["rule"]) == (0, "policy[0]")


@both_eras
@pytest.mark.seed("A8")
def test_without_a_known_key_nothing_is_said(server: Server, era: str) -> None:
    for key in (None, "", "octavo_guess", BRAND[:-1], BRAND + "x", BRAND.upper()):
        answer = server.asking(key, era).ask("initialize" if era == "legacy" else "resources/list")
        assert answer.status == 401
        challenge = answer.headers["www-authenticate"]
        assert challenge.startswith('Bearer realm="octavo"')
        assert ('error="invalid_token"' in challenge) is (key is not None)
        assert set(answer.body) == {"error", "message"} and answer.body["error"] == "unauthenticated"
        assert not key or key not in json.dumps(answer.body)


@both_eras
@pytest.mark.seed("B2", "O13")
def test_what_a_rule_hides_looks_like_what_is_not_there(server: Server, era: str) -> None:
    asking = server.asking(BRAND, era).open()

    def answered(method: str, uri: str) -> Any:
        params: dict[str, Any] = {"uri": uri}
        if method == "completion/complete":
            params = {
                "ref": {"type": "ref/resource", "uri": "file://{+path}"},
                "argument": {"name": "path", "value": uri.removeprefix("file://")[:-4]},
            }
        elif method == "resources/list":
            params = {"_meta": {"dev.octavo/filter": {"under": uri.rpartition("/")[0]}}}
        answer = asking.ask(method, params)
        body = {name: value for name, value in answer.body.items() if name != "id"}
        return answer.status, sorted(answer.headers), json.dumps(body).replace(uri, "URI")

    for method in ("resources/read", "resources/list", "completion/complete"):
        hidden, gone, absent = (
            answered(method, uri) for uri in (MERGER, "file://board/nothing.md", "file://bored/merger.md")
        )
        assert hidden == gone == absent, method


@both_eras
@pytest.mark.seed("B2", "F6", "O14")
def test_lists_hold_what_each_may_see_on_full_pages(server: Server, era: str) -> None:
    brand, ops = server.asking(BRAND, era).open(), server.asking(OPS, era).open()
    names = ("board/merger.md", "docs/guide.md", "docs/한국/소개.md", "hr/salary.md", "notes/plan.txt")
    assert listed(ops) == [f"file:///root/{name}" for name in names]
    assert listed(brand) == [f"file:///root/{name}" for name in names if not name.startswith(("board/", "hr/"))]
    # Three fit on a page, and there are three: a page is refilled, not left with holes that tell of the others.
    assert "nextCursor" not in brand.ask("resources/list").result


@both_eras
@pytest.mark.seed("A2", "B2")
def test_a_cursor_belongs_to_whom_it_was_given(server: Server, era: str) -> None:
    brand, ops = server.asking(BRAND, era).open(), server.asking(OPS, era).open()
    cursor = ops.ask("resources/list").result["nextCursor"]
    assert ops.ask("resources/list", {"cursor": cursor}).result["resources"]
    turned = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    for asking, bad in ((brand, cursor), (ops, turned), (ops, ""), (ops, "x" * 5000)):
        refused = asking.ask("resources/list", {"cursor": bad}).error
        assert (refused["code"], refused["data"]["reason"]) == (-32602, "invalid_cursor")


@both_eras
@pytest.mark.parametrize("by", ("file", "signal"))
@pytest.mark.seed("O14", "B2")
def test_a_new_configuration_holds_on_open_connections(place: Place, server: Server, era: str, by: str) -> None:
    brand, ops = server.asking(BRAND, era).open(), server.asking(OPS, era).open()
    assert read(brand, SALARY).error["code"] == -32003

    def change(text: str, expected: str) -> str:
        begun = len(server.log)
        configure(place, text)
        if by == "signal":
            server.process.send_signal(signal.SIGHUP)
        return server.log.wait_for(expected, after=begun)[0]

    change(OPENED, RELOADED)
    assert read(brand, SALARY).result["contents"][0]["text"] == "# Salaries, 급여\n"
    assert place.listed("hr/salary.md") in listed(brand) and place.listed("board/merger.md") not in listed(brand)

    # A broken one is refused, with its place, and nothing changes.
    begun = len(server.log)
    change(OPENED.replace("policy:", "polcy:"), KEPT)
    assert "polcy" in server.log.wait_for(r"octavo\.yaml:\d+.*polcy", after=begun)[0]
    assert read(brand, SALARY).result and read(brand, MERGER).error

    change(CONFIGURATION, RELOADED)
    assert read(brand, SALARY).error["code"] == -32003
    assert read(ops, SALARY).result

    # A key that is taken away is worth nothing from then on.
    change(REVOKED, RELOADED)
    assert brand.ask("resources/list").status == 401
    assert read(ops, SALARY).result
