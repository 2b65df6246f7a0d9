"""Signed checkpoints of audit chains, one JSON line each, in a file at a second place.

    {"checkpoint":"head","version":1,"time":…,"by":CHAIN,"serial":3,"part":0,"first":0,"number":812,"mac":…,
     "end":"open","key":…,"signature":…}
    {"checkpoint":"forgot","version":1,"time":…,"by":CHAIN,"serial":4,"chain":OLD,"key":…,"signature":…}

A head says that chain CHAIN has this mac at this number, and a mac commits to every byte before it, whoever
has the key of the chain. `first` is the oldest part that retention keeps, `forgot` an older chain that it
deletes; both are written before anything is deleted. Serials count what one process wrote, so that a gap shows.
Signatures are Ed25519, under a key of their own that is derived from the secret of the state directory.

With a copy of this file that the forger could not rewrite, `stores.verify` finds every change before the last
checkpoint, even if he has the audit folder and all keys. It cannot find what was cut off or rewritten behind
the last checkpoint. Whoever can also cut this file cuts both; whoever can only append to it, with the secret,
can declare old chains forgotten, which shows in `verify`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct, field

from octavo.core.clock import Clock, SystemClock, iso
from octavo.stores.audit.verify import Break
from octavo.stores.state import write_all

if TYPE_CHECKING:
    from octavo.stores.audit.ledger import Head

_SIGNATURE = re.compile(rb',"signature":"(?P<signature>[0-9a-f]{128})"\}\n\Z')
_SIGNATURE_LENGTH = len(b',"signature":""}\n') + 128


class Checkpoint(NamedTuple):
    """That a chain had this mac at this number."""

    line: int
    time: str
    part: int
    number: int
    mac: str


class Checkpoints(Struct):
    """What a file of checkpoints vouches for."""

    file: str
    heads: dict[str, list[Checkpoint]] = field(default_factory=dict[str, list[Checkpoint]])
    first: dict[str, int] = field(default_factory=dict[str, int])  # by chain: the oldest part that must be there
    forgotten: set[str] = field(default_factory=set[str])
    broken: list[Break] = field(default_factory=list[Break])
    warnings: list[str] = field(default_factory=list[str])


class CheckpointFile:
    """Appends checkpoints of one chain. The folder must exist; the file is made with mode 600."""

    def __init__(self, path: Path, seed: bytes, chain: str, *, clock: Clock | None = None) -> None:
        self._path, self._seed, self._chain = path, seed, chain
        self._wall = (clock or SystemClock()).wall
        self._serial = 0
        self._torn = False

    def head(self, head: Head) -> None:
        """Raises OSError."""
        end = "closed" if head.closed else "open"
        self._append(
            "head",
            {"part": head.part, "first": head.first, "number": head.number, "mac": head.mac.hex(), "end": end},
        )

    def forgot(self, chain: str) -> None:
        """To be called before the chain is deleted. Raises OSError."""
        self._append("forgot", {"chain": chain})

    def _append(self, kind: str, facts: Mapping[str, str | int]) -> None:
        key = _private(self._seed)
        stated = {"checkpoint": kind, "version": 1, "time": iso(self._wall()), "by": self._chain}
        stated |= {"serial": self._serial + 1, **facts, "key": _name(key.public_key())}
        text = json.dumps(stated, separators=(",", ":")).encode("ascii")[:-1]
        line = b'%b,"signature":"%b"}\n' % (text, key.sign(text).hex().encode("ascii"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        file = os.open(self._path, flags, 0o600)
        try:
            # A place that only takes what is appended cannot take back the half of a line.
            torn, self._torn = self._torn, True
            write_all(file, b"\n" + line if torn else line)
            os.fsync(file)
            self._torn = False
        finally:
            os.close(file)
        self._serial += 1


def read_checkpoints(path: Path, seed: bytes) -> Checkpoints:
    """Everything that is signed, and every line that is not as it was written. Raises OSError."""
    found = Checkpoints(path.name)
    serials: dict[str, int] = {}
    holds = _verifier(seed)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                found.warnings.append(f"{path.name}: line {number} is not complete")
            elif line != b"\n":
                for reason in _faults(line, holds, serials):
                    found.broken.append(Break(path.name, number, reason))
                    break
                else:
                    _note(found, number, json.loads(line))
    return found


def _faults(line: bytes, holds: Callable[[bytes, bytes], bool], serials: dict[str, int]) -> Iterator[str]:
    stated = _parse(line)
    signature = _SIGNATURE.search(line)
    if signature is None or not {"checkpoint", "version", "by", "serial"} <= stated.keys():
        yield "no checkpoint: changed, or torn by a full disk"
        return
    if stated["version"] != 1:
        yield "written by a newer Octavo"
    if not holds(bytes.fromhex(signature["signature"].decode("ascii")), line[:-_SIGNATURE_LENGTH]):
        yield "changed, or signed with another key"
        return
    before = serials.get(stated["by"], stated["serial"] - 1)
    serials[stated["by"]] = stated["serial"]
    if stated["serial"] != before + 1:
        yield f"checkpoint {before + 1} of {stated['by']} should stand here, not {stated['serial']}"


def _note(found: Checkpoints, line: int, stated: Mapping[str, Any]) -> None:
    chain = stated["by"]
    if stated["checkpoint"] == "forgot":
        found.forgotten.add(stated["chain"])
        return
    point = Checkpoint(line, stated["time"], stated["part"], stated["number"], stated["mac"])
    found.heads.setdefault(chain, []).append(point)
    found.first[chain] = max(found.first.get(chain, 0), stated["first"])


def _parse(line: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# cryptography takes a while to load, and only whoever has a second place needs it.


def _private(seed: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


def _name(public: Any) -> str:
    """The public key itself: it also lets somebody check a signature who has nothing else of ours."""
    raw: bytes = public.public_bytes_raw()
    return raw.hex()


def _verifier(seed: bytes) -> Callable[[bytes, bytes], bool]:
    from cryptography.exceptions import InvalidSignature

    public = _private(seed).public_key()

    def holds(signature: bytes, text: bytes) -> bool:
        try:
            public.verify(signature, text)
        except InvalidSignature:
            return False
        return True

    return holds
