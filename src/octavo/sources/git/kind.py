"""The record of `kind: git`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.core.foundation import Essential
from octavo.core.kinds import Host, Needs, SourceFolder, SourceKind
from octavo.sources.git.options import GitOptions
from octavo.sources.git.parameters import PARAMETERS

if TYPE_CHECKING:
    from octavo.core.ports.source import Source


async def _open(options: GitOptions, host: Host) -> Source:
    from octavo.sources._shared.fs.credentials import CREDENTIALS
    from octavo.sources.git.source import GitSource

    return GitSource(
        options.path,
        branch=options.branch,
        secret=host.secret,
        extensions=options.extensions,
        only=host.extensions,
        hidden=(*CREDENTIALS, *options.hide),
        encodings=options.encodings,
        history=options.history,
        owner=options.owner,
        name=host.name,
    )


def _needs(options: GitOptions) -> Needs:
    clone = options.path / ".git"
    repository = clone if clone.exists() else options.path
    return Needs(
        [SourceFolder(options.path, ("path",), files=False)],
        essentials=[Essential(repository, "the repository", folder=True, served=True)],
    )


GIT: Final = SourceKind(
    name="git",
    options=GitOptions,
    open=_open,
    page="sources/git.md",
    abilities=frozenset(("watch", "stamp")),
    parameters=PARAMETERS,
    metadata="none",
    needs=_needs,
    module="pygit2",
    extra="git",
    serves=lambda options: [f"{options.path}, branch {options.branch or 'of HEAD'}"],
)
KINDS: Final = (GIT,)
