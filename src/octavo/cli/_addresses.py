"""What somebody meant who typed a name, or a path, where an address is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from octavo.core.errors import NotFound
from octavo.core.ref import Ref

if TYPE_CHECKING:
    from octavo.config.load import Loaded

_NEAR: Final = 3  # addresses that are named
_MARK: Final = "://"


def addressed(found: Loaded, who: str | None, text: str) -> str:
    """An address as it is; a name or a path below the one scheme that is served. Raises UsageError where there are
    several, with the nearest addresses that `who` may list."""
    if _MARK in text:
        return text
    schemes = list(dict.fromkeys(one.scheme for one in found.config.sources.values() if one.expose))
    if len(schemes) == 1:
        absolute = text.startswith("/") and schemes[0] == "file"
        return str(Ref.of(schemes[0], [one for one in text.split("/") if one not in ("", ".")], absolute=absolute))
    if near := _near(_listed(found, who), text):
        raise click.UsageError(f"{text} is no address; did you mean {', '.join(near)}?")
    begin = ", ".join(f"{one}{_MARK}" for one in schemes) or "none, for no source is exposed"
    raise click.UsageError(f"{text} is no address; addresses here begin with {begin}; octavo ls lists them")


@contextmanager
def meant(found: Loaded, who: str | None, uri: str) -> Iterator[None]:
    """Of what is not there, the nearest that is, of what `who` may list."""
    try:
        yield
    except NotFound as error:
        near = _near(_listed(found, who), uri)
        if not near:
            raise
        hint = f"did you mean {', '.join(near)}?"
        raise NotFound(error.message, **{**error.data, "hint": hint}) from None


def _listed(found: Loaded, who: str | None) -> Sequence[Ref]:
    from octavo.app import queries

    return [entry.ref for entry in queries.listed(found, who, None, leaves_traces=False)[0]]


def _near(refs: Sequence[Ref], text: str) -> list[str]:
    """Those that are called so, with or without an ending and the folders above; else those that look like it."""
    wanted = text.partition("?")[0].rpartition(_MARK)[2].strip("/").casefold()
    if not wanted:
        return []
    known = {ref: ref.path.casefold() for ref in refs if ref.scheme != "prompt"}
    stem = wanted.rpartition("/")[2].partition(".")[0] or wanted
    looks = (
        lambda there: there == wanted or there.endswith(f"/{wanted}"),
        lambda there: wanted.endswith(f"/{there}") or wanted.partition(".")[0].endswith(there),
        lambda there: there.rpartition("/")[2].partition(".")[0] == stem,
    )
    for look in looks:
        if found := [str(ref) for ref, there in known.items() if look(there)]:
            return found[:_NEAR]
    names = {there.rpartition("/")[2]: ref for ref, there in known.items()}
    return [str(names[one]) for one in get_close_matches(wanted.rpartition("/")[2], names, n=_NEAR)]
