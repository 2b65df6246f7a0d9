"""From the options of the configuration to sources, and the operator's words about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from octavo.app.catalogs import Catalogs, catalogs
from octavo.app.essentials import foundation_of
from octavo.app.narrowing import Narrowing
from octavo.app.open_sources import OpenSources
from octavo.config.load import Loaded
from octavo.config.model import Config, FileOptions, GitOptions, MemoryOptions, ResourceWords
from octavo.config.words import RESERVED_SCHEMES
from octavo.core.errors import InvalidParams
from octavo.core.model import Entry, Template
from octavo.core.ports import Source
from octavo.core.ref import Ref, is_scheme
from octavo.pipeline.guard import Faults, guarded
from octavo.sources._shared.fs.credentials import CREDENTIALS
from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.source import FileSource
from octavo.sources.memory import MemoryEntry, MemorySource, TemplateBody
from octavo.stores.state import StateDirectory
from octavo.tools.plugins import Plugin

if TYPE_CHECKING:
    from octavo.sources.git import GitSource

_FORM_TIME = 0.8  # of the time of a request, for making text of a document: the rest is for reading it


async def configured(
    loaded: Loaded, state: StateDirectory, narrowing: Narrowing, opened: OpenSources, stack: AsyncExitStack
) -> tuple[dict[str, tuple[Source, bool]], Catalogs | None]:
    """The configured sources by scheme, each with whether it has addresses of its own; and the catalogs among them.

    They are open until `stack` is closed, at the least.
    """
    made: dict[str, Source] = {}
    for name, options in loaded.config.sources.items():
        if isinstance(options, FileOptions):
            folders = [root.path for root in options.roots]
            made[name] = await opened.take(name, _file(name, options, loaded, state, narrowing), folders, stack)
        elif isinstance(options, GitOptions):
            made[name] = await opened.take(name, _git(name, options, state, narrowing), [options.path], stack)
        elif isinstance(options, MemoryOptions):
            made[name] = await opened.take(name, _memory(options, state), (), stack)
    over_stores = await catalogs(loaded.config, made, opened.catalogs)
    if over_stores is not None:
        made |= over_stores.by_name
    sources: dict[str, tuple[Source, bool]] = {}
    for name, options in loaded.config.sources.items():
        sources[options.scheme if options.expose else f"{options.scheme}+{name}"] = (made[name], options.expose)
    return sources, over_stores


def _file(
    name: str, options: FileOptions, loaded: Loaded, state: StateDirectory, narrowing: Narrowing
) -> partial[Source]:
    described = [words for words in loaded.config.resources if words.is_template]
    mine = [words for words in described if words.uri.partition("://")[0].lower() == options.scheme]
    foundation = foundation_of(loaded)
    never = [essential for essential in foundation.essentials if not essential.served]
    make: Callable[..., Source] = FileSource
    if options.write:
        from octavo.sources.file.writable import WritableFileSource  # here: a read-only server starts sooner

        journal = state.path / "journal" / name if state.path else None
        make = partial(WritableFileSource, journal=journal, foundation=foundation)
    return partial(
        make,
        [
            FileRoot(root.path, root.shown, narrowing.within(root.path), named=root.public is None)
            for root in options.roots
        ],
        secret=state.key("etag"),
        extensions=options.extensions,
        only=narrowing.extensions,
        hidden=(*CREDENTIALS, *options.hide),
        symlinks=options.symlinks,
        hard_links=options.hard_links,
        exclude_dirs=[one.path for one in never if one.folder],
        exclude_files=[one.path for one in never if not one.folder],
        list_under=options.listing.under,
        list_recursive=options.listing.recursive,
        uris=options.uris if options.expose and not narrowing.relative else "relative",
        templates=[
            *(
                Template(
                    uri_template=offered.uri,
                    name=offered.name,
                    description=offered.description,
                    mime_type=offered.mime_type,
                    parameters=_parameters(offered.parameters),
                )
                for offered in options.templates
            ),
            *(_template(words) for words in mine),
        ],
        scheme=options.scheme,
        encodings=options.encodings,
        form_seconds=_FORM_TIME * loaded.config.limits.time,
        titles=options.expose,  # whoever reads a store finds them himself
    )


def _git(name: str, options: GitOptions, state: StateDirectory, narrowing: Narrowing) -> partial[GitSource]:
    from octavo.sources.git import GitSource  # here: most servers have none, and start sooner

    return partial(
        GitSource,
        options.path,
        branch=options.branch,
        secret=state.key("etag"),
        extensions=options.extensions,
        only=narrowing.extensions,
        hidden=(*CREDENTIALS, *options.hide),
        encodings=options.encodings,
        history=options.history,
        owner=options.owner,
        name=name,
    )


def _memory(options: MemoryOptions, state: StateDirectory) -> partial[MemorySource]:
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
    return partial(MemorySource, options.scheme, entries, templates=templates, secret=state.key("etag"))


def with_plugins(
    configured: dict[str, tuple[Source, bool]], plugins: Sequence[Plugin], faults: Faults, time: float
) -> dict[str, tuple[Source, bool]]:
    """Those of plugins behind a door: what they do wrong is noted in `faults`."""
    sources = dict(configured)
    for plugin in plugins:
        for source in plugin.sources:
            scheme: object = getattr(source, "scheme", None)
            if not all(callable(getattr(source, name, None)) for name in ("list", "stat", "read")):
                raise InvalidParams(f"The plugin {plugin.name} gives a source without list, stat and read")
            if not isinstance(scheme, str) or not is_scheme(scheme) or scheme != scheme.lower():
                raise InvalidParams(f"The plugin {plugin.name} gives a source whose scheme is none: {scheme!r:.80}")
            if scheme in (*sources, *RESERVED_SCHEMES):
                raise InvalidParams(f"The plugin {plugin.name} may not serve {scheme}://: it is taken")
            sources[scheme] = (guarded(source, faults, time), True)
    return sources


def ttl_of(config: Config, scheme: str) -> float:
    served = (one for one in config.sources.values() if one.expose and not isinstance(one, GitOptions))
    return next((one.cache.ttl for one in served if one.scheme == scheme), 0.0)


def templates_of(config: Config) -> list[Template]:
    """The operator's templates, but for those of file sources, which complete their variables themselves."""
    by_files = {source.scheme for source in config.sources.values() if isinstance(source, FileOptions)}
    return [
        _template(words)
        for words in config.resources
        if words.is_template and words.uri.partition("://")[0].lower() not in by_files
    ]


