"""The official TypeScript client lists, reads, subscribes and hears of changes: both transports, both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import EVENT, LEGACY, MODERN, ODD_NAMES, ROOT, Place, Server, conformance, node_command, octavo

pytestmark = [pytest.mark.slow, pytest.mark.seed("A4", "A2")]

WATCH = ROOT / "conformance" / "clients" / "watch.mjs"
KOREAN = "file://docs/한국/소개.md"
PATTERNS = {"exact": "file://docs/guide.md", "path": "file://docs/*", "namespace": "file://*"}


def heard(program: Server, what: str, *, after: int = 0) -> Any:
    line = program.out.wait_for(rf'^\{{"what":"{what}".*', after=after)
    return json.loads(line[0])


def watch(place: Place, clients: Path, era: str, pattern: str, target: dict[str, Any]) -> None:
    transport = "http" if "url" in target else "stdio"
    listed = [place.listed(name, transport) for name in ("docs/guide.md", "docs/한국/소개.md", "notes/plan.txt")]
    options = {
        "clients": str(clients),
        "era": "auto" if era == "modern" else "legacy",
        "read": [KOREAN],
        "subscribe": [PATTERNS[pattern]],
        "count": 1 if pattern == "exact" else 3,
        **target,
    }
    place.environment |= {"PATH": conformance().environment()["PATH"]}
    with place.start(*node_command(WATCH, json.dumps(options))) as program:
        assert heard(program, "subscribed")["honoured"] == [PATTERNS[pattern]], program.log.text
        assert heard(program, "connected")["version"] == (MODERN if era == "modern" else LEGACY)
        assert heard(program, "listed")["uris"] == listed
        assert heard(program, "read")["text"] == "안녕하세요, 옥타보입니다.\n"

        begun = len(program.out)
        place.edit("docs/guide.md", "# Guide, second edition\n")
        changed = PATTERNS["exact"] if pattern == "exact" else listed[0]
        event(heard(program, "updated", after=begun), "updated", changed, [8, 24])
        if pattern != "exact":
            begun = len(program.out)
            made, fresh = place.edit("docs/새 문서.md", "새"), place.listed("docs/새%20문서.md", transport)
            event(heard(program, "updated", after=begun), "created", fresh, [None, 3])
            assert heard(program, "list_changed", after=begun)["meta"][EVENT]["type"] == "resource/created"
            begun = len(program.out)
            made.unlink()
            event(heard(program, "updated", after=begun), "deleted", fresh, [3, None])
        heard(program, "done")
        assert program.process.wait(20) == 0, program.log.text


def event(note: Any, kind: str, uri: str, size: list[int | None]) -> None:
    told = note["meta"][EVENT]
    assert (note["uri"], told["uri"], told["type"]) == (uri, uri, f"resource/{kind}")
    assert told["changes"]["size"] == size
    old, new = told["changes"]["version"]
    assert old != new and told["timestamp"].endswith("Z")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("era", ("modern", "legacy"))
def test_typescript_client_over_http(place: Place, clients: Path, era: str, pattern: str) -> None:
    with place.serve(place.root, "--no-auth") as server:
        watch(place, clients, era, pattern, {"url": server.url})


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("era", ("modern", "legacy"))
def test_typescript_client_over_stdio(place: Place, clients: Path, era: str, pattern: str) -> None:
    watch(place, clients, era, pattern, {"command": octavo("serve", place.root), "env": place.environment})


def reads_back(place: Place, clients: Path, era: str, target: dict[str, Any]) -> None:
    """Everything that it lists, by the address that it is given."""
    place.edit_all(ODD_NAMES)
    mode = "auto" if era == "modern" else "legacy"
    options = {"clients": str(clients), "era": mode, "read": "listed", "subscribe": [], "count": 0, **target}
    place.environment |= {"PATH": conformance().environment()["PATH"]}
    with place.start(*node_command(WATCH, json.dumps(options))) as program:
        assert program.process.wait(60) == 0, program.log.text
        program.out.end()
        texts = [said["text"] for said in map(json.loads, program.out.text.splitlines()) if said["what"] == "read"]
    assert len(texts) == len(ODD_NAMES) + 3 and {f"{name}\n" for name in ODD_NAMES} < set(texts)


@pytest.mark.parametrize("era", ("modern", "legacy"))
@pytest.mark.seed("F1")
def test_typescript_client_reads_back_what_is_listed_over_http(place: Place, clients: Path, era: str) -> None:
    with place.serve(place.root, "--no-auth") as server:
        reads_back(place, clients, era, {"url": server.url})


@pytest.mark.seed("F1")
def test_typescript_client_reads_back_what_is_listed_over_stdio(place: Place, clients: Path) -> None:
    reads_back(place, clients, "modern", {"command": octavo("serve", place.root), "env": place.environment})
