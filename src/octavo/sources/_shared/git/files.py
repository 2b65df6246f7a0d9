"""The files of one branch, or of a folder of it. Runs in threads, each with objects of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias

from octavo.core.errors import InvalidParams, SourceUnavailable, TooLarge
from octavo.core.ref import Ref
from octavo.core.sizes import MIB
from octavo.core.values import Change, ChangeKind, Content, EncoderMemo, Entry, Page
from octavo.sources._shared.fs.faults import not_found
from octavo.sources._shared.fs.mime import mime_type
from octavo.sources._shared.fs.names import Rules
from octavo.sources._shared.git.ages import SECONDS, Ages
from octavo.sources._shared.git.ancestry import ID, Ancestry, committed, end_of_day
from octavo.sources._shared.git.history import HistoryWalk, PastContent
from octavo.sources._shared.git.objects import ID_BYTES, Id, ObjectCache
from octavo.sources._shared.git.refs import Names
from octavo.sources._shared.git.repository import Repository
from octavo.sources._shared.git.trees import MAX_FILES, ChangedFile, Trees
from octavo.sources._shared.parts import DOCUMENT_BYTES, parse_range
from octavo.sources._shared.places import Place, Where, opened, sealed
from octavo.sources._shared.text import HEAD, cut_at_characters, decode

History: TypeAlias = Literal["none", "refs", "all"]

MAX_STATES: Final = 200  # of a file, among which one that had another name is looked for
_AROUND: Final = 8192  # bytes beside a range, more than any secret is long
_LONGEST_PAGE: Final = 10_000
_KEPT_BYTES: Final = 16 * MIB  # of contents
_KEPT_STATES: Final = 20_000
_KNOWN_FILES: Final = 100_000  # that are remembered for the case that their repository is replaced
_SMALLEST: Final = 256  # bytes that a content counts for


class GitFiles:
    """Versions and etags are made of the ids of blobs, with a key: an id is a plain hash of a content, and would be a
    way to guess what was redacted in it."""

    def __init__(
        self,
        repository: Repository,
        rules: Rules,
        scheme: str,
        *,
        secret: bytes,
        encodings: Sequence[str],
        history: History,
        below: Names = (),
        monotonic: Callable[[], float],
    ) -> None:
        self._repository, self._rules, self._scheme = repository, rules, scheme
        self._key = hashlib.blake2b(secret, digest_size=32, person=b"octavo-git").digest()
        self._encodings, self._history = encodings, history
        self._trees = Trees(rules, below)
        self._ancestry, self._ages, self._monotonic = Ancestry(), Ages(self._trees), monotonic
        self._examined = b""
        self._known: tuple[Id, dict[Names, Id]] | None = None  # a commit, and the files of it that are served
        self._contents: ObjectCache[tuple[Id, str], tuple[str | bytes, str]] = ObjectCache(_KEPT_BYTES)
        self._pasts: ObjectCache[tuple[Id, Names, int], Sequence[PastContent]] = ObjectCache(_KEPT_STATES)

    def tip(self) -> Id:
        """Looks where the branch is now."""
        return self._looked_at(self._repository.tip())

    def find_tip(self) -> Id | None:
        """As `tip`; None while there is no such branch."""
        tip = self._repository.find_tip()
        return None if tip is None else self._looked_at(tip)

    def _looked_at(self, tip: Id) -> Id:
        if tip != self._examined:
            self._repository.refuse_links()
            self._examined = tip
        return tip

    def page(self, scope: Ref, cursor: str | None, limit: int, stop: Callable[[], bool]) -> Page[Entry]:
        names, objects = scope.segments, self._repository.objects
        after = () if cursor is None else opened(cursor, Where(names, (0,))).names
        limit = min(limit, _LONGEST_PAGE)
        found: list[tuple[Names, Id]] = []
        for file in islice(self._trees.files(objects, self._tree(), names, after), limit + 1):
            found.append(file)
            if stop():
                break
        times = self.times()
        entries = tuple(self._entry(Ref(self._scheme, file), id, times.get(file)) for file, id in found[:limit])
        return Page(entries, sealed(Place(found[limit - 1][0], 0)) if len(found) > limit else None)

    def stat(self, ref: Ref) -> Entry:
        return self._present(ref, self._find(ref))

    def read(self, ref: Ref, max_bytes: int) -> Content:
        id = self._find(ref)
        entry, part = self._present(ref, id), ref.param("range")
        size = self._repository.objects.size(id)
        if part is not None:
            begin, length = parse_range(ref, part, max_bytes)
            return self._part(ref, entry, id, begin, length)
        _refuse_larger(ref, size, min(max_bytes, DOCUMENT_BYTES))
        kept = self._contents.get((id, entry.mime_type))
        if kept is None:
            raw = self._repository.objects.read(id, "blob")
            found = decode(raw, entry.mime_type, order=self._encodings)
            kept = (raw, "") if found is None else (found.text, "" if found.encoding == "utf-8" else found.encoding)
            self._contents.put((id, entry.mime_type), kept, max(size, _SMALLEST))
        return Content(entry=entry, body=kept[0], etag=self._digest(b"etag", id), encoding=kept[1])

    def held(self, commit: Id, names: Names) -> Id | None:
        """The content of a file in a commit, if there was one."""
        found = self._trees.find(self._repository.objects, self._tree(commit), names)
        return None if found is None or found.folder else found.id

    def past(self, ref: Ref, limit: int, stop: Callable[[], bool]) -> list[Entry]:
        if self._history == "none":
            return []
        states = self._served(self._states(self.tip(), ref.segments, limit, stop))
        addresses = (Ref(self._scheme, state.names, (("commit", state.commit.hex()),)) for state in states)
        return [self._entry(at, state.id, state.time) for at, state in zip(addresses, states, strict=True)]

    def _states(self, tip: Id, names: Names, limit: int, stop: Callable[[], bool]) -> Sequence[PastContent]:
        states = self._pasts.get((tip, names, limit))
        if states is None:
            states = HistoryWalk(self._repository.objects, self._trees, limit, stop).past(tip, names)
            if not stop():
                self._pasts.put((tip, names, limit), states, 1 + len(states))
        return states

    def _served(self, states: Sequence[PastContent]) -> Sequence[PastContent]:
        """Up to where it was called what is not served: nor is what it was before."""
        return [*takewhile(lambda state: self._rules.verdict(state.names) == "served", states)]

    def pinned(self, ref: Ref, name: str, stop: Callable[[], bool]) -> Entry | None:
        """What stood at its address in that state, or else what it was itself, if it had another one. Only states that
        the branch has gone through: what was committed elsewhere alone was never served."""
        if self._history == "none":
            return None
        tip, objects = self.tip(), self._repository.objects
        commit = self._named(tip, name, stop)
        if commit is None:
            return None
        then = objects.commit(commit)
        top = self._trees.top(objects, then)
        found = self._trees.find(objects, top, ref.segments)
        names, id = ref.segments, None if found is None or found.folder else found.id
        if id is None:
            states = self._served(self._states(tip, ref.segments, MAX_STATES, stop))
            known = {(state.names, state.id) for state in states}
            for one in dict.fromkeys(state.names for state in states):
                found = self._trees.find(objects, top, one)
                if found is not None and (one, found.id) in known:
                    names, id = one, found.id
                    break
        if id is None:
            return None
        return self._entry(Ref(self._scheme, names, (("commit", commit.hex()),)), id, then.time)

    def _named(self, tip: Id, name: str, stop: Callable[[], bool]) -> Id | None:
        """The commit that a tag stands for, or, if all of the history is served, that a day or an id means."""
        objects = self._repository.objects
        tagged = self._repository.refs.tag(name)
        if tagged is not None:
            commit = committed(objects, tagged)
            return commit if commit is not None and self._ancestry.holds(objects, tip, commit, stop) else None
        if self._history != "all":
            return None
        end = end_of_day(name)
        if end is not None:
            return self._ancestry.newest(objects, tip, end, stop)
        return self._ancestry.beginning(objects, tip, name, stop) if ID.match(name) else None

    def remember(self, commit: Id) -> None:
        """What is served at a commit, from which `told` can tell a difference where the commit itself is gone: another
        repository may be put in the place of this one. Not of too many files: then only looking anew tells."""
        objects = self._repository.objects
        found = self._trees.files(objects, self._tree(commit), ())
        files = dict(islice(found, _KNOWN_FILES + 1))
        self._known = (commit, files) if len(files) <= _KNOWN_FILES else None
        self.times(commit)

    def told(self, old: Id, new: Id, at: float) -> list[Change]:
        """A file that is gone, and one that has come with the same content, were one that was renamed."""
        objects = self._repository.objects
        try:
            trees = [self._tree(commit) for commit in (old, new)]
            found = [*islice(self._trees.differences(objects, trees[0], trees[1]), MAX_FILES)]
        except SourceUnavailable:
            if self._known is None or self._known[0] != old:
                raise
            before = self._known[1]
            self.remember(new)
            if self._known is None:
                raise
            after = self._known[1]
            pairs = ((names, before.get(names), after.get(names)) for names in sorted({*before, *after}))
            found = [ChangedFile(*one) for one in pairs if one[1] != one[2]]
        else:
            self._go_on(old, new, found)
        gone = {one.was: one for one in found if one.now is None}
        renamed: dict[Names, ChangedFile] = {}
        for one in found:
            if one.was is None and (origin := gone.pop(one.now, None)) is not None:
                renamed[one.names] = origin
        times = self._ages.known(old), self.times(new)
        moved = {origin.names for origin in renamed.values()}
        changes = [self._change(one, renamed.get(one.names), at, *times) for one in found if one.names not in moved]
        # What goes away makes room for what comes.
        return sorted(changes, key=lambda change: change.kind not in ("deleted", "renamed"))

    def _go_on(self, old: Id, new: Id, found: Sequence[ChangedFile]) -> None:
        if self._known is None or self._known[0] != old:
            return
        files = self._known[1]
        for one in found:
            if one.now is None:
                files.pop(one.names, None)
            else:
                files[one.names] = one.now
        self._known = (new, files) if len(files) <= _KNOWN_FILES else None

    def _change(
        self,
        one: ChangedFile,
        origin: ChangedFile | None,
        at: float,
        before: Mapping[Names, float],
        after: Mapping[Names, float],
    ) -> Change:
        ref = Ref(self._scheme, one.names)
        new = None if one.now is None else self._entry(ref, one.now, after.get(one.names))
        if origin is not None and origin.was is not None:
            source = Ref(self._scheme, origin.names)
            old = self._entry(source, origin.was, before.get(origin.names))
            return Change(kind="renamed", ref=ref, source=source, at=at, old=old, new=new)
        was = None if one.was is None else self._entry(ref, one.was, before.get(one.names))
        kind: ChangeKind = "deleted" if new is None else "created" if was is None else "updated"
        return Change(kind=kind, ref=ref, at=at, old=was, new=new)

    def _find(self, ref: Ref) -> Id:
        """The blob at an address, now or at the commit that it names. Raises NotFound."""
        commit = ref.param("commit")
        objects = self._repository.objects
        tree = self._tree(None if commit is None else _commit(ref, commit))
        found = self._trees.find(objects, tree, ref.segments)
        if found is None or found.folder:
            raise not_found(ref)
        return found.id

    def _present(self, ref: Ref, id: Id) -> Entry:
        """Of a file as it is now with the time of its last commit; of one at a commit that was asked for without."""
        return self._entry(ref.bare, id, None if ref.param("commit") else self.times().get(ref.segments))

    def times(self, commit: Id | None = None) -> Mapping[Names, float]:
        """When each file of a commit, or of now, got its content. Also for a caller who goes away meanwhile: what is
        found counts for everybody."""
        if self._history == "none":
            return {}
        end = self._monotonic() + SECONDS
        tip = self.tip() if commit is None else commit
        return self._ages.at(self._repository.objects, tip, lambda: self._monotonic() > end)

    def _tree(self, commit: Id | None = None) -> Id:
        objects = self._repository.objects
        return self._trees.top(objects, objects.commit(self.tip() if commit is None else commit))

    def _part(self, ref: Ref, entry: Entry, id: Id, begin: int, length: int) -> Content:
        _refuse_larger(ref, self._repository.objects.size(id), DOCUMENT_BYTES)
        start = max(0, begin - _AROUND) // 4 * 4
        whole = self._repository.objects.read(id, "blob")
        before, body, after = cut_at_characters(
            whole[start : begin + length + _AROUND],
            begin - start,
            length,
            entry.mime_type,
            self._encodings,
            head=whole[:HEAD],
        )
        return Content(entry=entry, body=body, memo=EncoderMemo(around=(before, after)))

    def _entry(self, ref: Ref, id: Id, modified: float | None = None) -> Entry:
        try:
            size: int | None = self._repository.objects.size(id)
        except SourceUnavailable:  # a partial clone lacks it; whoever reads it is told
            size = None
        name = ref.name
        return Entry(
            ref=ref, name=name, mime_type=mime_type(name), version=self._digest(b"version", id), size=size,
            modified=modified,
        )  # fmt: skip

    def _digest(self, what: bytes, id: Id) -> str:
        return hashlib.blake2b(what + id, key=self._key, digest_size=8).hexdigest()


def _commit(ref: Ref, text: str) -> Id:
    try:
        id = bytes.fromhex(text)
    except ValueError:
        id = b""
    if len(id) != ID_BYTES:
        raise InvalidParams("The parameter commit is the whole id of a commit", uri=str(ref))
    return id


def _refuse_larger(ref: Ref, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(f"{ref} has {size} bytes, the limit is {limit}", uri=str(ref), size=size, limit=limit)
