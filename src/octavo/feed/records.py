"""How changes rest in the journal, and entries beside it: as JSON, with all that the policy has to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from octavo.core.ports.stores import Record
from octavo.core.values import Change, Entry

_CHANGE: Final = "change"


class _Kind(msgspec.Struct, frozen=True):
    """Of a record: the journal is for others too."""

    type: str


class _Kept(msgspec.Struct, frozen=True, tag=_CHANGE):
    change: Change
    served: str = ""


_ENCODER: Final = msgspec.json.Encoder()
_KIND: Final = msgspec.json.Decoder(_Kind)
_KEPT: Final = msgspec.json.Decoder(_Kept)


def written(change: Change, served: str) -> bytes:
    return _ENCODER.encode(_Kept(replace(change, old=resting(change.old), new=resting(change.new)), served))


def read(records: Iterable[Record], served: Mapping[str, str]) -> list[Change]:
    """Those that are changes of what is served so. Raises ValueError for what cannot be read: of that nobody knows what
    it was."""
    found = [(record.number, _read(record.body)) for record in records]
    return [
        replace(one.change, seq=number)
        for number, one in found
        if one is not None and one.served == served.get(one.change.ref.scheme, "")
    ]


def _read(body: bytes) -> _Kept | None:
    try:
        return _KEPT.decode(body)
    except msgspec.ValidationError:
        if _KIND.decode(body).type == _CHANGE:
            raise
        return None


def resting(entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    texts = {name: _plain(getattr(entry, name)) for name in ("name", "title", "description")}
    return replace(entry, **texts, metadata=_plain(entry.metadata), annotations=_plain(entry.annotations))


def _plain(value: Any) -> Any:
    """As JSON, in which every value still reads as the word that the rules of the policy compare."""
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("Iterable[Any]", value)]
    exact = isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 64)
    if value is None or exact or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode("utf-8")
