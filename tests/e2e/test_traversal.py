"""Thousands of hostile addresses over the wire, through everything that takes one: nothing comes from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.e2e.harness import ERAS, Asking, Pipe, Place
from tests.security.corpus import CANARY, INSIDE, hostile_uris, plant

pytestmark = [pytest.mark.slow, pytest.mark.seed("F3", "F8", "B1")]

CONFIGURATION = """\
version: 1
sources: {files: {kind: file, roots: [./root], extensions: ["*"]}}
limits: {in_flight: 1000000, total: 1000000, subscriptions: 1000000, per_principal: 1000000/s}
"""
SERVED = {
    "file:///root/docs/a.md",
    "file:///root/docs/deep/a.md",
    "file:///root/docs/deep/deeper/a.md",
    "file:///root/docs/deep/deeper/deepest/a.md",
    "file:///root/inside.md",
}
ASKED: dict[str, Any] = {
    "resources/read": lambda uri: {"uri": uri},
    "resources/list": lambda uri: {"_meta": {"dev.octavo/filter": {"under": uri}}},
    "resources/subscribe": lambda uri: {"uri": uri},
    "resources/subscribe, a pattern": lambda uri: {"uri": f"{uri}/*"},
    "completion/complete": lambda uri: {
        "ref": {"type": "ref/resource", "uri": "file://{+path}"},
        "argument": {"name": "path", "value": uri.partition("://")[2]},
    },
    "completion/complete, a template": lambda uri: {
        "ref": {"type": "ref/resource", "uri": f"{uri}/{{name}}"},
        "argument": {"name": "name", "value": ""},
    },
}


class Tree:
    def __init__(self, base: Path) -> None:
        root, outside = plant(base)
        self.base = str(base)
        self.uris = hostile_uris(root, outside)
        (base / "octavo.yaml").write_text(CONFIGURATION, encoding="utf-8")

    def judge(self, uri: str, answer: Mapping[str, Any]) -> None:
        texts = list(strings({name: part for name, part in answer.items() if name in ("result", "error")}))
        assert texts or answer.get("result") is not None, answer
        assert not any(CANARY in text for text in texts), uri
        if "result" in answer:
            self._judge_result(uri, answer["result"])
        else:
            assert answer["error"]["code"] != -32603, (uri, answer)
            assert answer["error"].get("data", {}).get("reason") not in ("rate_limited", "crash"), (uri, answer)
        if not self.is_told_by(uri):
            assert not any(self.base in text for text in texts), (uri, answer)

    def is_told_by(self, uri: str) -> bool:
        """Whether the client already knows where the server keeps its files."""
        return self.base in unquote(unquote(unquote(uri)))

    def _judge_result(self, uri: str, result: Mapping[str, Any]) -> None:
        for content in result.get("contents", ()):
            assert content.get("text") == INSIDE, (uri, content)
        for resource in result.get("resources", ()):
            assert resource["uri"] in SERVED, (uri, resource)
        for value in result.get("completion", {}).get("values", ()):
            assert "canary" not in value, (uri, value)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, root=False)


@pytest.fixture
def tree(place: Place) -> Tree:
    return Tree(place.base)


def try_all(tree: Tree, pipe: Pipe, way: str, uris: Sequence[str]) -> int:
    method = way.partition(",")[0]
    requests = [pipe.request(method, ASKED[way](uri)) for uri in uris]
    by_id = {request["id"]: uri for request, uri in zip(requests, uris, strict=True)}
    answers = pipe.exchange(requests)
    for answer in answers:  # a request that is no JSON to the server is answered without its id
        tree.judge(by_id.get(answer.get("id"), ""), answer)
    return len(answers)


@pytest.mark.parametrize("era", ERAS)
def test_no_hostile_address_gets_anything_over_stdio(place: Place, tree: Tree, era: str) -> None:
    sent = 0
    with place.pipe("--config", place.base / "octavo.yaml", era=era) as pipe:
        assert pipe.ask("resources/read", {"uri": "file://docs/a.md"})["result"]["contents"][0]["text"] == INSIDE
        for index, way in enumerate(ASKED):
            if way == "resources/read":
                sent += try_all(tree, pipe, way, tree.uris)
            elif era == "legacy" or not way.startswith("resources/subscribe"):
                sent += try_all(tree, pipe, way, tree.uris[index::6])
        assert pipe.ask("resources/read", {"uri": "file://docs/a.md"})["result"]["contents"][0]["text"] == INSIDE
    assert sent >= 15_000
    assert CANARY not in pipe.log.text and "Traceback" not in pipe.log.text, pipe.log.text[-3000:]
    assert not any(CANARY.encode() in file.read_bytes() for file in (place.base / ".octavo").rglob("*.jsonl"))


@pytest.mark.parametrize("era", ERAS)
def test_no_hostile_address_gets_anything_over_http(place: Place, tree: Tree, era: str) -> None:
    with place.serve("--config", place.base / "octavo.yaml", "--no-auth") as server:
        asking = server.asking(era=era).open()
        for uri in tree.uris[::12]:
            if "\ud800" not in uri:
                tree.judge(uri, asked(asking, uri))
    assert "Traceback" not in server.log.text, server.log.text[-3000:]


def is_pattern(uri: str) -> bool:
    return "*" in uri or uri.endswith("/")


def asked(asking: Asking, uri: str) -> Any:
    body = asking.ask("resources/read", {"uri": uri}).body
    return json.loads(json.dumps(body))


def test_listening_to_hostile_addresses_hears_nothing_from_outside(place: Place, tree: Tree) -> None:
    """Modern: one stream with thousands of addresses; what changes outside is not told, what changes inside is."""
    with place.pipe("--config", place.base / "octavo.yaml") as pipe:
        wanted = [uri for uri in tree.uris[::4] if "\ud800" not in uri and not tree.is_told_by(uri)]
        patterns = [*wanted, *(f"{uri}/*" for uri in wanted)]
        absolute = ("file:///", "file://localhost")  # as patterns they have a test of their own below
        patterns = [one for one in patterns if not (is_pattern(one) and unquote(one).lower().startswith(absolute))]
        patterns.append("file://docs/*")
        assert len(patterns) > 4_000
        listening = pipe.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": patterns}})
        pipe.tell(listening)
        acknowledged = pipe.next_message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert "file://docs/*" in acknowledged["params"]["notifications"]["resourceSubscriptions"]
        for file in place.base.rglob("canary.md"):
            file.write_text(f"{CANARY} changed", encoding="utf-8")
        for text in ("one", "two"):
            place.edit("docs/a.md", text)
            while True:
                note = pipe.next_message()
                assert note["params"]["uri"] in ("file:///root/docs/a.md", "file:///root/inside.md"), note
                assert CANARY not in json.dumps(note) and tree.base not in json.dumps(note)
                if note["params"]["uri"] == "file:///root/docs/a.md":
                    break


@pytest.mark.parametrize("pattern", ("file:///*", "file:///**", "file://localhost/*"))
def test_a_pattern_above_the_root_does_not_tell_where_the_root_is(place: Place, tree: Tree, pattern: str) -> None:
    with place.pipe("--config", place.base / "octavo.yaml") as pipe:
        patterns = [pattern, "file://docs/*"]
        pipe.tell(pipe.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": patterns}}))
        assert pipe.next_message()["method"] == "notifications/subscriptions/acknowledged"
        place.edit("docs/a.md", "one")
        assert tree.base not in json.dumps(pipe.next_message())
