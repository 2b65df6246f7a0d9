"""`octavo search` and `octavo index`: the ranked search over all sources, and the index behind it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octavo.cli._progress import progress
from octavo.cli._screen import out
from octavo.cli._shared import (
    FAILED,
    LOCAL,
    as_option,
    config_option,
    json_option,
    known_agent,
    loaded,
    print_json,
    say,
)
from octavo.cli._visible import nothing_for, sees_nothing

if TYPE_CHECKING:
    from octavo.core.search_results import Finding


@click.command(short_help="Find documents of all sources by words.")
@click.argument("query")
@click.option("--in", "uri", metavar="URI", help="Only what stands below it, such as sop://brand.")
@click.option(
    "--where", "where", multiple=True, metavar="KEY=VALUE", help="Only documents with this in their metadata."
)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many are shown.")
@click.option("--kept", is_flag=True, help="Answer from the index as it was last kept, without a look at what changed.")
@config_option
@as_option
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    query: str,
    uri: str | None,
    where: tuple[str, ...],
    limit: int,
    kept: bool,
    config_file: Path | None,
    as_who: str | None,
    as_json: bool,
) -> None:
    """Find documents of all sources by words, or by a phrase in quotes, best first.

    The first search makes the index, which may take a while; later ones look at what has changed. Where a server
    runs on the same configuration, its index answers at once.
    """
    from octavo.app import queries
    from octavo.core.errors import Forbidden
    from octavo.core.query import TextQuery

    configured = loaded(config_file)
    asked = TextQuery(query, where=tuple(map(_filter, where)))
    who = known_agent(configured, as_who)
    try:
        with progress("index") as shows:
            found = queries.found(configured, who, asked, uri, limit, shows, kept=kept)
    except Forbidden:
        if as_json or not sees_nothing(configured, who or LOCAL):
            raise
        say("note", nothing_for(configured, who or LOCAL))
        ctx.exit(FAILED)
    if as_json:
        print_json({"results": [_told(one) for one in found.items], "corrected": dict(found.corrected)})
        return
    for one in found.items:
        out(f"{one.ref}  {one.title}  ({one.score:g})")
        out(f"    {one.snippet}")
    for word, meant in found.corrected.items():
        say("note", f"{word} is not there: {meant} was searched")
    if found.limited:
        say("warning", "there are more documents than search.documents lets be indexed")
    if not found.items:
        say("note", "nothing was found")


@click.group()
def index() -> None:
    """What the ranked search knows. It follows all changes by itself."""


@index.command()
@config_option
def rebuild(config_file: Path | None) -> None:
    """Make the index anew, from the first document to the last."""
    from octavo.app import queries

    found = loaded(config_file)
    with progress("index") as shows:
        count = queries.rebuilt(found, shows)
    out(f"documents: {count}")


def _filter(text: str) -> tuple[str, tuple[str, ...]]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise click.UsageError("--where is KEY=VALUE, such as --where status=active")
    return key, tuple(value.split(","))


def _told(one: Finding) -> dict[str, Any]:
    return {
        "uri": str(one.ref),
        "title": one.title,
        "score": one.score,
        "snippet": one.snippet,
        "marks": [list(mark) for mark in one.marks],
        "metadata": dict(one.metadata),
    }
