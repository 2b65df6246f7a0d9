"""Kills a real server, again and again, amid requests: of one client on stdio that never waits for an answer, or
of several over HTTP, in both eras.

    python -m tests.audit.kills --requests 200000 --kills 50

Every answered request must have exactly one record, every other at most one, and the log must verify with its
checkpoints. Over HTTP somebody without a key asks as well: each of those that were answered is on record, or counted in
a summary, and no more than were sent. Each life of the server gets the same share of the requests that are left; each
but the last ends by SIGKILL when a random number of its answers has been read. Prints one line of JSON; `requests`
counts what was sent.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.e2e.harness import ERAS, Asking, Pipe, Place
from tests.e2e.organisation import BRAND, CONFIGURATION, organisation

from octavo.stores.audit.query import RecordFilter, found

CLIENTS = 4  # over HTTP
FILES = 200  # that exist; the other addresses lead nowhere, or to where the agent may not look
CHECKPOINTS = "audit: {rotate: 256KiB, keep: 1000, checkpoints: {path: ./second/checkpoints.jsonl, every: 50ms}}\n"


@dataclass
class Figures:
    requests: int = 0
    answered: int = 0
    kills: int = 0
    records: int = 0
    answered_without_record: int = 0
    with_two_records: int = 0
    unanswered_on_record: int = 0
    strangers_sent: int = 0
    strangers_answered: int = 0
    strangers_on_record: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    verified: bool = False

    @property
    def good(self) -> bool:
        strangers = self.strangers_answered <= self.strangers_on_record <= self.strangers_sent
        return self.verified and strangers and not self.answered_without_record and not self.with_two_records


def plant(base: Path) -> Place:
    place = Place(base)
    file = organisation(place)
    rules = CONFIGURATION.replace(
        'what: "file://*"}', 'what: "file://*"}\n  - {who: "*", may: invoke, what: "tool://*"}'
    )
    rules = rules.replace("per_principal: 100000/s", "per_principal: off, in_flight: 100000, total: 200000")
    file.write_text(rules + CHECKPOINTS, encoding="utf-8")
    (base / "second").mkdir()
    for number in range(FILES):
        place.edit(f"docs/{number}.md", f"# {number}\n")
    return place


def address(number: int) -> str:
    """Each request has one of its own in its life of the server, by which its record is known."""
    return f"file://{'hr' if number % 10 == 0 else 'docs'}/{number}.md"


def request(number: int) -> tuple[str, dict[str, Any]]:
    if number % 7 == 0:
        return "tools/call", {"name": "read", "arguments": {"target": address(number)}}
    return "resources/read", {"uri": address(number)}


def live_over_http(
    place: Place, count: int, kill_after: int | None, era: str, figures: Figures
) -> tuple[int, set[str]]:
    """One life of the server: how many requests were sent, and the addresses of those that were answered."""
    answered: list[str] = []
    sent: list[int] = []
    with place.serve("--config", place.base / "octavo.yaml") as server:

        def ask_some(numbers: Iterable[int], asking: Asking) -> None:
            with suppress(OSError, HTTPException):
                for number in numbers:
                    sent.append(number)
                    assert asking.ask(*request(number)).body.keys() & {"result", "error"}
                    answered.append(address(number))
                    if kill_after is not None and len(answered) >= kill_after:
                        server.process.send_signal(signal.SIGKILL)

        clients = [
            threading.Thread(target=ask_some, args=(range(first, count, CLIENTS), server.asking(BRAND, era).open()))
            for first in range(CLIENTS)
        ]

        def ask_without_a_key(asking: Asking) -> None:
            with suppress(OSError, HTTPException):
                while any(client.is_alive() for client in clients):
                    figures.strangers_sent += 1
                    figures.strangers_answered += asking.ask("ping").status == 401

        for client in clients:
            client.start()
        ask_without_a_key(server.asking(None))
        for client in clients:
            client.join()
    assert server.process.returncode == (0 if kill_after is None else -signal.SIGKILL)
    return len(sent), set(answered)


def live_on_stdio(place: Place, count: int, kill_after: int | None, era: str, figures: Figures) -> tuple[int, set[str]]:
    with place.pipe("--config", place.base / "octavo.yaml", "--as", "agent-brand", era=era) as pipe:
        requests = [pipe.request(*request(number)) for number in range(count)]
        asked = {one["id"]: address(number) for number, one in enumerate(requests)}
        told: list[int] = []
        writer = threading.Thread(target=tell_all, args=(pipe, requests, told))
        writer.start()
        if kill_after is None:
            answered = {asked[pipe.next_message()["id"]] for _ in requests}
        else:
            answered = {asked[pipe.next_message()["id"]] for _ in range(kill_after)}
            pipe.process.send_signal(signal.SIGKILL)
            answered |= {asked[json.loads(line)["id"]] for line in pipe.rest()}
        writer.join()
    assert pipe.process.returncode == (0 if kill_after is None else -signal.SIGKILL)
    return len(told), answered


def tell_all(pipe: Pipe, requests: Sequence[Mapping[str, Any]], told: list[int]) -> None:
    with suppress(BrokenPipeError):
        for one in requests:
            pipe.tell(one)
            told.append(one["id"])


def count_records(records: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many records each request has, by its address. A call of a tool has one itself, beside those of what the
    tool did; it is known by the address of its child."""
    counted = Counter(one["uri"] for one in records if one["op"] == "read" and "parent" not in one)
    own = Counter(one["id"] for one in records if one["op"] == "invoke")
    for call in {(one["uri"], one["parent"]) for one in records if one["op"] == "read" and "parent" in one}:
        counted[call[0]] += own[call[1]]
    return counted