def _template(words: ResourceWords) -> Template:
    return Template(
        uri_template=words.uri,
        name=words.name or words.uri,
        description=words.description,
        mime_type=words.mime_type,
        parameters=_parameters(words.parameters),
    )


def _parameters(described: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(described)} if described else {}


def described_in(resources: Sequence[ResourceWords]) -> dict[Ref, Entry]:
    """The operator's words about single resources, laid over what a source tells."""
    return {
        Ref.parse(words.uri): Entry(
            ref=Ref.parse(words.uri),
            name=words.name or "",
            description=words.description,
            mime_type=words.mime_type or "",
            annotations=words.annotations,
        )
        for words in resources
        if not words.is_template
    }


def chosen_schemes(config: Config, plugins: Sequence[Plugin]) -> set[str]:
    """Where a caller may have chosen what is told: it wrote it, or it gave it to a tool, a prompt or a template."""
    filled = {one.scheme for one in config.sources.values() if isinstance(one, MemoryOptions) and one.templates}
    return {"tool", "prompt"} | filled | writable_schemes(config, plugins)


def writable_schemes(config: Config, plugins: Sequence[Plugin]) -> set[str]:
    """What the configuration opens; a plugin decides for its own sources."""
    files = {one.scheme for one in config.sources.values() if isinstance(one, FileOptions) and one.expose and one.write}
    return files | {source.scheme for plugin in plugins for source in plugin.sources}
