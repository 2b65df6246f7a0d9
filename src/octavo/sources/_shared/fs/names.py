"""Which names exist for callers: hidden ones do not, others only with an allowed extension.

Everything is decided on names alone, before the disk is asked: a refusal tells nothing about what is
there. Comparison ignores case, because a disk may.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal

from octavo.core.errors import OctavoError
from octavo.core.foundation import folded
from octavo.core.memo import Memo
from octavo.core.ref import Ref
from octavo.sources._shared.fs.credentials import SAMPLED, is_hidden_there, is_sample
from octavo.sources._shared.fs.mime import SAFE_EXTENSIONS, SAFE_NAMES

Verdict = Literal["served", "hidden", "extension", "outside"]

ALWAYS_HIDDEN: Final = (".git", ".octavo", ".local/state/octavo")

_MEMO_SIZE: Final = 8192


class Rules:
    """What may be named. `extensions`: with or without a dot, any case; `*` allows all; none = a safe set;
    a file without an extension is allowed by an entry that is its whole name. `hidden`: patterns with `*`,
    of one name (`*.pem`) or of names that follow each other (`.aws/credentials`), at any depth.

    `without` are names from the root on that are never there, nor is what is below them.

    `within` and `only` narrow that further, for as long as a client wants it: to what stands in these folders, and
    to names that these extensions allow as well."""

    def __init__(
        self,
        extensions: Iterable[str],
        hidden: Iterable[str],
        *,
        within: Iterable[tuple[str, ...]] | None = None,
        only: Iterable[str] | None = None,
        without: Iterable[tuple[str, ...]] = (),
    ) -> None:
        self._without = frozenset(map(folded, without))
        self._within = None if within is None else tuple(within)
        self._only = None if only is None else Rules(only, ())
        listed = [_compared(entry) for entry in extensions]
        self._all = "*" in listed or ".*" in listed
        self._extensions = frozenset(e.removeprefix(".") for e in listed) or SAFE_EXTENSIONS
        self._names = frozenset(listed) or SAFE_NAMES
        patterns = [_compared(pattern).strip("/") for pattern in (*ALWAYS_HIDDEN, *hidden)]
        # Named twice, by us and by the operator: then folders are meant as well.
        self._of_files = _OneOf(one for one in SAMPLED.intersection(patterns) if patterns.count(one) == 1)
        self._folders: Memo[str, bool] = Memo(_MEMO_SIZE)
        names = [pattern for pattern in patterns if "/" not in pattern]
        self._hidden_name = _OneOf(one for one in names if one not in SAMPLED)
        self._hidden_settings = _OneOf(one for one in names if one in SAMPLED)
        chains = [pattern.split("/") for pattern in patterns if "/" in pattern]
        self._hidden_chains = [[_OneOf([part]) for part in chain] for chain in chains]
        self._chain_end = _OneOf(chain[-1] for chain in chains)
        self._memo: Memo[tuple[str, ...], Verdict] = Memo(_MEMO_SIZE)

    def verdict(self, names: tuple[str, ...]) -> Verdict:
        """On a file's canonical names from the root."""
        known = self._memo.get(names) or self._memo.again(names)
        if known is not None:
            return known
        verdict: Verdict = "served"
        if not self.covers(names):
            verdict = "outside"
        elif self.hides_on_the_way(names):
            verdict = "hidden"
        elif not names or not self.allows(names[-1]):
            verdict = "extension"
        return self._memo.keep(names, verdict)

    @property
    def served(self) -> list[str]:
        """The extensions, as they are written."""
        return sorted(f".{one}" for one in self._extensions)

    @property
    def narrowed(self) -> bool:
        return self._within is not None

    def covers(self, names: tuple[str, ...]) -> bool:
        """Whether it stands in a folder to which everything was narrowed, or is one."""
        return self._within is None or any(names[: len(folder)] == folder for folder in self._within)

    def hides_on_the_way(self, names: tuple[str, ...], *, folder: bool = False) -> bool:
        """Whether the last name or one above it is hidden. `folder` says that the last one is of a folder."""
        return any(self.hides(names[: i + 1], folder=folder or i + 1 < len(names)) for i in range(len(names)))

    def hides(self, names: tuple[str, ...], *, folder: bool = False) -> bool:
        """Whether the last name is hidden, given that the ones above it are not. `folder` says that it is of one."""
        if self._within is not None and not any(_leads(names, folder) for folder in self._within):
            return True
        if self._without and folded(names) in self._without:
            return True
        last = names[-1].casefold()
        if self._hidden_name.match(last):
            return True
        if folder and self._is_of_pages(names[-1]):
            return False
        if self._hidden_settings.match(last) and (folder or not is_sample(last)):
            return True
        if is_hidden_there(last) and any(map(self._is_of_pages, names[:-1])):
            return True
        return self._chain_end.match(last) and any(
            len(names) >= len(chain)
            and all(part.match(n.casefold()) for part, n in zip(chain, names[-len(chain) :], strict=True))
            for chain in self._hidden_chains
        )

    def _is_of_pages(self, folder: str) -> bool:
        """Whether a folder is called as only files with settings are: pages and code about them stand in it, and what
        else is there may be such files. Its name may look like that of a sample, and opens nothing."""
        known = self._folders.get(folder)
        return self._folders.keep(folder, self._of_files.match(folder.casefold())) if known is None else known

    def allows(self, name: str) -> bool:
        """By extension: `a.tar.gz` needs `gz` or `tar.gz`."""
        if self._only is not None and not self._only.allows(name):
            return False
        if self._all:
            return True
        folded = name.casefold()
        if folded in self._names:
            return True
        rest = folded[1:]  # a leading dot begins no extension
        while "." in rest:
            rest = rest.partition(".")[2]
            if rest in self._extensions:
                return True
        return False


