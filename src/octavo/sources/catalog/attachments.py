"""Files that belong to an entry: an entry may be a folder with a manifest (`SKILL.md`) and more in it.

`skills/brand/brief-writing/references/tone.md` is `skill://brand/brief-writing/references/tone.md`. The definition may
also stand beside the folder (`brief-writing.yml`), or be all that there is; then the manifest is made of it. A link is
no file of an entry. Every such file has the entry as its target, so whoever may not have the entry has none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.core.skill import MAX_BYTES, MAX_FILES, is_skill_name
from octavo.core.values import Content, Entry
from octavo.sources.catalog.declaration import Declaration, Segments
from octavo.sources.catalog.index import Index
from octavo.sources.catalog.manifest import written
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card
from octavo.sources.catalog.snapshot import Snapshot
from octavo.sources.catalog.store import Store, not_found


class Bundles:
    """The files that belong to the entries of one catalog; of a catalog without a manifest there are none."""

    def __init__(self, declaration: Declaration, index: Index, store: Store) -> None:
        self._declaration, self._manifest = declaration, declaration.manifest
        self._index, self._store = index, store

    def owner(self, ref: Ref) -> Ref | None:
        """The entry that a file of this address would belong to."""
        if not self._manifest or ref.absolute or ref.scheme != self._declaration.scheme:
            return None
        names = self._declaration.owner(ref.segments)
        return None if names is None else Ref(ref.scheme, names)

    async def stat(self, ref: Ref) -> Entry:
        """Raises NotFound for what is no file of an entry."""
        card = await self._owner(ref)
        try:
            known = await self._store.stat(self._place(ref, card), ref)
        except NotFound:
            return (await self._made(ref, card)).entry
        return self._entry(known, ref, card)

    async def read(self, ref: Ref, max_bytes: int) -> Content:
        """Raises NotFound for what is no file of an entry."""
        card = await self._owner(ref)
        try:
            content = await self._store.read(self._place(ref, card), ref, max_bytes)
        except NotFound:
            made = await self._made(ref, card)
            if made.size > max_bytes:
                message = f"{ref} has {made.size} bytes, the limit is {max_bytes}"
                raise TooLarge(message, uri=str(ref), size=made.size, limit=max_bytes) from None
            return made
        return Content(entry=self._entry(content.entry, ref, card), body=content.body, etag=content.etag)

    def unfit(self, card: Card, page: Snapshot) -> Iterator[FileProblem]:
        """What keeps clients from taking an entry as a skill; it is served as a resource all the same."""
        if not self._manifest:
            return
        if not is_skill_name(card.ref.name):
            message = "clients cannot take it as a skill: its name needs small letters a-z, digits and single hyphens"
            yield FileProblem(card.file, 1, message, card.ref, serious=False)
        files = [one for one in page.listed(card.ref, None) if isinstance(one, Entry)]
        if len(files) > MAX_FILES or sum(entry.size or 0 for entry in files) > MAX_BYTES:
            message = f"clients cannot take it as a skill: more than {MAX_FILES} files, or {MAX_BYTES >> 20} MiB"
            yield FileProblem(card.file, 1, message, card.ref, serious=False)

    async def _owner(self, ref: Ref) -> Card:
        owner = self.owner(ref)
        if owner is None:
            raise not_found(ref)
        if ref.params:
            raise InvalidParams(f"A file of a {self._declaration.what} has no parameters", uri=str(ref))
        try:
            card = await self._index.card(owner)
        except NotFound:
            raise not_found(ref) from None
        if card.entry.target is not None:  # a link to another entry, which has the files
            raise not_found(ref)
        return card

    def _place(self, ref: Ref, card: Card) -> Segments:
        return (*card.folder_of_files(self._manifest), *ref.segments[len(card.ref.segments) :])

    def _entry(self, known: Entry, ref: Ref, card: Card) -> Entry:
        if known.target is not None:
            raise not_found(ref)
        return card.file_entry(known, ref, self._manifest)

    async def _made(self, ref: Ref, card: Card) -> Content:
        """The manifest of an entry that has none of its own."""
        if ref != card.ref.child(self._manifest) or not is_skill_name(card.ref.name):
            raise not_found(ref)
        matter, _ = await self._index.matter(card.ref)
        body = written(card.ref.name, card.entry.name, matter.data)
        raw = body.encode("utf-8")
        version = hashlib.blake2b(raw, digest_size=12).hexdigest()
        known = Entry(ref=ref, name="", mime_type="text/markdown", version=version, size=len(raw))
        return Content(entry=card.file_entry(known, ref, self._manifest), body=body, etag=version)
