"""The records of the catalogs: `kind: sop`, `doc`, `skill`, `agent`, `org` and `catalog`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from octavo.core.errors import OctavoError
from octavo.core.kinds import AddressTemplate, Host, Over, SourceKind
from octavo.sources.catalog.options import (
    AgentOptions,
    CatalogOptions,
    DocOptions,
    OrgOptions,
    OverStore,
    SkillOptions,
    SopOptions,
)

if TYPE_CHECKING:
    from octavo.core.ports.source import Source

O = TypeVar("O", bound=OverStore)  # noqa: E741 - the options of one of them

logger = logging.getLogger(__name__)

_PATIENCE: Final = 0.45  # of the time of a request, for which it waits for the first look: it may have to do so twice
PARAMETERS: Final[Mapping[str, str]] = {
    "view": "another form of the same entry, such as body or capabilities",
    "version": "as it was",
    "range": "some of its bytes, such as 0-65535",
    "match": "the entries that are about this, the nearest first",
}


async def _open(options: OverStore, host: Host) -> Source:
    from octavo.sources.catalog.crossrefs import Handbook
    from octavo.sources.catalog.source import CatalogSource

    declaration = await options.found(host)
    handbook = host.together(Handbook)
    source = CatalogSource(
        replace(declaration, further=tuple(host.asked)),
        host.store(),
        handbook=handbook,
        patience=_PATIENCE * host.seconds,
    )
    with suppress(OctavoError):  # a store that is down says so itself
        if why := await source.serves_nothing():
            logger.error("%s: %s", host.name, why)
        elif why := source.serves_little():
            logger.warning("%s: %s", host.name, why)
    return source


def _forms(options: OverStore) -> list[AddressTemplate]:
    declared = options.declared()
    return [
        AddressTemplate(text, below=bool(declared.manifest))
        for shape in declared.shapes
        for text in _spelled(shape.address.text)
    ]


def _spelled(text: str) -> Iterator[str]:
    """`value-stream/{name}` and `value_stream/{name}`: rules hold for both."""
    yield text
    names = text.split("/")
    other = "/".join([*(one if "{" in one else one.replace("-", "_") for one in names[:-1]), names[-1]])
    if other != text:
        yield other


def _over(options: OverStore) -> Over:
    declared = options.declared()
    return Over(
        options.store,
        options.folder,
        options.apart,
        endings=() if declared.manifest else _endings(),  # a bundle has whatever stands beside its manifest
        looked=options.looked,
    )


def _endings() -> Sequence[str]:
    from octavo.sources.catalog.declaration import FORMS

    return tuple(FORMS)


def _record(name: str, options: type[O]) -> SourceKind[O]:
    return SourceKind[Any](
        name=name,
        options=options,
        open=_open,
        page="sources/catalog.md",
        abilities=frozenset(("watch", "levels", "filter", "complete", "suggest", "stamp", "template")),
        parameters=PARAMETERS,
        metadata="document",
        forms=_forms,
        over=_over,
        serves=lambda one: [f"{one.store}/{one.folder}".rstrip("/")],
    )


KINDS: Final = (
    _record("sop", SopOptions),
    _record("doc", DocOptions),
    _record("skill", SkillOptions),
    _record("agent", AgentOptions),
    _record("org", OrgOptions),
    _record("catalog", CatalogOptions),
)
