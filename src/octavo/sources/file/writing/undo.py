"""Back to what was, from the journal. A step is left out where things are already as they were, so that an
undo that was interrupted can be asked for again."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack

from octavo.core.errors import Conflict, Forbidden
from octavo.core.ref import Ref
from octavo.core.values import Past, Undone
from octavo.sources._shared.places import Where
from octavo.sources.file.writing.backup import Damaged, hidden_scan, mark_at, put_back
from octavo.sources.file.writing.cross_device import carry
from octavo.sources.file.writing.engine import WriteEngine
from octavo.sources.file.writing.journal import RecordedOperation, UndoJournal
from octavo.sources.file.writing.locks import locked
from octavo.sources.file.writing.records import ChangeRecord, Spelled, Status, Version
from octavo.sources.file.writing.recovery import recover, settle
from octavo.sources.file.writing.removal import take_away
from octavo.sources.file.writing.staging import rename_new, stray_of
from octavo.sources.file.writing.targets import Spot, refuse_unwritable
from octavo.sources.file.writing.trees import TreeScan

log = logging.getLogger(__name__)


class Undo:
    def __init__(self, engine: WriteEngine, journal: UndoJournal) -> None:
        self._engine = engine
        self._journal = journal

    def history(self, by: str, limit: int, *, standing: bool = False, scope: Ref | None = None) -> list[Past]:
        """The newest first; `standing`: only what is not undone."""
        mine = self._mine(by, ("done",) if standing else ("done", "undone"), scope)
        return [
            Past(
                op=record.op,
                ref=self._engine.place_of(record.place),
                source=None if record.source is None else self._engine.place_of(record.source),
                at=record.at,
                undone=status == "undone",
                id=record.id,
            )
            for record, status in mine[::-1][: max(0, limit)]
        ]

    def _mine(self, by: str, told: Sequence[Status], scope: Ref | None) -> list[RecordedOperation]:
        """At, below or above the scope: what happened to a folder happened to what is in it."""
        recover(self._journal, self._engine.spot_at)
        mine = [op for op in self._journal.operations() if op.record.by == by and op.status in told]
        if scope is None:
            return mine
        root = scope.param("root")
        return [
            op
            for op in mine
            for ref in [self._engine.place_of(at) for at in (op.record.place, op.record.source) if at is not None]
            if (ref.within(scope) or scope.within(ref)) and root in (None, ref.param("root"))
        ]

    def newest(self, by: str, count: int, only: Sequence[str] | None = None, scope: Ref | None = None) -> list[Undone]:
        """Takes back up to `count` operations. Where one cannot be, the ones before it stay undone and the rest
        is left alone; a Conflict, or Forbidden, if that is the first; a Conflict if they are not those of `only`."""
        mine = [op.record for op in self._mine(by, ("done",), scope)]
        chosen = mine[::-1][: max(0, count)]
        if only is not None and [record.id for record in chosen] != list(only):
            raise Conflict("You have changed something else meanwhile; ask again to undo that")
        undone: list[Undone] = []
        for record in chosen:
            try:
                undone.append(self._undo(record))
            except (Conflict, Forbidden):
                if not undone:
                    raise
                break
        return undone

    def _undo(self, record: ChangeRecord) -> Undone:
        ref = self._ref(record.place)
        with ExitStack() as stack:
            spots = [stack.enter_context(self._spot(at)) for at in (record.place, record.source) if at is not None]
            stack.enter_context(locked(*(spot.here for spot in spots)))
            for spot in spots:
                spot.confirm()
            self._journal.note(record, "undoing")
            try:
                effect = self._back(record, ref, *spots)
            except BaseException:
                settle(self._journal, record, spots, undoing=True)
                raise
            self._journal.note(record, "undone")
            return Undone(op=record.op, ref=ref, effect=effect)

    def _back(self, record: ChangeRecord, ref: Ref, spot: Spot, source: Spot | None = None) -> str:
        if record.op == "make_directory":
            self._remove_directory(ref, spot)
            spot.remove_made(record.made)
            return "removed"
        now = mark_at(spot, ref)
        after = None if record.new is None else record.new.mark
        if source is not None:
            now = self._move_back(record, ref, spot, source, now)
            after = None
        before = None if record.old is None else record.old.version.mark
        if record.old is not None and record.old.is_directory and _mark(now) != before:
            now = self._without_empty_directories(ref, spot, now)
        if _mark(now) != before:
            if _mark(now) != after:
                raise _changed(ref)
            self._replace(record, ref, spot, now)
        if before is None:
            spot.remove_made(record.made)
        return "moved back" if source is not None else "removed" if before is None else "restored"

    def _replace(self, record: ChangeRecord, ref: Ref, spot: Spot, now: Version | None) -> None:
        if now is None or not self._engine.is_directory(ref, spot):
            with self._engine.existing(ref, spot) as file:
                if file is not None:
                    refuse_unwritable(ref, file.fd, file.stat)
            if record.old is not None:
                try:
                    put_back(self._journal, record, record.old, spot, None if now is None else now.print)
                except Damaged:
                    log.error("What was kept for undo is damaged: %s", ref)
                    raise Conflict(
                        f"What was kept of {ref} is damaged, so it is not brought back; nothing was changed",
                        uri=str(ref),
                    ) from None
            elif now is not None:
                take_away(spot, stray_of(record.id), now.print)
        else:
            mark = now.mark
            take_away(
                spot, stray_of(record.id), now.print,
                lambda: hidden_scan(spot, record.id, ref).contents().mark == mark,
            )  # fmt: skip

    def _without_empty_directories(self, ref: Ref, spot: Spot, now: Version | None) -> Version | None:
        """A directory without a file is no reason to leave the deleted one in the journal."""
        if now is None or not self._engine.is_directory(ref, spot):
            return now
        leaves = TreeScan(spot.tree, spot.disk, spot.place.names, ref).contents().leaves
        if not all(leaf.attributes.is_directory for leaf in leaves):
            return now
        for leaf in sorted(leaves, key=lambda leaf: -len(leaf.path)):
            with Spot(spot.tree, spot.place.root, (*spot.disk, *leaf.path)) as empty:
                os.rmdir(empty.name, dir_fd=empty.here)
        return None

    def _move_back(
        self, record: ChangeRecord, ref: Ref, spot: Spot, source: Spot, now: Version | None
    ) -> Version | None:
        """What stands at the place of a move after it was moved back, now or before."""
        moved = None if record.new is None else record.new.mark
        there = mark_at(source, ref)
        if there is not None:
            if there.mark != moved:
                raise _changed(self._ref(record.source or record.place))
            return now
        if _mark(now) != moved:
            raise _changed(ref)
        try:
            rename_new(spot.here, spot.name, source.here, source.name)
            os.fsync(spot.here)
            os.fsync(source.here)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            carry(spot, source, record.id, ref)
        return None

    def _remove_directory(self, ref: Ref, spot: Spot) -> None:
        try:
            os.rmdir(spot.name, dir_fd=spot.here)
            os.fsync(spot.here)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise Conflict(f"The directory {ref} is no longer empty, so it stays", uri=str(ref)) from None

    def _spot(self, spelled: Spelled) -> Spot:
        """Also where its directories have gone since."""
        ref = self._ref(spelled)
        spot = self._engine.spot_at(spelled, make=True)
        if spot is None:
            raise _changed(ref)
        with ExitStack() as stack:
            stack.push(spot)
            self._engine.refuse_hidden(ref, Where(spot.place.names, (spot.place.root,)))
            stack.pop_all()
        return spot

    def _ref(self, spelled: Spelled) -> Ref:
        """For answers and refusals alone: where it is, the record says."""
        return self._engine.told(spelled)


def _mark(version: Version | None) -> str | None:
    return None if version is None else version.mark


def _changed(ref: Ref) -> Conflict:
    return Conflict(f"{ref} has changed since, so this cannot be undone; nothing was changed", uri=str(ref))
