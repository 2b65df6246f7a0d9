"""Walks the audit chains of a state directory. What it can find and what not: see `stores.ledger`, and with
checkpoints `stores.checkpoints`."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

from msgspec import Struct

if TYPE_CHECKING:
    from octavo.stores.audit.checkpoints import Checkpoint, Checkpoints

_FILE = re.compile(r"(?P<chain>[^.]+)(?:\.(?P<part>[0-9]{5}))?\.jsonl\Z")
_CHAIN_LINE = b'{"chain"'
# What is looked at beside its seal. None of these is in a text of a client's: there a quote is escaped.
_INTENT, _SUMMARY, _RETENTION = b'"intent"', b'"summary":', b'"op":"retention"'
_MAC = re.compile(rb',"mac":"(?P<mac>[0-9a-f]{64})"\}\n\Z')
_MAC_LENGTH = len(b',"mac":""}\n') + 64


def seal(key: bytes, previous: bytes, text: bytes) -> bytes:
    return hmac.digest(key, previous + text, "sha256")


def fingerprint(key: bytes) -> bytes:
    """Names a key without telling it, so that a chain under an older key is not taken for a forged one."""
    return hashlib.blake2b(b"fingerprint", key=key, person=b"octavo", digest_size=8).hexdigest().encode("ascii")


class Break(Struct, frozen=True):
    """The first place where a chain does not hold. A batch is the smallest thing that is sealed, so `line`
    is where the broken batch begins."""

    file: str
    line: int
    reason: str


class Unfinished(Struct, frozen=True):
    """A change that was announced and has no outcome: a kill came in between, or it still goes on."""

    file: str
    line: int
    id: str
    time: str
    who: str
    op: str
    uri: str = ""


class ChainReport(Struct, frozen=True):
    chain: str
    files: int = 0
    records: int = 0  # that are vouched for
    witnessed: int = 0  # of these, before the last checkpoint
    first: int = 0  # the oldest part that retention kept
    batches: int = 0
    lost: int = 0  # records that the writer itself says it could not store
    unfinished: tuple[Unfinished, ...] = ()
    counted: int = 0  # requests that are in a summary, and have no record of their own
    early: tuple[str, ...] = ()  # what retention deleted that was younger than it should have been
    end: Literal["closed", "open"] = "open"  # open: it still runs, or it was killed
    broken: Break | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.broken is None


class Report(Struct, frozen=True):
    chains: tuple[ChainReport, ...]
    broken: tuple[Break, ...] = ()  # of the checkpoints themselves
    warnings: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()  # chains that the checkpoints say were deleted by retention

    @property
    def ok(self) -> bool:
        return not self.broken and all(chain.ok for chain in self.chains)

    @property
    def records(self) -> int:
        return sum(chain.records for chain in self.chains)


def verify(directory: Path, key: bytes, checkpoints: Checkpoints | None = None, *, min_age: float = 0.0) -> Report:
    """Every chain in `directory`, each to its first break. Safe beside processes that write, if the
    checkpoints were read before. What retention deleted before it was `min_age` seconds old is told.

    Raises OSError when a file cannot be read.
    """
    names = {file.name.partition(".")[0] for pattern in ("*.jsonl", "*.head") for file in directory.glob(pattern)}
    if checkpoints is None:
        return Report(tuple(_verify_chain(directory, key, name, None, min_age) for name in sorted(names)))
    names |= checkpoints.heads.keys() - checkpoints.forgotten
    chains = tuple(_verify_chain(directory, key, name, _Witness(name, checkpoints), min_age) for name in sorted(names))
    forgotten = tuple(sorted(checkpoints.forgotten))
    return Report(chains, tuple(checkpoints.broken), tuple(checkpoints.warnings), forgotten)


def _verify_chain(directory: Path, key: bytes, name: str, witness: _Witness | None, min_age: float) -> ChainReport:
    for attempt in range(3):
        try:
            return _Walk(directory, key, name, witness, min_age).report()
        except FileNotFoundError:  # pruned by its writer between the listing and the reading
            if attempt == 2:
                raise
    raise AssertionError("unreachable")


class _Witness:
    """What the checkpoints say of one chain."""

    def __init__(self, chain: str, checkpoints: Checkpoints) -> None:
        self.file = checkpoints.file
        self.forgotten = chain in checkpoints.forgotten
        self.first: int = checkpoints.first.get(chain, 0)
        # All that were ever signed: whoever has the secret can append others, but not take these back.
        self.points: dict[int, list[Checkpoint]] = {}
        for point in checkpoints.heads.get(chain, ()):
            self.points.setdefault(point.number, []).append(point)

    def broken(self, point: Checkpoint, reason: str) -> _Broken:
        return _Broken(self.file, point.line, f"{reason} (signed at {point.time})")


class _Broken(Exception):
    def __init__(self, file: str, line: int, reason: str) -> None:
        self.found = Break(file, line, reason)


_Stop: TypeAlias = Callable[[int, str], NoReturn]


class _Walk:
    """Over the parts of one chain, with everything that was learnt so far."""

    def __init__(self, directory: Path, key: bytes, name: str, witness: _Witness | None, min_age: float) -> None:
        self._min_age, self._early = min_age, list[str]()
        self._counted = self._summary = 0  # requests in summaries, and the number of the last of these
        self._directory, self._key, self._name, self._witness = directory, key, name, witness
        self._seen: set[int] = set()  # numbers whose checkpoint holds
        self._witnessed = 0
        self._files = self._records = self._batches = self._lost = 0
        self._number: int = 0  # of the last chain line
        self._first: int = 0  # the oldest part that the writer kept
        self._mac: bytes | None = None
        self._following: str | None = None  # the file that the chain says it goes on in
        self._closed = False
        self._warnings: list[str] = []
        self._intents: dict[str, Unfinished] = {}  # without an outcome so far, by their ids

    def report(self) -> ChainReport:
        broken = None
        try:
            self._walk()
            self._check_counts()
            self._check_head()
            self._check_witness()
        except _Broken as stop:
            broken = stop.found
        return ChainReport(
            self._name, self._files, self._records, self._witnessed, self._first, self._batches, self._lost,
            tuple(self._intents.values()), self._counted, tuple(self._early),
            "closed" if self._closed else "open", broken, tuple(self._warnings),
        )  # fmt: skip

    def _walk(self) -> None:
        parts = sorted(self._parts())
        self._files = len(parts)
        unfinished = None
        if parts and not _is_begun(parts[-1][1]):
            part, file = parts.pop()
            unfinished = file.name
            if not part:
                raise _Broken(unfinished, 1, "emptied: the file was made together with its first batch")
            if not _is_tail(file, self._name, part):
                raise _Broken(unfinished, 1, "overwritten: no opening line begins like this")
            self._warnings.append(f"{unfinished}: incomplete tail, no batch was written")
        for index, (part, file) in enumerate(parts):
            if index and part != parts[index - 1][0] + 1:
                raise _Broken(file.name, 1, f"part {parts[index - 1][0] + 1} of the chain is missing")
            self._walk_part(part, file, last=index == len(parts) - 1, starts=index == 0)
        if self._following not in (None, unfinished):
            assert self._following is not None
            raise _Broken(self._following, 1, "the file is missing")
        first = min(self._first, self._witness.first) if self._witness and self._witness.points else self._first
        if parts and parts[0][0] > first:
            raise _Broken(parts[0][1].name, 1, f"the parts before are missing, from {first} on")

    def _parts(self) -> Iterator[tuple[int, Path]]:
        for file in self._directory.glob(f"{self._name}.*"):
            if file.suffix == ".jsonl":
                match = _FILE.match(file.name)
                if match is None:
                    raise _Broken(file.name, 1, "not the name of an audit file")
                yield int(match["part"] or 0), file

    def _walk_part(self, part: int, file: Path, *, last: bool, starts: bool) -> None:
        def broken(line: int, reason: str) -> NoReturn:
            raise _Broken(file.name, line, reason)

        if not starts and self._following != file.name:
            broken(1, "the part before does not lead here")
        self._following = None
        with file.open("rb") as lines:
            self._open(part, lines.readline(), starts, broken)
            begun, unsealed, torn = 2, 0, False
            telling: list[tuple[int, bytes]] = []  # what the batch says of changes
            running = hmac.new(self._key, self._mac, "sha256")
            for number, line in enumerate(lines, start=2):
                if self._closed or self._following is not None:
                    broken(number, "lines were added behind the end")
                if not line.endswith(b"\n"):
                    torn = True
                elif not line.startswith(_CHAIN_LINE):
                    running.update(line)
                    unsealed += 1
                    if _INTENT in line or _SUMMARY in line or _RETENTION in line:
                        telling.append((number, line))
                else:
                    running.update(line[:-_MAC_LENGTH])
                    self._mac = running.digest()
                    self._chain_line(line, unsealed, begun, broken)
                    for place, told in telling:
                        self._told(file.name, place, told)
                    telling.clear()
                    running = hmac.new(self._key, self._mac, "sha256")
                    begun, unsealed = number + 1, 0
        if not last and self._following is None:
            broken(begun, "truncated: the chain goes on in another file")
        if unsealed or torn:
            self._warnings.append(f"{file.name}: incomplete tail, nothing vouches for what begins at line {begun}")

    def _told(self, file: str, number: int, line: bytes) -> None:
        record = _parse(line)
        if "summary" in record:
            self._counted, self._summary = self._counted + record["count"], record["summary"]
        elif record.get("op") == "retention":
            self._check_age(str(record.get("chain")), record["age"])
        elif record.get("outcome") == "intent":
            facts = {key: str(record.get(key, "")) for key in ("id", "time", "who", "op", "uri")}
            self._intents[facts["id"]] = Unfinished(file, number, **facts)
        else:
            self._intents.pop(str(record.get("intent")), None)

    def _check_age(self, what: str, age: int) -> None:
        if age < self._min_age:
            self._early.append(f"{what}: {age} s old, and min_age is {self._min_age:.0f} s")

    def _check_counts(self) -> None:
        """What was counted and is not in the chain yet."""
        file = self._directory / f"{self._name}.counts"
        for attempt in range(3):  # it may be written meanwhile
            text = file.read_bytes() if file.exists() else b""
            body = text[:-_MAC_LENGTH]
            mac = seal(self._key, bytes(32), body)
            named = b'{"chain":"counts","id":"%b"' % self._name.encode("utf-8", "replace")
            if not text or (text.endswith(b'"%b"}\n' % mac.hex().encode()) and body.endswith(named)):
                break
            if attempt == 2:
                raise _Broken(file.name, 1, "the counts were changed, or sealed with another key")
        for record in map(_parse, text.splitlines()[:-1]):
            if record.get("summary", 0) > self._summary:
                self._counted += record["count"]

    def _open(self, part: int, line: bytes, starts: bool, broken: _Stop) -> None:
        stated = _parse(line)
        if stated.get("chain") != "open" or not _MAC.search(line):
            broken(1, "the opening line is missing or was changed")
        if stated.get("version") != 1:
            broken(1, "written by a newer Octavo")
        if str(stated.get("key")).encode("utf-8", "replace") != fingerprint(self._key):
            broken(1, "sealed with another key")
        previous = _hexadecimal(stated.get("prev"))
        mac = seal(self._key, previous, line[:-_MAC_LENGTH])
        if not hmac.compare_digest(mac.hex(), str(stated["mac"])):
            broken(1, "the opening line was changed")
        if stated["id"] != self._name or stated["part"] != part:
            broken(1, f"the file was renamed: it is part {stated['part']} of {stated['id']}")
        if not starts and previous != self._mac:
            broken(1, "does not continue the part before")
        self._mac, self._first = mac, stated["first"]
        if "age" in stated:
            self._check_age(f"{self._name}, the parts before {self._first}", stated["age"])

    def _chain_line(self, line: bytes, unsealed: int, begun: int, broken: _Stop) -> None:
        stated = _parse(line)
        match = _MAC.search(line)
        assert self._mac is not None
        if match is None or not hmac.compare_digest(self._mac.hex().encode("ascii"), match["mac"]):
            broken(begun, self._why(stated, unsealed))
        if self._number and stated["number"] != self._number + 1:
            broken(begun, self._why(stated, unsealed))
        self._number = stated["number"]
        self._lost += stated.get("lost", 0)
        match stated["chain"]:
            case "batch":
                self._batches += 1
                self._records += unsealed
            case "next":
                self._following = stated["file"]
            case _:
                self._closed = True
        if self._witness is not None and self._number in self._witness.points:
            self._compare(self._witness, self._mac.hex())

    def _compare(self, witness: _Witness, mac: str) -> None:
        for point in witness.points[self._number]:
            if point.mac != mac:
                raise witness.broken(point, f"replaced: number {point.number} is not what a checkpoint vouches for")
        self._seen.add(self._number)
        self._witnessed = self._records

    def _why(self, stated: dict[str, Any], unsealed: int) -> str:
        """A guess at what was done, from what a line that is not to be trusted says."""
        number, records = stated.get("number"), stated.get("records", 0)
        if not isinstance(number, int):
            return "edited: the chain line cannot be read"
        if self._number and number > self._number + 1:
            return f"deleted: batch {self._number + 1} should stand here, not {number}"
        if self._number and number <= self._number:
            return f"swapped: batch {number} stands behind batch {self._number}"
        if records != unsealed:
            return f"deleted or added: {records} records were sealed, {unsealed} stand here"
        return "edited or swapped: the batch is not what was sealed"

    def _check_head(self) -> None:
        file = self._directory / f"{self._name}.head"
        if not file.exists():
            if self._closed:
                self._warnings.append(f"{file.name}: missing, though the chain was closed")
            return
        line = file.read_bytes()
        stated = _parse(line)
        mac = seal(self._key, bytes(32), line[:-_MAC_LENGTH])
        intact = _MAC.search(line) is not None and hmac.compare_digest(mac.hex(), str(stated.get("mac")))
        if not intact or stated["id"] != self._name:
            raise _Broken(file.name, 1, "the head was changed, or sealed with another key")
        if not self._closed or stated["number"] != self._number or self._mac != _hexadecimal(stated["last"]):
            reason = f"truncated: the chain was closed with number {stated['number']} and ends with {self._number}"
            raise _Broken(file.name, 1, reason)

    def _check_witness(self) -> None:
        if self._witness is None:
            return
        if self._witness.forgotten:
            self._warnings.append(f"{self._name}: said to be deleted by retention, and still there")
            return
        if not self._witness.points:
            self._warnings.append(f"{self._name}: no checkpoint vouches for it")
        for number, (point, *_) in self._witness.points.items():
            if number not in self._seen and point.part >= self._witness.first:
                raise self._witness.broken(point, self._what_is_missing(number))

    def _what_is_missing(self, number: int) -> str:
        if not self._files:
            return f"deleted: all files of {self._name}"
        if number > self._number:
            return f"truncated: a checkpoint vouches for number {number}, and the chain ends with {self._number}"
        return f"replaced: there is no number {number}, for which a checkpoint vouches"


def _is_begun(file: Path) -> bool:
    with file.open("rb") as lines:
        return lines.readline().endswith(b"\n")


def _is_tail(file: Path, chain: str, part: int) -> bool:
    """Whether a kill in mid-write can have left it: the beginning of an opening line, or nothing."""
    opening = b'{"chain":"open","version":1,"id":"%b","part":%d,' % (chain.encode("utf-8", "replace"), part)
    with file.open("rb") as lines:
        begun = lines.read(len(opening))
    return opening.startswith(begun)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _hexadecimal(value: object) -> bytes:
    try:
        return bytes.fromhex(str(value))
    except ValueError:
        return b""
