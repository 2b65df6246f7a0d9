"""One change of one client's file: what it would be, and doing it.

Every change is compared with what it should say before anything is written: the same as before, but for the entry."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from octavo.cli.client_files import Left, UnreadableFile
from octavo.cli.client_files.place import ClientFile, content, remove_empty, replace
from octavo.cli.client_files.receipts import Receipt, Receipts, digest
from octavo.cli.client_files.records import Client, ServerEntry


class FileChange(NamedTuple):
    place: ClientFile
    before: bytes | None
    after: bytes | None
    original: bytes | None = None  # what taking back shall give
    put: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        return self.before == self.after


def installation(client: Client, place: ClientFile, name: str, server: ServerEntry, receipts: Receipts) -> FileChange:
    """Raises `Left`, with nothing done."""
    path, entry = (*client.key, name), client.entry(server)
    before = content(place)
    said = _read(client, place, before)
    _holds_servers(client, place, said)
    start, original, put = before, before, _outermost(said, path)
    receipt = receipts.find(place.file, name)
    if before is not None and receipt is not None and put == path and _at(said, path) is not None:
        put = receipt.put
        original = _original(client, place, name, before, receipts)
        if receipt.after == digest(before):
            start = original  # nobody has written since: as if it were installed for the first time
    if _at(said, path) == entry:
        return FileChange(place, before, before)
    after = _edited(place, start, lambda text: client.format.put(text, path, entry))
    _compare(client, place, after, name, _with(said, path, entry))
    return FileChange(place, before, after, original, put)


def removal(client: Client, place: ClientFile, name: str, receipts: Receipts) -> FileChange:
    """Raises `Left`, with nothing done."""
    before = content(place)
    if before is None or _at(_read(client, place, before), (*client.key, name)) is None:
        return FileChange(place, before, before)
    return FileChange(place, before, _original(client, place, name, before, receipts))


def install(change: FileChange, name: str, receipts: Receipts) -> Path | None:
    """Where the backup is, if there was something to keep."""
    if change.after is None:
        return None
    earlier = receipts.find(change.place.file, name)
    before = None if change.original is None else digest(change.original)
    receipt = Receipt(
        str(change.place.file), name, digest(change.after), before, change.put, earlier.folders if earlier else ()
    )
    backup = receipts.keep(receipt, change.original)  # first: whatever happens then can be taken back
    made = replace(change.place, change.before, change.after)
    if made:
        receipts.keep(msgspec.structs.replace(receipt, folders=tuple(map(str, made))), change.original)
    return backup


def uninstall(change: FileChange, name: str, receipts: Receipts) -> None:
    receipt = receipts.find(change.place.file, name)
    if not change.nothing:
        replace(change.place, change.before, change.after)
    if receipt is not None and change.after is None:
        remove_empty([Path(folder) for folder in receipt.folders])
    receipts.drop(change.place.file, name)


def _original(client: Client, place: ClientFile, name: str, before: bytes, receipts: Receipts) -> bytes | None:
    """The file without the entry: to the byte as it was where nobody else has written since."""
    path = (*client.key, name)
    receipt = receipts.find(place.file, name)
    if receipt is not None and receipt.after == digest(before):
        try:
            return receipts.backup(receipt)
        except LookupError:
            pass
    said = _read(client, place, before)
    alone = len(_at(said, client.key)) == 1
    outer = client.key if alone and receipt is not None and len(receipt.put) < len(path) else path
    after = _edited(place, before, lambda text: client.format.take(text, outer))
    # A table of TOML that nothing names any more is gone with its last entry.
    _compare(client, place, after, name, _dropped(said, outer), *([_dropped(said, client.key)] if alone else []))
    return after


def _compare(client: Client, place: ClientFile, after: bytes, name: str, *expected: Mapping[str, Any]) -> None:
    try:
        holds = client.format.read(_decoded(place, after)[1]) in expected
    except UnreadableFile:
        holds = False
    if not holds:
        raise Left("odd_form", file=place.file, where=".".join(client.key), name=name)


def _edited(place: ClientFile, before: bytes | None, edit: Callable[[str], str]) -> bytes:
    mark, text = _decoded(place, before)
    try:
        return mark + edit(text).encode()
    except UnicodeEncodeError:
        raise Left("odd_path", file=place.file) from None


def _read(client: Client, place: ClientFile, data: bytes | None) -> Mapping[str, Any]:
    try:
        return client.format.read(_decoded(place, data)[1])
    except UnreadableFile as broken:
        raise Left("broken", file=place.file, why=broken) from None


def _holds_servers(client: Client, place: ClientFile, said: Mapping[str, Any]) -> None:
    for depth, name in enumerate(client.key, 1):
        if name not in said:
            return
        said = said[name]
        if not isinstance(said, Mapping):
            raise Left("no_object", file=place.file, where=".".join(client.key[:depth]))


def _decoded(place: ClientFile, data: bytes | None) -> tuple[bytes, str]:
    data = data or b""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, data[len(mark) :].decode("utf-8")
    except UnicodeDecodeError:
        raise Left("no_utf8", file=place.file) from None


def _at(said: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = said
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _outermost(said: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, ...]:
    return next((path[: depth + 1] for depth in range(len(path)) if _at(said, path[: depth + 1]) is None), path)


def _with(said: Mapping[str, Any], path: tuple[str, ...], entry: Any) -> Mapping[str, Any]:
    name, *rest = path
    return {**said, name: _with(said.get(name) or {}, tuple(rest), entry) if rest else entry}


def _dropped(said: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    name, *rest = path
    if rest:
        return {**said, name: _dropped(said[name], tuple(rest))}
    return {key: value for key, value in said.items() if key != name}
