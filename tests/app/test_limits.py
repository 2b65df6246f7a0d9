"""`limits` of the configuration, as the folds keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.problems import ConfigError
from octavo.core.errors import RateLimited
from octavo.core.ref import Ref
from octavo.core.values import Call, Principal, Trail
from octavo.stores.state import StateDirectory

pytestmark = pytest.mark.seed("A5", "T7")

CONFIG = """
version: 1
sources: {notes: {kind: memory, scheme: note, resources: {a: {text: hello}}}}
limits:
  in_flight: 3
  principals:
    special: {subscriptions: 7}
    "role:batch": {rate: 2/h, bytes: 1KB/s}
  sources: {notes: {rate: 5/s, concurrency: 2}}
"""

MEMORY = "version: 1\nsources: {m: {kind: memory, scheme: m, resources: {a: {text: x}}}}\n"


def config(tmp_path: Path, text: str = CONFIG) -> Octavo:
    return Octavo(load_text(text, file=tmp_path / "octavo.yaml", environ={}), state=StateDirectory.in_memory())


@pytest.mark.anyio
async def test_the_first_entry_about_a_caller_holds(tmp_path: Path) -> None:
    async with config(tmp_path) as house:
        works = house.works
        assert works.subscriptions(Principal("special")) == 7
        assert works.subscriptions(Principal("other")) == 100
        batch = Principal("local", frozenset(("batch",)))
        call = Call("read", Ref.parse("note://a"), batch, Trail(), "note://a")

        async def answer(call: Call) -> str:
            return "content"

        for _ in range(2):
            assert await works.quota(call, answer) == "content"
        with pytest.raises(RateLimited) as caught:
            await works.quota(call, answer)
        assert caught.value.data["limit"] == "rate"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("limits: {sources: {nowhere: {rate: 1/s}}}", "there is no such source"),
        ("limits: {bytes_per_principal: 20MB}", "bytes a second"),
        ("limits: {tools: {search: {rate: 0/s}}}", "must be a rate"),
        ("limits: {principals: {a: {speed: 1}}}", "speed"),
        ("serve: {http: {deadlines: {headers: 0s}}}", "above zero"),
        ("serve: {http: {metrics: everybody}}", "metrics"),
        ("serve: {traces: ftp://x}", "http or https"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(
            tmp_path,
            f"version: 1\nsources: {{m: {{kind: memory, scheme: m, resources: {{a: {{text: x}}}}}}}}\n{text}\n",
        )
    assert told in "\n".join(str(problem) for problem in caught.value.problems)
