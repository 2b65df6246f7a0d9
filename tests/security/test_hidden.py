"""What a rule hides cannot be told from what is not there: the same code, the same text, the same length."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Json, Pipe, Web, modern_headers
from tests.gate.fixtures import folder
from tests.gate.twins import INITIALIZED, META, frame, initialize
from tests.gate.world import KEYS, configuration, house, principal

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O14", "A8")]

__all__ = ["folder"]

HIDDEN, ABSENT = "file://hidden/plan.md", "file://absent/plan.md"  # of one length
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("resources/read", {"uri": HIDDEN}),
    ("resources/read", {"uri": f"{HIDDEN}?range=1-2"}),
    ("resources/read", {"uri": "file://hidden"}),
    ("resources/read", {"uri": "changes://file/hidden"}),
    ("resources/list", {"filter": {"under": "file://hidden"}}),
    ("resources/directory/read", {"uri": "file://hidden"}),
    ("resources/subscribe", {"uri": HIDDEN}),
    ("resources/subscribe", {"uri": "file://hidden/*"}),
    ("tools/call", {"name": "read", "arguments": {"target": HIDDEN}}),
    ("tools/call", {"name": "info", "arguments": {"target": HIDDEN}}),
    ("tools/call", {"name": "list", "arguments": {"target": "file://hidden"}}),
    ("tools/call", {"name": "search", "arguments": {"query": "plan", "target": "file://hidden"}}),
    ("tools/call", {"name": "changes", "arguments": {"target": "file://hidden"}}),
    ("tools/call", {"name": "show", "arguments": {"uri": HIDDEN}}),
    ("prompts/get", {"name": "summarise", "arguments": {"uri": HIDDEN}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "file://{+path}"},
                             "argument": {"name": "path", "value": "hidden"}}),
]  # fmt: skip


def about_absent(value: Any) -> Any:
    """The same request about what is not there."""
    if isinstance(value, dict):
        return {name: about_absent(inner) for name, inner in value.items()}
    return value.replace("hidden", "absent") if isinstance(value, str) else value


@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[f"{m} {i}" for i, (m, _) in enumerate(REQUESTS)])
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_over_stdio(folder: Path, method: str, params: dict[str, Any], version: str) -> None:
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "brand"), lane=True) as pipe:
        await pipe.ask(initialize(version), INITIALIZED)
        for _ in range(2):  # cold, and as a repeated request
            hidden, absent = [await pipe.ask(frame(method, asked)) for asked in (params, about_absent(params))]
            same(hidden, absent)


@pytest.mark.parametrize(("method", "params"), REQUESTS, ids=[f"{m} {i}" for i, (m, _) in enumerate(REQUESTS)])
async def test_over_http(folder: Path, method: str, params: dict[str, Any]) -> None:
    async with house(configuration(folder)) as octavo, Web(octavo, lane=True) as web:
        for _ in range(2):
            replies = []
            for asked in (params, about_absent(params)):
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**asked, "_meta": META}}
                raw = frame(method, body["params"])
                replies.append(await web.ask(raw, modern_headers(body, KEYS["BRAND_KEY"])))
            hidden, absent = replies
            assert (hidden.status, hidden.headers, len(hidden.raw)) == (absent.status, absent.headers, len(absent.raw))
            assert plain(hidden.body) == plain(absent.body)


def same(hidden: list[Json], absent: list[Json]) -> None:
    assert [plain(one.text) for one in hidden] == [plain(one.text) for one in absent]


def plain(text: str) -> str:
    """Without the name that was asked for, and the number of the feed, which goes on by itself."""
    return re.sub(r"\d{16}", "#", text.replace("hidden", "absent"))


async def test_one_who_may_see_it_sees_it(folder: Path) -> None:
    """Or nothing would be shown above."""
    async with house(configuration(folder)) as octavo, Pipe(octavo, principal(octavo, "hr"), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"), INITIALIZED)
        (hidden,) = await pipe.ask(frame("resources/read", {"uri": HIDDEN}))
        (absent,) = await pipe.ask(frame("resources/read", {"uri": ABSENT}))
        assert "result" in hidden.value and "error" in absent.value
