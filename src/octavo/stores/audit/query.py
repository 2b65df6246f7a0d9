"""Reads audit records back: those of all chains in one stream, by time, and the trees that they form.

Nothing is verified here: that is what `stores.verify` is for.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import deque
from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from octavo.core.clock import iso
from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref
from octavo.core.sizes import BLOCK

Record: TypeAlias = Mapping[str, Any]
_FILE = re.compile(r"(?P<begun>[0-9]{8}T[0-9]{6}Z)-[^.]+(?:\.[0-9]{5})?\.jsonl\Z")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RecordFilter(Struct, frozen=True):
    """Which records are wanted. What is empty or None does not matter."""

    who: Container[str] = ()
    op: Container[str] = ()
    outcome: Container[str] = ()
    rule: Container[str] = ()
    uri: Glob | None = None
    since: float | None = None
    until: float | None = None

    def fits(self, record: Record) -> bool:
        time = record.get("time", "")
        return (
            (not self.who or record.get("who") in self.who)
            and (not self.op or str(record.get("op")).partition(" ")[0] in self.op)
            and (not self.outcome or record.get("outcome") in self.outcome)
            and (not self.rule or record.get("rule") in self.rule)
            and (self.since is None or time >= iso(self.since))
            and (self.until is None or time < iso(self.until))
            and (self.uri is None or _matches(self.uri, record.get("uri")))
        )


def _matches(pattern: Glob, uri: object) -> bool:
    try:
        return isinstance(uri, str) and pattern.matches(Ref.parse(uri))
    except OctavoError:  # a client sent what is no address
        return False


def found(directory: Path, question: RecordFilter) -> Iterator[Record]:
    """Oldest first. Raises OSError."""
    return filter(question.fits, _all(directory, question.since))


def latest(directory: Path, question: RecordFilter, limit: int) -> list[Record]:
    """The last `limit` of what is found, oldest first."""
    return [*deque(found(directory, question), maxlen=limit)]


def trees(directory: Path, matches: list[Record]) -> list[tuple[int, Record]]:
    """Every call that belongs to the same requests as the matches, and how deep it stands below its request.

    A child is recorded before its parent, so the log is read twice.
    """
    above = {str(record.get("id")): str(record["parent"]) for record in _all(directory, None) if "parent" in record}

    def path(id: str) -> list[str]:
        """From the request down to the call."""
        up = [id]
        while (higher := above.get(up[-1])) is not None and higher not in up:
            up.append(higher)
        return up[::-1]

    wanted = {path(str(record.get("id")))[0]: None for record in matches}
    members: dict[str, list[tuple[list[tuple[int, str]], Record]]] = {root: [] for root in wanted}
    for record in _all(directory, None):
        way = path(str(record.get("id")))
        if way[0] in members:
            members[way[0]].append(([_order(id) for id in way], record))
    return [
        (len(way) - 1, record) for root in wanted for way, record in sorted(members[root], key=lambda member: member[0])
    ]


def _order(id: str) -> tuple[int, str]:
    """Ids of one process are counted: a call that began earlier has a smaller number."""
    nonce, _, number = id.rpartition("-")
    return (int(number) if number.isdecimal() else 0, nonce)


def _all(directory: Path, since: float | None) -> Iterator[Record]:
    """All chains merged by time. A chain is opened when its own time has come, so that a folder with thousands of
    short ones does not need thousands of open files."""
    waiting = deque(sorted(_chains(directory).items()))
    running: list[tuple[str, int, Record, Iterator[Record]]] = []
    while waiting or running:
        while waiting and (not running or waiting[0][0][0] <= running[0][0]):
            _, files = waiting.popleft()
            _advance(running, len(waiting), _of_chain(files, since))
        if running:
            _, place, record, rest = heapq.heappop(running)
            yield record
            _advance(running, place, rest)


def _advance(running: list[tuple[str, int, Record, Iterator[Record]]], place: int, records: Iterator[Record]) -> None:
    record = next(records, None)
    if record is not None:
        heapq.heappush(running, (record.get("time", ""), place, record, records))


def _chains(directory: Path) -> dict[tuple[str, str], list[Path]]:
    """The files of each chain in order, by the time at which it began and its name."""
    chains: dict[tuple[str, str], list[Path]] = {}
    for file in sorted(directory.glob("*.jsonl"), key=lambda file: (len(file.name), file.name)):
        if name := _FILE.match(file.name):
            begun = datetime.strptime(name["begun"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
            chains.setdefault((iso(begun), file.name.partition(".")[0]), []).append(file)
    return chains


def _of_chain(files: list[Path], since: float | None) -> Iterator[Record]:
    counts = files[0].with_name(f"{files[0].name.partition('.')[0]}.counts")
    summary = 0  # the last one that is in the chain; the file of counts may have a later one
    for file in [*files, *([counts] if counts.exists() else [])]:
        if since is not None and file.stat().st_mtime < since:
            continue
        with file.open("rb") as lines:
            for line in lines:
                if line.startswith(b'{"chain"'):
                    continue
                try:
                    record = _decode(line)
                except msgspec.DecodeError:  # the end of a file whose writer was killed
                    continue
                if b'"summary":' in line:
                    if file == counts and record["summary"] <= summary:
                        continue
                    summary = record["summary"] if file != counts else summary
                yield record


class Recent:
    """Remembers how far each file was read. What was there before is not told."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read = {file: file.stat().st_size for file in self._files()}

    def fresh(self) -> Iterator[dict[str, Any]]:
        """The records since the last time, file by file."""
        for file in self._files():
            try:
                with file.open("rb") as opened:
                    opened.seek(self._read.get(file, 0))
                    text = opened.read(BLOCK)
            except FileNotFoundError:  # retention took it away meanwhile
                continue
            whole = text[: text.rfind(b"\n") + 1]
            self._read[file] = self._read.get(file, 0) + len(whole)
            yield from _records(whole)

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("*.jsonl"))


def _records(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # `octavo audit verify` is for that
        if isinstance(record, dict) and "chain" not in record:
            yield record
