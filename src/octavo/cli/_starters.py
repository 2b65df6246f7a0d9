"""Code to begin with: a tool, and a source with its test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

TOOL = '''"""{title}"""

from octavo import ToolContext, tool


@tool(read_only=True)
async def {name}(ctx: ToolContext, uri: str, limit: int = 10) -> list[str]:
    """{title}. Say here what it does and when to use it: a model reads this.

    Args:
        uri: Address of a text, such as file://docs/a.md.
        limit: How many words to give at most.
    """
    content = await ctx.read(uri)  # with the rights of whoever calls
    return str(content.body).split()[:limit]
'''

SOURCE = '''"""{title}: resources under {name}://."""

import hashlib
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from octavo import (
    Content,
    Entry,
    Host,
    InvalidParams,
    NotFound,
    Page,
    Plugin,
    Ref,
    Scheme,
    SourceKind,
    SourceOptions,
    TooLarge,
    refuse_unknown,
)


class {type}Options(SourceOptions):
    """{title}."""

    kind: Literal["{name}"] = Field(description="{title}.")
    scheme: Scheme = Field(default="{name}", description="What the addresses begin with.")
    greeting: str = Field(default="Hello", description="An option to begin with: replace it by your own.")


class {type}Source:
    """Texts by path. Replace the dictionary by the system that you want to serve.

    Raises NotFound, TooLarge and InvalidParams; whatever the system behind fails with must become an OctavoError
    too.
    """

    def __init__(self, scheme: str, texts: Mapping[str, str]) -> None:
        self.scheme = scheme
        self._texts = {{Ref.of(scheme, path.split("/")): text for path, text in texts.items()}}

    async def list(self, scope: Ref, *, cursor: str | None, limit: int) -> Page[Entry]:
        if limit < 1:
            raise InvalidParams("A page holds at least one entry")
        after = None if cursor is None else Ref.parse(cursor)  # the address that was given last
        rest = sorted(ref for ref in self._texts if ref.within(scope) and (after is None or ref > after))
        page = tuple(self._entry(ref) for ref in rest[:limit])
        return Page(page, str(page[-1].ref) if len(rest) > limit else None)

    async def stat(self, ref: Ref) -> Entry:
        refuse_unknown(ref, ())
        if ref not in self._texts:
            raise NotFound(f"Resource not found: {{ref}}", uri=str(ref))
        return self._entry(ref)

    async def read(self, ref: Ref, *, max_bytes: int) -> Content:
        entry = await self.stat(ref)
        if (entry.size or 0) > max_bytes:
            raise TooLarge(f"{{ref}} has {{entry.size}} bytes", uri=str(ref), size=entry.size, limit=max_bytes)
        return Content(entry=entry, body=self._texts[ref], etag=entry.version)

    def _entry(self, ref: Ref) -> Entry:
        raw = self._texts[ref].encode("utf-8")
        version = hashlib.blake2b(raw, digest_size=8).hexdigest()
        return Entry(ref=ref, name=ref.name, mime_type="text/markdown", version=version, size=len(raw))


async def _open(options: {type}Options, host: Host) -> {type}Source:
    """Nothing is asked of the system behind before the first call, or before `__aenter__` if the source has one."""
    return {type}Source(options.scheme, {{"hello.md": f"# {{options.greeting}}\\n"}})


KIND = SourceKind(name="{name}", options={type}Options, open=_open)


def register(octavo: Plugin) -> None:
    octavo.kind(KIND)
'''

SOURCE_TEST = '''"""The contract of every source, for {name}://. Run it with: pytest test_{module}.py"""

import pytest
from {module} import {type}Source

from octavo.testing import SourceSuite


class Test{type}(SourceSuite):
    @pytest.fixture
    def source(self) -> {type}Source:
        return {type}Source("{name}", SourceSuite.TREE)
'''


def write_tool(name: str, title: str | None, folder: Path) -> list[Path]:
    """Raises UsageError for a name that no function can have and for a file that is there."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise click.UsageError(f"{name} is no name for a tool; write it like a function: count_words")
    return _written({folder / f"{name}.py": TOOL.format(name=name, title=title or _words(name))})


def write_source(name: str, title: str | None, folder: Path) -> list[Path]:
    """The module and its test. Raises UsageError for a name that is no scheme and for a file that is there."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or keyword.iskeyword(module := name.replace("-", "_")):
        raise click.UsageError(f"{name} is no name for a source; write it like a scheme: tickets")
    kind = "".join(part.capitalize() for part in name.split("-"))
    facts = {"name": name, "module": f"{module}_source", "type": kind, "title": title or _words(name)}
    return _written(
        {
            folder / f"{module}_source.py": SOURCE.format(**facts),
            folder / f"test_{module}_source.py": SOURCE_TEST.format(**facts),
        }
    )


def _words(name: str) -> str:
    return re.sub(r"[_-]+", " ", name).capitalize()


def _written(texts: dict[Path, str]) -> list[Path]:
    for path in texts:
        if path.exists():
            raise click.UsageError(f"{path} is there already; nothing was written")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return [*texts]
