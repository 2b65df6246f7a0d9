"""The record of `kind: memory`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from octavo.config.words import variables
from octavo.core.kinds import Host, Objection, SourceKind
from octavo.sources.memory.options import MemoryOptions

if TYPE_CHECKING:
    from octavo.core.ports.source import Source


async def _open(options: MemoryOptions, host: Host) -> Source:
    from octavo.sources.memory.source import MemoryEntry, MemorySource, TemplateBody

    entries = {
        path: MemoryEntry(
            body=resource.body,
            name=resource.name,
            description=resource.description,
            mime_type=resource.mime_type,
            metadata=resource.metadata,
        )
        for path, resource in options.resources.items()
    }
    templates = {
        path: TemplateBody(
            text=offered.text,
            name=offered.name,
            description=offered.description,
            mime_type=offered.mime_type or "text/plain",
            values=offered.values,
        )
        for path, offered in options.templates.items()
    }
    return MemorySource(options.scheme, entries, templates=templates, secret=host.secret)


def _checks(options: MemoryOptions) -> Iterator[Objection]:
    for path, filled in options.templates.items():
        there = variables(path)
        for variable in filled.values:
            if variable not in there:
                hint = f"it has {', '.join(there)}"
                yield Objection(("templates", path, "values", variable), "is no variable of the template", hint)


def _serves(options: MemoryOptions) -> list[str]:
    return [f"{options.scheme}://{path}" for path in (*options.resources, *options.templates)]


MEMORY: Final = SourceKind(
    name="memory",
    options=MemoryOptions,
    open=_open,
    page="sources/memory.md",
    # What stands in a configuration is not changed by callers, though the source could.
    abilities=frozenset(("watch", "complete", "stamp", "template")),
    chosen=lambda options: bool(options.templates),
    checks=_checks,
    serves=_serves,
)
KINDS: Final = (MEMORY,)
