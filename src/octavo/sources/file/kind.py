"""The record of `kind: file`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from octavo.config.words import variables
from octavo.core.errors import SourceUnavailable
from octavo.core.foundation import Essential
from octavo.core.kinds import Host, Needs, Objection, SourceFolder, SourceKind
from octavo.core.values import Template
from octavo.sources.file.options import FileOptions
from octavo.sources.file.parameters import PARAMETERS

if TYPE_CHECKING:
    from octavo.core.ports.source import Source

_FORM_TIME: Final = 0.8  # of the time of a request, for making text of a document: the rest is for reading it
_READING: Final = frozenset(
    ("watch", "levels", "folders", "search", "complete", "suggest", "suggest_more", "spell", "refuse", "stamp",
     "template")
)  # fmt: skip
_WILD: Final = frozenset("*?[")
_WRITING: Final = frozenset(("write", "edit", "arrange", "undo"))


async def _open(options: FileOptions, host: Host) -> Source:
    from octavo.sources._shared.fs.credentials import CREDENTIALS
    from octavo.sources.file.addresses import FileRoot
    from octavo.sources.file.source import FileSource

    make: Callable[..., Source] = FileSource
    # Each is loaded where it is asked for: a server that only reads what is there starts sooner.
    if options.history != "none":
        from octavo.sources.file.committed import CommittedFileSource

        make = partial(CommittedFileSource, history=options.history)
    if options.write:
        writing = partial(_writable(options), journal=host.folder("journal"), foundation=host.foundation)
        make = writing if options.history == "none" else partial(writing, history=options.history)
    described = [
        Template(
            uri_template=offered.uri,
            name=offered.name,
            description=offered.description,
            mime_type=offered.mime_type,
            parameters={"type": "object", "properties": dict(offered.parameters)} if offered.parameters else {},
        )
        for offered in options.templates
    ]
    return make(
        [FileRoot(root.path, root.shown, host.within(root.path), named=root.public is None) for root in options.roots],
        secret=host.secret,
        extensions=options.extensions,
        only=host.extensions,
        hidden=(*CREDENTIALS, *options.hide),
        symlinks=options.symlinks,
        hard_links=options.hard_links,
        exclude_dirs=[one.path for one in host.kept if one.folder],
        exclude_files=[one.path for one in host.kept if not one.folder],
        list_under=options.listing.under,
        list_recursive=options.listing.recursive,
        uris=options.uris if options.expose and not host.relative else "relative",
        templates=[*described, *host.templates],
        scheme=options.scheme,
        encodings=options.encodings,
        form_seconds=_FORM_TIME * host.seconds,
        titles=options.expose,  # whoever reads a store finds them himself
    )


def _writable(options: FileOptions) -> Callable[..., Source]:
    if options.history == "none":
        from octavo.sources.file.writable import WritableFileSource

        return WritableFileSource
    from octavo.sources.file.writable_committed import WritableCommittedFileSource

    return WritableCommittedFileSource


def _able(options: FileOptions) -> frozenset[str]:
    return _READING | _WRITING if options.write else _READING


def _needs(options: FileOptions) -> Needs:
    repositories = [*_repositories(options)]
    return Needs(
        [
            SourceFolder(root.path, ("roots", index), options.write, shown=root.shown, named=root.public is None)
            for index, root in enumerate(options.roots)
        ],
        reads=repositories,
        essentials=[Essential(one, "the repository", folder=True, served=True) for one in repositories],
    )


def _repositories(options: FileOptions) -> Iterator[Path]:
    if options.history == "none":
        return
    from octavo.sources._shared.git.worktree import work_tree

    for root in options.roots:
        with suppress(SourceUnavailable):  # `_checks` says so
            yield work_tree(root.path).repository


def _checks(options: FileOptions) -> Iterator[Objection]:
    yield from _prefixes_lie_apart(options)
    if options.history != "none":
        yield from _has_history(options)
    for index, template in enumerate(options.templates):
        key = ("templates", index)
        if template.uri.partition("://")[0].lower() != options.scheme:
            yield Objection((*key, "uri"), f"does not begin with {options.scheme}://, the scheme of this source")
        there = variables(template.uri)
        for variable in template.parameters:
            if variable not in there:
                hint = f"it has {', '.join(there)}"
                yield Objection((*key, "parameters", variable), "is no variable of the template", hint)


def _has_history(options: FileOptions) -> Iterator[Objection]:
    if options.expose:
        message = "?version= is asked of catalogs, not of the files themselves"
        yield Objection(("history",), message, "set expose: false and put a catalog over it, or leave history out")
    if len(options.roots) > 1:
        hint = "give each root a source of its own, with catalogs over it"
        yield Objection(("history",), "is for a source with one root", hint)
        return
    from octavo.core.clock import SystemClock
    from octavo.sources._shared.git.repository import Repository
    from octavo.sources._shared.git.worktree import work_tree

    root = options.roots[0].path
    if not root.is_dir():
        return  # said of every root
    try:
        Repository(work_tree(root).top, None, owner="self", clock=SystemClock()).close()
    except SourceUnavailable as error:
        message = f"cannot be had for this root: {error.message}"
        yield Objection(("history",), message, "leave history out, or serve a clone (kind: git)")


def _prefixes_lie_apart(options: FileOptions) -> Iterator[Objection]:
    seen: list[Path] = []
    for index, root in enumerate(options.roots):
        prefix = Path(root.shown)
        for number, other in enumerate(seen):
            if prefix == other or other in prefix.parents or prefix in other.parents:
                yield Objection(
                    ("roots", index, *(() if root.public is None else ("as",))),
                    f"would be shown as {prefix}, which is the same as, inside or around that of roots[{number}]",
                    "give each root a path of its own to show: {path: …, as: /…}",
                )
        seen.append(prefix)


def _writer(options: FileOptions) -> Source:
    """For whoever runs Octavo: it makes files and replaces none, so it has no journal."""
    from octavo.sources._shared.fs.credentials import CREDENTIALS
    from octavo.sources.file.addresses import FileRoot
    from octavo.sources.file.writable import WritableFileSource

    return WritableFileSource(
        [FileRoot(options.roots[0].path)],
        journal=None,
        secret=b"",
        extensions=options.extensions,
        hidden=(*CREDENTIALS, *options.hide),
        symlinks="refuse",
        scheme=options.scheme,
    )


def _of_folders(folders: Sequence[Path], here: bool, write: bool) -> Mapping[str, Any]:
    """`here`: they are served to a program of this machine, which knows them by their paths."""
    roots = [{"path": str(one), "as": str(one)} if here else {"path": str(one)} for one in folders]
    return {"kind": "file", "roots": roots, "extensions": ["*"], "write": write}


FILE: Final = SourceKind(
    name="file",
    options=FileOptions,
    open=_open,
    page="sources/file.md",
    abilities=_READING | _WRITING,
    able=_able,
    parameters=PARAMETERS,
    metadata="none",
    templates=True,
    lines=True,
    chosen=lambda options: options.write,
    needs=_needs,
    checks=_checks,
    by_name=frozenset(("extensions", "hide")),
    serves=lambda options: [str(root.path) for root in options.roots],
    extensions=lambda options: options.extensions,
    keeps_out=lambda options: [one for one in options.hide if not _WILD.intersection(one)],
    writer=_writer,
    of_folders=_of_folders,
)
KINDS: Final = (FILE,)
