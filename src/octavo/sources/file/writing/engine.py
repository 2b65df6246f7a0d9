"""The blocking half of writing: every change of a file, under a lock, with its old version in the journal.

What is never done: following a link, touching a name that is not served, changing a read-only file, parting
hard links, or destroying anything that the journal does not hold.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Final, Literal

from msgspec.structs import replace

from octavo.core.errors import Conflict, Forbidden, TooLarge
from octavo.core.preconditions import check
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Entry
from octavo.sources._shared.fs.faults import ABSENT, forbidden, not_found, outside, unserved
from octavo.sources._shared.fs.mime import known_binary, mime_type
from octavo.sources._shared.fs.names import Rules, extension_of
from octavo.sources._shared.fs.reading import contents
from octavo.sources._shared.fs.stats import identity
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.addresses import FileAddresses
from octavo.sources.file.entries import Digests
from octavo.sources.file.root import SeenFile
from octavo.sources.file.roots import Forest
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.backup import Old, hidden_scan, keep_directory, keep_file, keep_link
from octavo.sources.file.writing.journal import UndoJournal
from octavo.sources.file.writing.locks import locked
from octavo.sources.file.writing.records import UNKNOWN, Backup, ChangeRecord, Op, Spelled, Version
from octavo.sources.file.writing.recovery import recover, settle, sweep
from octavo.sources.file.writing.removal import take_away
from octavo.sources.file.writing.staging import Draft, changed, stray_of
from octavo.sources.file.writing.targets import (
    Spot,
    Use,
    made_spot,
    mark_of_file,
    read_link,
    refuse_linked,
    refuse_unmakable,
    refuse_unwritable,
    spot_of,
)
from octavo.sources.file.writing.text import appended, encoded
from octavo.sources.file.writing.trees import TreeScan

Mode = Literal["create", "overwrite", "append", "upsert"]

_IN_MEMORY: Final = 64 * MIB  # bytes of a file that is read to compare it or to add to it
_NEW_FILE: Final = 0o666  # less the mask of the process
_PRIVATE: Final = 0o600
DIRECTORY: Final = "inode/directory"


class WriteEngine:
    """Over opened roots. Without a journal only what destroys nothing is done: new files, new directories,
    moves and copies to where nothing is. OSErrors that leave say that nothing has changed."""

    def __init__(
        self,
        forest: Forest,
        addresses: FileAddresses,
        digests: Digests,
        journal: UndoJournal | None,
        wall: Callable[[], float],
    ) -> None:
        self.trees = forest.trees
        self._addresses = addresses
        self.journal = journal
        self._forest = forest
        self._digests = digests
        self._wall = wall

    @property
    def _real(self) -> Sequence[str]:
        """Where the roots are now: the place of one may have been taken by another."""
        return [tree.real for tree in self.trees]

    def recover(self) -> None:
        """Ends what an earlier process left half done."""
        if self.journal is not None:
            recover(self.journal, self.spot_at)
            self.journal.tidy()
        for tree in self.trees:
            sweep(tree)

    def write(
        self, ref: Ref, where: Where, body: str | bytes, *, if_match: str | None, mode: Mode, encoding: str | None,
        by: str,
    ) -> Entry:  # fmt: skip
        spot = spot_of(self.trees, where)
        if spot is None:
            self._refuse_absent(ref, if_match, mode)
            self._new_body(body, None, mode, encoding)  # refused before any directory is made
            spot = self.made_spot(where)
        with spot, locked(spot.here):
            spot.confirm()
            with self.existing(ref, spot) as old:
                if old is None:
                    self._refuse_absent(ref, if_match, mode)
                else:
                    self._refuse_existing(ref, spot, old, if_match, mode)
                like = mode == "append" or (isinstance(body, str) and encoding is None)  # what stands there matters
                known = _read(ref, old) if like and old is not None else None
                raw = self._new_body(body, known, mode, encoding)
                if known is not None and mode == "append":
                    name = spot.place.names[-1]
                    check(partial(self._forest.shown, known, name), partial(self._forest.shown, raw, name))
                number = new_number()
                with Draft(spot.here, stray_of(number), _NEW_FILE if old is None else _PRIVATE) as draft:
                    draft.fill(raw)
                    self.publish(ref, spot, draft, old, number, op="write", by=by)
                    return self.entry(where, spot, os.fstat(draft.fd))

    def _new_body(self, body: str | bytes, known: bytes | None, mode: Mode, encoding: str | None) -> bytes:
        if isinstance(body, bytes):
            return known + body if mode == "append" and known is not None else body
        make = appended if mode == "append" and known is not None else encoded
        return make(body, known or b"", encoding, self._forest.encodings)

    def delete(self, ref: Ref, where: Where, *, if_match: str | None, by: str) -> None:
        journal = self.required_journal(ref)
        with self.found_spot(ref, where) as spot, locked(spot.here):
            spot.confirm()
            number = new_number()
            if self.is_directory(ref, spot):
                self.refuse_version(ref, if_match)
                scan = TreeScan(spot.tree, spot.disk, spot.place.names, ref, going=True)
                what = scan.contents()
                hidden = hidden_scan(spot, number, ref)
                with self.acting(
                    ChangeRecord(id=number, at=0, by=by, op="delete", place=self.spelled(spot)),
                    [spot],
                    lambda: keep_directory(journal, number, scan, what, ref),
                ):
                    if what.has_links:
                        refuse_unmakable(ref, spot, stray_of(number))
                    take_away(spot, stray_of(number), what.prints[0], lambda: hidden.contents().mark == what.mark)
                return
            if (link := self._served_link(spot)) is not None:
                self.refuse_version(ref, if_match, "link")
                kept, stray = keep_link(spot, link), stray_of(number)
                record = ChangeRecord(id=number, at=0, by=by, op="delete", place=self.spelled(spot))
                with self.acting(record, [spot], lambda: kept):
                    refuse_unmakable(ref, spot, stray)
                    leads = kept.leaves[0].link
                    take_away(
                        spot, stray, kept.version.print, lambda: os.fsdecode(read_link(stray, spot.here)) == leads
                    )
                return
            with self.existing(ref, spot) as old:
                if old is None:
                    raise not_found(ref)
                self.refuse_stale(ref, spot, old, if_match)
                refuse_unwritable(ref, old.fd, old.stat)
                with self.acting(
                    ChangeRecord(id=number, at=0, by=by, op="delete", place=self.spelled(spot)),
                    [spot],
                    lambda: keep_file(journal, number, old, ref),
                ):
                    take_away(spot, stray_of(number), old.print)

    def make_directory(self, ref: Ref, where: Where, *, by: str) -> None:
        spot = spot_of(self.trees, where, use="make") or self.made_spot(where, use="make")
        with spot, locked(spot.here):
            spot.confirm()
            found = spot.look()
            if found is not None:
                if stat.S_ISDIR(found.st_mode):
                    return
                raise Conflict(
                    f"A file stands at {ref}; a directory cannot be made there, choose another name", uri=str(ref)
                )
            record = ChangeRecord(
                id=new_number(), at=0, by=by, op="make_directory", place=self.spelled(spot),
                new=Version(UNKNOWN, ""), made=spot.made,
            )  # fmt: skip
            with self.acting(record, [spot]):
                os.mkdir(spot.name, dir_fd=spot.here)
                os.fsync(spot.here)

    def publish(
        self, ref: Ref, spot: Spot, draft: Draft, old: Old | None, number: str, *, op: Op, by: str,
        attributes: Attributes | None = None,
    ) -> None:  # fmt: skip
        """A filled draft under the name of the spot, which has the attributes of the file it replaces."""
        if old is not None:
            attributes = Attributes.of(old.fd).of_new_content
        new = Version(draft.seal(attributes, after=old and old.stat), mark_of_file(draft.fd))
        journal = self.journal if old is None else self.required_journal(ref)
        keep = None if old is None or journal is None else lambda: keep_file(journal, number, old, ref)
        record = ChangeRecord(id=number, at=0, by=by, op=op, place=self.spelled(spot), new=new, made=spot.made)
        with self.acting(record, [spot], keep):
            spot.confirm()
            if old is None:
                draft.appear(spot.name)
            else:
                draft.replace(spot.name, old.print)

    def check_name(self, ref: Ref, old: Old, name: str, to: str) -> None:
        """Raises InvalidParams where a file must not have this other name, by which its type is told."""
        large = old.stat.st_size > _IN_MEMORY and known_binary(mime_type(name))  # no text has that name and size
        if mime_type(name) != mime_type(to) and not large:
            raw = cache(partial(_read, ref, old))
            check(lambda: self._forest.shown(raw(), name), lambda: self._forest.shown(raw(), to))

    @contextmanager
    def acting(
        self, record: ChangeRecord, spots: list[Spot], keep: Callable[[], Backup] | None = None
    ) -> Iterator[ChangeRecord | None]:
        """Around the change itself: before it, on disk, what was and what will be; after it, that it is so."""
        journal = self.journal
        if journal is None:
            yield None
            return
        with journal.adding():
            try:
                record = replace(record, at=self._wall(), old=None if keep is None else keep())
                journal.begin(record)
            except BaseException:
                journal.forget(record.id)
                raise
        try:
            yield record
        except BaseException:
            settle(journal, record, spots)
            raise
        journal.note(record, "done")

    def found_spot(self, ref: Ref, where: Where, *, use: Use = "change") -> Spot:
        """Whatever stands there: a name of no allowed extension may yet be a directory."""
        self.refuse_hidden(ref, where)
        spot = spot_of(self.trees, where, use=use)
        if spot is None:
            rules = self._rules(ref, where)
            if rules.verdict(where.names) == "extension":
                raise unserved(ref, extension_of(where.names), rules.served)
            raise not_found(ref)
        return spot

    def made_spot(self, where: Where, root: int | None = None, *, use: Use = "change") -> Spot:
        """For something new: in the first root, unless the address or the caller says which."""
        roots = [k for k in where.roots if self.trees[k].rules.covers(where.names)]
        k = root if root is not None and root in roots else roots[0]
        return made_spot(self.trees[k], k, where.names, use=use)

    def spot_at(self, spelled: Spelled, *, make: bool = False) -> Spot | None:
        """Where a record happened; None when that is no more, unless its directories are to be made again."""
        if spelled.root not in self._real:
            ref = self.told(spelled)
            raise Conflict(f"{ref} was in a root that is no longer served", uri=str(ref))
        k = self._real.index(spelled.root)
        if make:
            self._rules(ref := self.ref_of(spelled), Where(ref.segments, (k,)))
        try:
            return Spot(self.trees[k], k, spelled.disk)
        except OSError as error:
            if error.errno not in ABSENT:
                raise
        return made_spot(self.trees[k], k, spelled.disk) if make else None

    def ref_of(self, spelled: Spelled) -> Ref:
        names = tuple(unicodedata.normalize("NFC", name) for name in spelled.disk)
        return self._addresses.plain(names, self._real.index(spelled.root) if spelled.root in self._real else 0)

    def place_of(self, spelled: Spelled) -> Ref:
        """The same, which says also of the first of several roots that it is the one."""
        ref = self.ref_of(spelled)
        return ref if ref.params else self._addresses.of(ref.segments, 0)

    def told(self, spelled: Spelled) -> Ref:
        """The same as lists spell it, for answers."""
        ref = self.ref_of(spelled)
        known = spelled.root in self._real
        return self._forest.folder(Place(ref.segments, self._real.index(spelled.root))) if known else ref

    def spelled(self, spot: Spot) -> Spelled:
        return Spelled(self._real[spot.place.root], spot.disk)

    def entry(self, where: Where, spot: Spot, found: os.stat_result) -> Entry:
        """As `stat` would tell it."""
        shadowed = len(where.roots) == 1
        if stat.S_ISDIR(found.st_mode):
            ref = self._forest.address(spot.place, shadowed=shadowed)
            return Entry(ref=ref, name=spot.place.names[-1], mime_type=DIRECTORY, modified=found.st_mtime)
        return self._forest.listed(
            spot.place, self._digests.facts(SeenFile(spot.place.names, found)), shadowed=shadowed
        )

    @contextmanager
    def existing(self, ref: Ref, spot: Spot) -> Iterator[Old | None]:
        """The file that stands there and may be served. Conflict for a directory, ELOOP for a link."""
        found = spot.look()
        if found is None:
            yield None
            return
        uri = str(ref)
        if stat.S_ISDIR(found.st_mode):
            raise Conflict(f"A directory stands at {uri}; choose another name", uri=uri)
        fd = spot.open()
        try:
            old = Old(fd, os.fstat(fd))
            rules, names = spot.tree.rules, spot.place.names
            if (verdict := rules.verdict(names)) == "extension":  # in the words for what is not there
                raise unserved(ref, extension_of(names), rules.served)
            if not stat.S_ISREG(old.stat.st_mode) or verdict != "served":
                raise forbidden(ref)
            if identity(spot.tree.look(spot.place.names).stat) != identity(old.stat):
                raise changed()
            yield old
        finally:
            os.close(fd)

    def is_directory(self, ref: Ref, spot: Spot) -> bool:
        found = spot.look()
        if found is None:
            raise not_found(ref)
        return stat.S_ISDIR(found.st_mode)

    def refuse_stale(self, ref: Ref, spot: Spot, old: Old, if_match: str | None) -> None:
        if if_match is None or if_match == self._digests.facts(SeenFile(spot.place.names, old.stat)).version:
            return
        if old.stat.st_size <= _IN_MEMORY and if_match == self._digests.etag(_read(ref, old)):
            return
        uri = str(ref)
        raise Conflict(f"{uri} has changed since that version; read it again", uri=uri)

    def _served_link(self, spot: Spot) -> os.stat_result | None:
        """A link that leads to something here: it can go, as what it is. Others are not served."""
        found, names = spot.look(), spot.place.names
        if found is None or not stat.S_ISLNK(found.st_mode) or spot.tree.rules.verdict(names) != "served":
            return None
        return found if spot.tree.leads_inside(names) else None

    def refuse_version(self, ref: Ref, if_match: str | None, kind: str = "directory") -> None:
        if if_match is not None:
            raise Conflict(f"{ref} is a {kind} and has no version; leave if_match out", uri=str(ref))

    def refuse_hidden(self, ref: Ref, where: Where) -> None:
        """By name alone, before the disk is asked."""
        if not where.names:
            raise Forbidden("A source is not changed as a whole: name something in it", uri=str(ref))
        rules = self._rules(ref, where)
        if rules.hides_on_the_way(where.names):
            raise not_found(ref)

    def _rules(self, ref: Ref, where: Where) -> Rules:
        """Those of the first root in which the names may stand. Forbidden when everything was narrowed to others."""
        for k in where.roots:
            if (rules := self.trees[k].rules).covers(where.names):
                return rules
        raise outside(ref)

    def required_journal(self, ref: Ref) -> UndoJournal:
        if self.journal is None:
            uri = str(ref)
            raise Forbidden(
                f"Nothing that exists is replaced or deleted without a journal to undo it from: {uri}; "
                "give the server a state directory that it can write",
                uri=uri,
            )
        return self.journal

    def _refuse_absent(self, ref: Ref, if_match: str | None, mode: Mode) -> None:
        uri = str(ref)
        if if_match is not None:
            raise Conflict(f"{uri} does not exist, so it has no version to match", uri=uri)
        if mode == "overwrite":
            raise not_found(ref)

    def _refuse_existing(self, ref: Ref, spot: Spot, old: Old, if_match: str | None, mode: Mode) -> None:
        self.refuse_stale(ref, spot, old, if_match)
        if mode == "create":
            raise Conflict(f"{ref} exists already; use the mode overwrite to replace it", uri=str(ref))
        self.refuse_replaced(ref, old)

    def refuse_replaced(self, ref: Ref, old: Old) -> None:
        self.required_journal(ref)
        refuse_unwritable(ref, old.fd, old.stat)
        refuse_linked(ref, old.stat)


def new_number() -> str:
    return os.urandom(8).hex()


def _read(ref: Ref, old: Old) -> bytes:
    size = old.stat.st_size
    if size > _IN_MEMORY:
        raise TooLarge(f"{ref} has {size} bytes, too many to be changed by a text", uri=str(ref), size=size)
    raw = bytes(contents(old.fd, size, wait=True))
    if identity(os.fstat(old.fd)) != identity(old.stat):
        raise changed()
    return raw
