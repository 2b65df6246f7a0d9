"""A kind of source that nobody in the house knows: texts by path, in one JSON file. `kind: shelf`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from octavo import (
    Cache,
    Content,
    Entry,
    FilePath,
    Flag,
    Host,
    InvalidParams,
    Needs,
    NotFound,
    Objection,
    Page,
    Ref,
    Scheme,
    Secret,
    SourceFolder,
    SourceKind,
    SourceOptions,
    SourceUnavailable,
    TooLarge,
    refuse_unknown,
    tool,
)  # fmt: skip

PARAMETERS: Mapping[str, str] = {"loud": "yes: in capital letters"}


class ShelfOptions(SourceOptions):
    """Texts of one JSON file."""

    kind: Literal["shelf"] = Field(description="Texts of one JSON file.")
    scheme: Scheme = Field(default="shelf", description="What the addresses begin with.")
    file: FilePath = Field(description="The JSON file: texts by path.")
    token: Secret | None = Field(default=None, description="What opens it, as ${NAME} or file:PATH.")
    live: Flag = Field(default=False, description="Look at the file before a kept answer is given again.")
    write: Flag = Field(default=False, description="Whether texts may be changed. There is no way yet.")
    cache: Cache = Field(default_factory=Cache, description="How long copies are kept.")


class ShelfSource:
    """Raises NotFound, TooLarge, InvalidParams and SourceUnavailable."""

    def __init__(self, scheme: str, file: Path, secret: bytes) -> None:
        self.scheme = scheme
        self._file, self._secret = file, hashlib.sha256(secret).digest()

    def __repr__(self) -> str:
        return f"ShelfSource({self.scheme}://)"

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        refuse_unknown(scope, ())
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        after = None if cursor is None else Ref.parse(cursor)
        texts = self._texts()
        rest = sorted(ref for ref in texts if ref.within(scope) and (after is None or ref > after))
        page = tuple(self._entry(ref, texts[ref]) for ref in rest[:limit])
        return Page(page, str(page[-1].ref) if len(rest) > limit else None)

    async def stat(self, ref: Ref) -> Entry:
        refuse_unknown(ref, PARAMETERS)
        return self._entry(ref.bare, self._text(ref))

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        entry = await self.stat(ref)
        text = self._text(ref)
        if (entry.size or 0) > max_bytes:
            raise TooLarge(f"{ref} has {entry.size} bytes", uri=str(ref), size=entry.size, limit=max_bytes)
        return Content(entry=entry, body=text.upper() if ref.param("loud") == "yes" else text, etag=entry.version)

    def stamp(self, ref: Ref, op: str, moment: int = 0) -> object | None:
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _text(self, ref: Ref) -> str:
        text = self._texts().get(ref.bare)
        if text is None:
            raise NotFound(f"Resource not found: {ref}", uri=str(ref))
        return text

    def _texts(self) -> Mapping[Ref, str]:
        try:
            given: dict[str, str] = json.loads(self._file.read_text(encoding="utf-8"))
            return {Ref.of(self.scheme, path.split("/")): text for path, text in given.items()}
        except (OSError, ValueError, AttributeError):
            raise SourceUnavailable(f"Source unavailable: {self.scheme}", source=self.scheme) from None

    def _entry(self, ref: Ref, text: str) -> Entry:
        raw = text.encode("utf-8")
        version = hashlib.blake2b(raw, key=self._secret, digest_size=8).hexdigest()
        return Entry(ref=ref, name=ref.name, mime_type="text/markdown", version=version, size=len(raw))


@tool(read_only=True)
def shelf_rules() -> str:
    """Says how the shelf is kept."""
    return "Put back what you took."


async def _open(options: ShelfOptions, host: Host) -> ShelfSource:
    if "fails" in options.file.name:
        raise ConnectionError("the shelf has fallen down")
    return ShelfSource(options.scheme, options.file, host.secret)


def _checks(options: ShelfOptions) -> Iterator[Objection]:
    if options.file.suffix != ".json":
        yield Objection(("file",), "is no JSON file", "name one that ends in .json")


SHELF = SourceKind(
    name="shelf",
    options=ShelfOptions,
    open=_open,
    abilities=frozenset(("stamp",)),
    able=lambda options: frozenset(("stamp",)) if options.live else frozenset(),
    parameters=PARAMETERS,
    needs=lambda options: Needs([SourceFolder(options.file.parent, ("file",), files=False)], hosts=["shelf.example"]),
    checks=_checks,
    serves=lambda options: [str(options.file)],
    tools=(shelf_rules,),
)
