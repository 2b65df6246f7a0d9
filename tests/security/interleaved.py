"""Many principals at once, all of them with the same JSON-RPC ids: nobody gets a byte of another's.

    python -m tests.security.interleaved --principals 1000 --requests 100000

One house, its HTTP side without the sockets. Every principal has a folder of its own, whose files hold its mark; it
reads them, lists, searches and calls tools, and asks for what belongs to others. One half of the requests is served by
a house that keeps nothing (cold), the other by one with its cache (hot). Prints one line of JSON; `foreign` counts
answers with another's mark, `refused` what was asked of others.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.gate import doors
from tests.gate.doors import Reply, Web, modern_headers
from tests.gate.twins import META

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.stores.state import StateDirectory

AT_ONCE = 48
WORD = {"query": "word", "kind": "content"}
MARK = re.compile(rb"mark-(\d{5})-")
ADDRESS = re.compile(rb"file:///docs/p(\d{5})/")


@dataclass
class Figures:
    principals: int
    requests: int = 0
    own: int = 0
    refused: int = 0
    foreign: int = 0
    odd: dict[str, int] = field(default_factory=dict)  # answers that are neither
    seconds: float = 0.0


def name(number: int) -> str:
    return f"p{number:05d}"


def plant(folder: Path, count: int) -> None:
    for number in range(count):
        mine = folder / "docs" / name(number)
        mine.mkdir(parents=True)
        for file in ("one.md", "two.md"):
            (mine / file).write_text(f"mark-{number:05d}-{file} word\n", encoding="utf-8")


def configuration(folder: Path, count: int, *, hot: bool) -> Loaded:
    people = [name(number) for number in range(count)]
    ttl = "60s" if hot else "0s"
    text = json.dumps(
        {
            "version": 1,
            "sources": {"docs": {"kind": "file", "roots": ["./docs"], "cache": {"ttl": ttl}}},
            "agents": {who: {"key": f"${{KEY_{who}}}"} for who in people},
            "policy": [
                {"who": who, "may": ["list", "read", "search", "invoke"], "what": [f"file://{who}/*", "tool://*"]}
                for who in people
            ],
            "limits": {"per_principal": "off"},
            "search": {"enabled": False},
        }
    )
    return load_text(text, file=folder / "octavo.yaml", environ={f"KEY_{who}": key(who) for who in people})


def key(who: str) -> str:
    return f"key-of-{who}-{'x' * 16}"


def asked(rng: random.Random, mine: str, other: str, principals: int) -> tuple[str, dict[str, Any], bool]:
    """A method with its parameters, and whether it is about what is one's own."""
    file = rng.choice(("one.md", "two.md"))
    own, foreign = f"file://{mine}/{file}", f"file://{other}/{file}"
    kinds: dict[str, tuple[float, str, dict[str, Any]]] = {
        "own": (52, "resources/read", {"uri": own}),
        "other": (22, "resources/read", {"uri": foreign}),
        "tool": (10, "tools/call", {"name": "read", "arguments": {"target": own}}),
        "foreign tool": (6, "tools/call", {"name": "read", "arguments": {"target": foreign}}),
        "folder": (5, "tools/call", {"name": "list", "arguments": {"target": f"file://{mine}"}}),
        "search": (4, "tools/call", {"name": "search", "arguments": {**WORD, "target": f"file://{mine}"}}),
        # These look at everybody's files, and cost accordingly.
        "list": (min(5, 600 / principals), "resources/list", {}),
        "search all": (min(1, 20 / principals), "tools/call", {"name": "search", "arguments": WORD}),
    }
    kind = rng.choices([*kinds], [weight for weight, _, _ in kinds.values()])[0]
    _, method, params = kinds[kind]
    return method, params, kind not in ("other", "foreign tool")


async def answers(web: Web, who: str, method: str, params: dict[str, Any]) -> list[Reply]:
    """All pages. The id is always 1."""
    got: list[Reply] = []
    cursor: dict[str, str] = {}
    while True:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **cursor, "_meta": META}}
        got.append(await web.ask(json.dumps(body).encode(), modern_headers(body, key(who))))
        following = got[-1].json["result"].get("nextCursor") if method == "resources/list" else None
        if following is None:
            return got
        cursor = {"cursor": following}


async def interleave(web: Web, figures: Figures, count: int, seed: int) -> None:
    rng = random.Random(seed)
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            number, another = rng.randrange(figures.principals), rng.randrange(figures.principals)
            another = (another + 1) % figures.principals if another == number else another
            method, params, own = asked(rng, name(number), name(another), figures.principals)
            replies = await answers(web, name(number), method, params)
            figures.requests += len(replies)
            raw = b"".join(reply.raw for reply in replies)
            # A refusal repeats the address that was asked for, which is no news.
            marks = set(MARK.findall(raw)) | set(ADDRESS.findall(raw) if own else ())
            mine = b"%05d" % number
            if marks - {mine}:
                figures.foreign += 1
            elif own and marks == {mine}:
                figures.own += 1
            elif not own and not marks and (b'"error"' in raw or b'"isError":true' in raw):
                figures.refused += 1
            else:
                told = f"{replies[-1].status} {raw[:200]!r}"
                figures.odd[told] = figures.odd.get(told, 0) + 1

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))


async def run(principals: int, requests: int, folder: Path) -> Figures:
    plant(folder, principals)
    figures = Figures(principals)
    begun = time.perf_counter()
    for hot in (False, True):
        house = Octavo(configuration(folder, principals, hot=hot), state=StateDirectory(None, b"s" * 32))
        async with house as opened, Web(opened, lane=True) as web:
            await interleave(web, figures, requests // 2, seed=hot)
    figures.seconds = round(time.perf_counter() - begun, 1)
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--principals", type=int, default=1000)
    options.add_argument("--requests", type=int, default=100_000)
    given = options.parse_args()
    doors.LIMIT = 120.0  # searches of many at once take their time
    with tempfile.TemporaryDirectory() as made:
        figures = asyncio.run(run(given.principals, given.requests, Path(made)))
    print(json.dumps(asdict(figures)))
    sys.exit(1 if figures.foreign or figures.odd else 0)


if __name__ == "__main__":
    main()
