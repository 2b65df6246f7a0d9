"""Moves and copies: by renaming where that is possible, else the copy is complete before the original goes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from octavo.core.errors import Conflict, InvalidParams
from octavo.core.ref import Ref
from octavo.core.values import Entry
from octavo.sources._shared.fs.faults import fault_of_change, forbidden, not_found
from octavo.sources._shared.places import Place, Where
from octavo.sources.file.writing.attributes import Attributes
from octavo.sources.file.writing.backup import Old, keep_file
from octavo.sources.file.writing.cross_device import carry, copy_directory, fill_from
from octavo.sources.file.writing.engine import WriteEngine, new_number
from octavo.sources.file.writing.locks import locked
from octavo.sources.file.writing.records import UNKNOWN, Backup, ChangeRecord, Version
from octavo.sources.file.writing.removal import is_still
from octavo.sources.file.writing.staging import Draft, Print, changed, print_at, rename_new, stray_of
from octavo.sources.file.writing.targets import Spot, Use, mark_of_file, spot_of
from octavo.sources.file.writing.trees import TreeScan


class Transfer:
    """One move or copy from `ref` to `to`. What stands there is replaced only with `overwrite`, and only a
    file by a file. Without a root in its address, `to` is in the root that has it, else where `ref` is."""

    def __init__(
        self, engine: WriteEngine, ref: Ref, where: Where, to: Ref, to_where: Where, *, overwrite: bool, by: str
    ) -> None:
        self._engine = engine
        self._ref, self._where = ref, where
        self._to, self._to_where = to, to_where
        self._overwrite = overwrite
        self._by = by

    def move(self, if_match: str | None) -> Entry:
        with ExitStack() as stack:
            source, target = self._spots(stack)
            if self._engine.is_directory(self._ref, source):
                self._engine.refuse_version(self._ref, if_match)
                return self._move_directory(source, target)
            old, over = self._files(stack, source, target)
            self._engine.refuse_stale(self._ref, source, old, if_match)
            new = Version(old.print, mark_of_file(old.fd))
            try:
                self._rename_file(source, target, new, over)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                if over is not None:
                    raise Conflict(
                        f"{self._to} is on another file system and exists; delete it first", uri=str(self._to)
                    ) from None
                self._carry(source, target, new)
            return self._entry(target)

    def copy(self) -> Entry:
        with ExitStack() as stack:
            source, target = self._spots(stack, use="read")
            if self._engine.is_directory(self._ref, source):
                self._copy_directory(source, target)
                return self._entry(target)
            old, over = self._files(stack, source, target)
            number = new_number()
            draft = stack.enter_context(Draft(target.here, stray_of(number)))
            fill_from(draft, old)
            self._engine.publish(
                self._to,
                target,
                draft,
                over,
                number,
                op="copy",
                by=self._by,
                attributes=Attributes.of(old.fd).of_new_content,
            )
            return self._engine.entry(self._to_where, target, os.fstat(draft.fd))

    def _spots(self, stack: ExitStack, *, use: Use = "change") -> tuple[Spot, Spot]:
        engine = self._engine
        source = stack.enter_context(engine.found_spot(self._ref, self._where, use=use))
        engine.refuse_hidden(self._to, self._to_where)
        with self._about_target():
            target = spot_of(engine.trees, self._to_where)
        place = target.place if target is not None else Place(self._to_where.names, self._root(source))
        if target is not None:
            stack.enter_context(target)
        if place.root == source.place.root and place.names[: len(source.place.names)] == source.place.names:
            raise InvalidParams(
                f"{self._to} is {self._ref} itself or below it; choose another place", uri=str(self._to)
            )
        if target is None:
            with self._about_target():
                target = stack.enter_context(engine.made_spot(self._to_where, place.root))
        stack.enter_context(locked(source.here, target.here))
        source.confirm()
        target.confirm()
        return source, target

    @contextmanager
    def _about_target(self) -> Iterator[None]:
        """What is in the way here is in the way of `to`."""
        try:
            yield
        except OSError as error:
            raise fault_of_change(error, self._to) from None

    def _root(self, source: Spot) -> int:
        roots = self._to_where.roots
        return source.place.root if source.place.root in roots else roots[0]

    def _files(self, stack: ExitStack, source: Spot, target: Spot) -> tuple[Old, Old | None]:
        old = stack.enter_context(self._engine.existing(self._ref, source))
        if target.tree.rules.verdict(target.place.names) != "served":
            raise forbidden(self._to)
        with self._about_target():
            over = stack.enter_context(self._engine.existing(self._to, target))
        if old is None:
            raise not_found(self._ref)
        if over is not None:
            if not self._overwrite:
                raise self._exists()
            self._engine.refuse_replaced(self._to, over)
        self._engine.check_name(self._ref, old, source.place.names[-1], target.place.names[-1])
        return old, over

    def _rename_file(self, source: Spot, target: Spot, new: Version, over: Old | None) -> None:
        with self._acting(new_number(), source, target, new, new.print, over):
            if over is None:
                try:
                    rename_new(source.here, source.name, target.here, target.name)
                except FileExistsError:
                    raise self._exists() from None
            else:
                if print_at(target.here, target.name) != over.print or print_at(source.here, source.name) != new.print:
                    raise changed()
                os.rename(source.name, target.name, src_dir_fd=source.here, dst_dir_fd=target.here)
            if print_at(target.here, target.name) != new.print:  # somebody put another file there in time
                if over is None:
                    rename_new(target.here, target.name, source.here, source.name)
                raise changed()
            _sync(source, target)

    def _move_directory(self, source: Spot, target: Spot) -> Entry:
        scan = self._scan(source, target)
        what = scan.contents()
        new = Version(what.prints[0], what.mark)
        try:
            with self._acting(new_number(), source, target, new, new.print, None):
                rename_new(source.here, source.name, target.here, target.name)
                found = target.look()
                if found is None or not is_still(found, new.print):
                    rename_new(target.here, target.name, source.here, source.name)
                    raise changed()
                _sync(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._carry(source, target, new)
        return self._entry(target)

    def _carry(self, source: Spot, target: Spot, old: Version) -> None:
        number = new_number()
        with self._acting(number, source, target, Version(UNKNOWN, old.mark), old.print, None):
            carry(source, target, number, self._ref)

    def _copy_directory(self, source: Spot, target: Spot) -> None:
        scan = self._scan(source, target)
        what = scan.contents()
        number = new_number()
        record = ChangeRecord(
            id=number, at=0, by=self._by, op="copy", place=self._engine.spelled(target),
            new=Version(UNKNOWN, what.mark), made=target.made,
        )  # fmt: skip
        with self._engine.acting(record, [target]):
            copy_directory(scan, what, target, number, self._ref)

    def _scan(self, source: Spot, target: Spot) -> TreeScan:
        if target.look() is not None:
            raise Conflict(f"{self._to} exists already, and a directory replaces nothing", uri=str(self._to))
        return TreeScan(source.tree, source.disk, source.place.names, self._ref, to=target)

    def _acting(
        self, number: str, source: Spot, target: Spot, new: Version, moved: Print, over: Old | None
    ) -> AbstractContextManager[ChangeRecord | None]:
        engine = self._engine
        source.confirm()
        target.confirm()
        record = ChangeRecord(
            id=number, at=0, by=self._by, op="move", place=engine.spelled(target), new=new,
            source=engine.spelled(source), moved=moved, made=target.made,
        )  # fmt: skip
        keep: Callable[[], Backup] | None = None
        if over is not None:
            journal, replaced = engine.required_journal(self._to), over
            keep = lambda: keep_file(journal, number, replaced, self._to)  # noqa: E731
        return engine.acting(record, [target, source], keep)

    def _entry(self, target: Spot) -> Entry:
        found = target.look()
        if found is None:
            raise changed()
        return self._engine.entry(self._to_where, target, found)

    def _exists(self) -> Conflict:
        return Conflict(f"{self._to} exists already; say overwrite to replace it", uri=str(self._to))


def _sync(source: Spot, target: Spot) -> None:
    for fd in {source.here, target.here}:
        os.fsync(fd)
