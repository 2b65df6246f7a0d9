"""What leaves the server, word for word, in every era. `OCTAVO_REWRITE_GOLDEN=1` writes the files anew.

A change here is a change that clients see: it belongs into the release notes.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.gate.corpus import CASES
from tests.gate.doors import Pipe, Web, modern_headers
from tests.gate.twins import META, frame, initialize
from tests.gate.world import KEYS, configuration, house, principal

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("clock")]

GOLDEN = Path(__file__).parent / "golden"
ERAS = ("modern", "2025-11-25", "2025-03-26", "2024-11-05")
_VERSION = re.compile(r'("name": "octavo", "title": "Octavo", "version": )"[^"]*"')
_INCIDENT = re.compile(r'(incident\\*": ?\\*")(?:[0-9a-f]{12}|run-\d+)')


def compare(name: str, got: dict[str, Any]) -> None:
    file = GOLDEN / f"{name}.json"
    if os.environ.get("OCTAVO_REWRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(json.dumps(got, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert got.keys() == kept.keys()
    for case, answer in got.items():
        assert answer == kept[case], case


def plain(text: str) -> Any:
    return json.loads(_VERSION.sub(r'\1"0"', _INCIDENT.sub(r"\1#", text)))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.seed("A2", "A12", "O13", "T2", "P11")
async def test_stdio(folder: Path, era: str, caplog: pytest.LogCaptureFixture) -> None:
    got: dict[str, Any] = {}
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=True) as pipe:
        if era == "modern":
            (answer,) = await pipe.ask(frame("server/discover", {"_meta": META}))
        else:
            (answer,) = await pipe.ask(initialize(era, 1))
        got["opening"] = plain(answer.text)
        for name, (method, params) in CASES.items():
            asked = {**(params or {}), "_meta": META} if era == "modern" else params
            (answer,) = await pipe.ask(frame(method, asked))
            got[name] = plain(answer.text)
    caplog.clear()
    compare(f"stdio-{era}", got)


@pytest.mark.seed("A2", "A12", "O13")
async def test_http(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The same answers as on stdio, each with its HTTP status."""
    got: dict[str, Any] = {}
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for name, (method, params) in CASES.items():
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": META}}
            reply = await web.ask(json.dumps(body).encode(), modern_headers(body, KEYS["BRAND_KEY"]))
            got[name] = {"status": reply.status, "body": plain(reply.body)}
    caplog.clear()
    compare("http-modern", got)
    if not os.environ.get("OCTAVO_REWRITE_GOLDEN"):
        stdio = json.loads((GOLDEN / "stdio-modern.json").read_text(encoding="utf-8"))
        differ = {name for name, answer in got.items() if answer["body"] != stdio[name]}
        assert differ <= {"tool with a header", "level", "ping"}, differ