def run(base: Path, requests: int, kills: int, seed: int) -> Figures:
    chance = random.Random(seed)
    place, figures = plant(base), Figures()
    lives = kills + 1
    known: set[Path] = set()
    for life in range(lives):
        share = (requests - figures.requests) // (lives - life)
        kill_after = chance.randint(1, share) if life < kills else None
        live = live_over_http if life % 3 == 1 else live_on_stdio
        sent, answered = live(place, share, kill_after, ERAS[life % 2], figures)
        records = of_life(place, known)
        counted = count_records(records)
        figures.requests += sent
        figures.kills += kill_after is not None
        figures.answered += len(answered)
        figures.records += len(records)
        figures.answered_without_record += sum(not counted[uri] for uri in answered)
        figures.with_two_records += sum(number > 1 for number in counted.values())
        figures.unanswered_on_record += sum(number > 0 for uri, number in counted.items() if uri not in answered)
        figures.outcomes.update(one["outcome"] for one in records)
        print(f"life {life + 1} {live.__name__}: sent {sent}, answered {len(answered)}", file=sys.stderr)
    done = place.run("audit", "verify", "--config", base / "octavo.yaml", "--json")
    report = json.loads(done.stdout)
    strangers = found(base / ".octavo" / "audit", RecordFilter(who=("unknown",)))
    figures.strangers_on_record = sum(one.get("count", 1) for one in strangers)
    figures.verified = report["ok"] and done.returncode == 0 and len(report["chains"]) == lives
    return figures


def of_life(place: Place, known: set[Path], *, sealed: bool = False) -> list[dict[str, Any]]:
    """The records in files that are new, without lines that a kill has torn; or that stand before a seal alone."""
    folder = place.base / ".octavo" / "audit"
    fresh = [file for file in sorted(folder.glob("*.jsonl")) if file not in known]
    known.update(fresh)
    records: list[dict[str, Any]] = []
    vouched = 0
    for line in b"".join(file.read_bytes() for file in fresh).splitlines(keepends=True):
        if line.startswith(b'{"chain"'):
            vouched = len(records) if line.endswith(b"\n") else vouched
        elif line.endswith(b"\n"):
            records.append(json.loads(line))
    return records[:vouched] if sealed else records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(folder), asked.requests, asked.kills, asked.seed)
    print(json.dumps({**vars(figures), "good": figures.good}))
    raise SystemExit(not figures.good)


if __name__ == "__main__":
    main()
