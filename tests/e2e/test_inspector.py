"""The official Inspector, as a command, lists and reads: both transports, both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import ERAS, Place, node_command, octavo, ran

pytestmark = [pytest.mark.slow, pytest.mark.seed("A2", "F6", "B10")]

INSPECTOR = Path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")


def inspect(place: Place, clients: Path, target: list[str], era: str, *method: str) -> Any:
    asking = node_command(clients / INSPECTOR, "--cli", *target, "--protocol-era", era, "--method", *method)
    return json.loads(ran(place, asking))


def lists_and_reads(place: Place, clients: Path, target: list[str], era: str) -> None:
    listed = inspect(place, clients, target, era, "resources/list")
    names = ("docs/guide.md", "docs/한국/소개.md", "notes/plan.txt")
    uris = [place.listed(name, "http" if "http" in target else "stdio") for name in names]
    assert [one["uri"] for one in listed["resources"]] == uris
    assert [one["name"] for one in listed["resources"]] == ["guide.md", "소개.md", "plan.txt"]
    (content,) = inspect(place, clients, target, era, "resources/read", "--uri", uris[1])["contents"]
    assert (content["uri"], content["mimeType"]) == (uris[1], "text/markdown")
    assert content["text"] == "안녕하세요, 옥타보입니다.\n"


@pytest.mark.parametrize("era", ERAS)
def test_inspector_over_stdio(place: Place, clients: Path, era: str) -> None:
    given = [flag for name, value in place.environment.items() for flag in ("-e", f"{name}={value}")]
    lists_and_reads(place, clients, [*given, *octavo("serve", place.root)], era)


@pytest.mark.parametrize("era", ERAS)
def test_inspector_over_http(place: Place, clients: Path, era: str) -> None:
    with place.serve(place.root, "--no-auth") as server:
        lists_and_reads(place, clients, [server.url, "--transport", "http"], era)
