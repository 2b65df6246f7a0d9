"""Files that belong to an entry: an entry may be a folder with a manifest (`SKILL.md`) and more in it.

`skills/brand/brief-writing/references/tone.md` is `skill://brand/brief-writing/references/tone.md`. The definition may
also stand beside the folder (`brief-writing.yml`), or be all that there is; then the manifest is made of it. A link is
no file of an entry. Every such file has the entry as its target, so whoever may not have the entry has none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.core.skill import MAX_BYTES, MAX_FILES, is_skill_name
from octavo.core.values import Content, Entry
from octavo.sources.catalog.declaration import Declaration, Segments
from octavo.sources.catalog.index import CatalogIndex
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.record import Card
from octavo.sources.catalog.snapshot import CatalogSnapshot
from octavo.sources.catalog.store import CatalogStore, not_found

MAX_DESCRIPTION: Final = 1024  # characters that clients accept
# Of the definition, what a client may show beside the name; the rest are instructions.
_METADATA: Final = ("id", "version", "status", "function")
_ABOUT: Final = frozenset((*_METADATA, "schema_version", "name", "title", "description", "summary", "agents", "tags"))


def written(name: str, title: str, definition: Mapping[str, Any]) -> str:
    """`name` is that of the skill's folder, `title` the one for people."""
    said = (definition.get(key) for key in ("description", "summary"))
    described = next((text for one in said if isinstance(one, str) and (text := _plain(one))), "") or _plain(title)
    lines = ["---", f"name: {_quoted(name)}", f"description: {_quoted(described[:MAX_DESCRIPTION].strip())}"]
    known = {
        key: _plain(str(value)) for key in _METADATA if isinstance(value := definition.get(key), str | int | float)
    }
    if known:
        lines += ["metadata:", *(f"  {key}: {_quoted(value)}" for key, value in known.items())]
    lines += ["---", "", f"# {_plain(title)}", "", described]
    for key in sorted(definition, key=lambda key: key != "triggers"):  # when, then how, in the order of its author
        value = definition[key]
        if key not in _ABOUT and value not in (None, "", [], {}):
            heading = "When to use it" if key == "triggers" else _plain(key).replace("_", " ").capitalize()
            lines += ["", f"## {heading}", "", *_shown(value, numbered=key == "steps")]
    return "\n".join(lines) + "\n"


def _shown(value: Any, indent: str = "", *, numbered: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _item(f"{indent}- **{_plain(str(key))}**", ": ", item, f"{indent}  ")
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _item(f"{indent}{number}." if numbered else f"{indent}-", " ", item, f"{indent}   ")
    else:
        yield value.strip() if isinstance(value, str) else _told(value)  # in the lines of its author


def _item(mark: str, between: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        yield mark
        yield from _shown(value, indent)
    else:
        yield f"{mark}{between}{_told(value)}"


def _told(value: Any) -> str:
    return _plain(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """On one line, and without what YAML could not hold."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class Bundles:
    """The files that belong to the entries of one catalog; of a catalog without a manifest there are none."""

    def __init__(self, declaration: Declaration, index: CatalogIndex, store: CatalogStore) -> None:
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

    def unfit(self, card: Card, page: CatalogSnapshot) -> Iterator[FileProblem]:
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
