"""Changing a part of a text file: read, change, write; and once more from the start if anybody else was faster."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import Final

from octavo.core.edit import Revised, Revision
from octavo.core.errors import Conflict, InvalidParams
from octavo.core.preconditions import Shown, check
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Edited, Entry
from octavo.sources._shared.places import Where
from octavo.sources._shared.text import decode, encode
from octavo.sources._shared.text.decoding import Decoded
from octavo.sources.file.roots import Forest
from octavo.sources.file.writing.engine import WriteEngine
from octavo.text.revise import revise

MAX_BYTES: Final = 16 * MIB  # of a file that is edited in memory
_TRIES: Final = 20


def edited(
    engine: WriteEngine,
    forest: Forest,
    ref: Ref,
    where: Where,
    revision: Revision,
    *,
    if_match: str | None,
    dry_run: bool,
    by: str,
) -> Edited:
    """Without `if_match` a caller wants its change in whatever stands there now, so a faster writer is no failure."""
    left = _TRIES if if_match is None else 1
    while True:
        entry, etag, found = _text(forest, ref, where, if_match)
        made = revise(found.text, revision)
        text = made.text
        if text == found.text:
            return _told(entry, made)
        body = encode(text, found.encoding, bom=found.bom)
        # What was written may be read in another encoding, or as no text at all.
        check(partial(Shown, text, entry.mime_type), partial(forest.shown, body, entry.name))
        if dry_run:
            return _told(entry, made)
        try:
            written = engine.write(ref, where, body, if_match=etag, mode="overwrite", encoding=None, by=by)
        except Conflict:
            left -= 1
            if not left:
                raise
        else:
            return _told(written, made)


def _told(entry: Entry, made: Revised) -> Edited:
    return Edited(entry, made.report, made.added, made.removed, made.places)


def _text(forest: Forest, ref: Ref, where: Where, if_match: str | None) -> tuple[Entry, str, Decoded]:
    entry, raw = forest.raw(ref, where, MAX_BYTES, wait=True)
    if entry.target is not None and entry.target.segments != where.names:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))  # nothing is written through a link, so nothing is shown
    etag, uri = forest.etag(raw), str(ref)
    if if_match is not None and if_match not in (entry.version, etag):
        raise Conflict(f"{uri} is not what it was when you read it; read it again", uri=uri)
    found = decode(raw, entry.mime_type, order=forest.encodings)
    if found is None:
        raise InvalidParams(f"{uri} is not text, so no part of it can be edited; write it whole", uri=uri)
    if not found.exact:
        raise InvalidParams(
            f"{uri} has characters with two codes in {found.encoding}: an edit would change bytes that nobody "
            "touched. Write it whole, with the encoding you want",
            uri=uri,
        )
    return entry, etag, found
