"""How changes rest in the journal, and entries beside it: as JSON, with all that the policy has to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from octavo.core.ports.stores import Record
from octavo.core.values import Change, Entry

_CHANGE: Final = "change"


class _Kind(msgspec.Struct, frozen=True):
    """Of a record: the journal is for others too."""

    type: str


class _Written(msgspec.Struct, frozen=True, tag=_CHANGE):
    change: Change
    served: str = ""


class Kept(NamedTuple):
    """A record, with what it tells if it is a change."""

    number: int
    written: _Written | None

    def told(self, served: Mapping[str, str]) -> Change | None:
        """The change, if it is of what is served so."""
        one = self.written
        if one is None or one.served != served.get(one.change.ref.scheme, ""):
            return None
        return replace(one.change, seq=self.number)


_ENCODER: Final = msgspec.json.Encoder()
_KIND: Final = msgspec.json.Decoder(_Kind)
_WRITTEN: Final = msgspec.json.Decoder(_Written)


def written(change: Change, served: str) -> bytes:
    return _ENCODER.encode(_Written(replace(change, old=resting(change.old), new=resting(change.new)), served))


def kept(record: Record) -> Kept | None:
    """None for what cannot be read: damaged, or of a version that writes otherwise. Nobody knows what it was."""
    try:
        return Kept(record.number, _WRITTEN.decode(record.body))
    except msgspec.ValidationError:
        pass  # of another kind, perhaps
    except msgspec.MsgspecError:
        return None
    try:
        return None if _KIND.decode(record.body).type == _CHANGE else Kept(record.number, None)
    except msgspec.MsgspecError:
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
