"""A real server over a real wire: `server/config` in both eras, roots, and what is recorded of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, LEGACY, Pipe, Place, audit_records

pytestmark = [pytest.mark.slow, pytest.mark.seed("F4")]
both_eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    for name in ("docs/a.md", "docs/b.txt", "hr/pay.md"):
        made.edit(name, f"{name}\n")
    return made


def names(answer: Any) -> list[str]:
    return [one["uri"] for one in answer["result"]["resources"]]


@both_eras
def test_a_client_on_stdio_narrows_its_own_server_and_each_request_has_one_record(place: Place, era: str) -> None:
    with place.pipe(place.root, era=era) as pipe:
        for _ in range(3):  # also what the short way has learnt and the cache has kept
            assert len(names(pipe.ask("resources/list"))) == 3
            assert "result" in pipe.ask("resources/read", {"uri": "file://hr/pay.md"})
        left = pipe.ask("server/config", {"allowedDirectories": ["docs"], "allowedExtensions": [".md"]})["result"]
        assert left["allowedDirectories"] == [str(place.root / "docs")] and left["allowedExtensions"] == [".md"]
        refused = pipe.ask("server/config", {"allowedDirectories": ["/etc"]})["error"]
        assert (refused["code"], refused["data"]["reason"]) == (-32003, "forbidden")
        assert pipe.ask("server/config", {"allowedDirectories": []})["error"]["code"] == -32602
        for _ in range(3):
            assert names(pipe.ask("resources/list")) == ["file://docs/a.md"]
            assert pipe.ask("resources/read", {"uri": "file://hr/pay.md"})["error"]["code"] == -32003
            assert pipe.ask("resources/read", {"uri": "file://docs/b.txt"})["error"]["code"] == -32003
    asked = [record["outcome"] for record in audit_records(place.base / "state") if record["op"] == "server/config"]
    asked = [outcome for outcome in asked if outcome != "intent"]  # which is on record before something is changed
    assert asked == ["ok", "forbidden", "invalid_params"]


def test_over_http_only_an_admin_may(place: Place) -> None:
    place.base.joinpath("octavo.yaml").write_text(
        f"""
        sources: {{work: {{kind: file, roots: [./root]}}}}
        agents:
          ops: {{key_sha256: "{hashlib.sha256(b"ops-key").hexdigest()}"}}
          app: {{key_sha256: "{hashlib.sha256(b"app-key").hexdigest()}"}}
        policy:
          - {{who: ops, may: admin, what: "server://config"}}
          - {{who: "*", may: [read, list], what: "file://*"}}
        """,
        encoding="utf-8",
    )
    with place.serve("--config", "octavo.yaml") as server:
        app, ops = server.asking("app-key"), server.asking("ops-key")
        assert app.ask("server/config", {"allowedDirectories": ["docs"]}).error["data"]["reason"] == "forbidden"
        assert "contents" in app.ask("resources/read", {"uri": "file://hr/pay.md"}).result
        assert ops.ask("server/config", {"allowedDirectories": ["docs"]}).result["allowedDirectories"]
        assert app.ask("resources/read", {"uri": "file://hr/pay.md"}).error["code"] == -32003


class Editor:
    """A handshake-era client with roots that can change."""

    def __init__(self, pipe: Pipe, roots: list[str]) -> None:
        self.pipe, self.roots = pipe, roots
        about = {"name": "editor", "version": "1"}
        capabilities = {"roots": {"listChanged": True}}
        pipe.ask("initialize", {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": about})
        pipe.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def change(self, roots: list[str]) -> None:
        self.roots = roots
        self.pipe.tell({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})

    def answer(self) -> None:
        """Tells its roots when it is asked."""
        asked = self._until(lambda message: message.get("method") == "roots/list")
        roots = [{"uri": uri} for uri in self.roots]
        self.pipe.tell({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})

    def swapped(self) -> None:
        self._until(lambda message: message.get("method") == "notifications/resources/list_changed")

    def _until(self, wanted: Callable[[Any], bool]) -> Any:
        while not wanted(message := self.pipe.next_message()):
            pass
        return message


def test_the_roots_of_an_editor_narrow_and_follow_it(place: Place) -> None:
    with place.pipe(place.root, "--log-level", "warning", era="raw") as pipe:
        editor = Editor(pipe, [(place.root / "docs").as_uri()])
        editor.answer()
        editor.swapped()
        assert names(pipe.ask("resources/list")) == [
            (place.root / "docs" / name).as_uri() for name in ("a.md", "b.txt")
        ]
        editor.change([(place.root / "hr").as_uri()])
        editor.answer()
        editor.swapped()
        assert names(pipe.ask("resources/list")) == [(place.root / "hr" / "pay.md").as_uri()]
        editor.change(["file:///somewhere/else"])
        editor.answer()
        pipe.log.wait_for("they narrow nothing")
        editor.swapped()
        assert len(names(pipe.ask("resources/list"))) == 3
    assert [one["outcome"] for one in audit_records(place.base / "state") if one["op"] == "roots/list"] == ["ok"] * 3