def extension_of(names: tuple[str, ...]) -> str:
    """With its dot; none where there is none."""
    last = names[-1][1:] if names else ""
    return f".{last.rpartition('.')[2]}" if "." in last else ""


def canonical_name(on_disk: str) -> str | None:
    """The name under which a directory entry has an address; None when it can have none."""
    if on_disk.isascii():
        if on_disk.isprintable() and "\\" not in on_disk:
            return on_disk
        return None
    name = unicodedata.normalize("NFC", on_disk)
    if name.isascii():
        return None  # a look-alike of ASCII (U+212A for K): no lookup of an ASCII name searches for it
    try:
        return Ref.of("file", (name,)).segments[0]
    except OctavoError:
        return None


def _compared(text: str) -> str:
    """Names are those of addresses, which are NFC; so must be what they are compared with."""
    return unicodedata.normalize("NFC", text).casefold()


def _leads(names: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    """Whether one of the two is the other, or stands above it."""
    shared = min(len(names), len(folder))
    return names[:shared] == folder[:shared]


class _OneOf:
    """Patterns of names. Most need no regular expression, and compiling one for each would take as long as all else
    that a source does before its first answer."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._whole: set[str] = set()
        self._edges: list[tuple[str, str]] = []  # beginnings and endings
        rest: list[str] = []
        for pattern in patterns:
            begin, star, end = pattern.partition("*")
            if any(mark in begin + end for mark in "*?["):
                rest.append(fnmatch.translate(pattern))
            elif star:
                self._edges.append((begin, end))
            else:
                self._whole.add(pattern)
        self._begins = tuple(begin for begin, end in self._edges if not end)
        self._ends = tuple(end for begin, end in self._edges if not begin)
        self._edges = [(begin, end) for begin, end in self._edges if begin and end]
        self._rest = re.compile("|".join(rest)) if rest else None

    def match(self, name: str) -> bool:
        return (
            name in self._whole
            or name.endswith(self._ends)
            or name.startswith(self._begins)
            or any(
                len(name) >= len(begin) + len(end) and name.startswith(begin) and name.endswith(end)
                for begin, end in self._edges
            )
            or (self._rest is not None and self._rest.match(name) is not None)
        )
