"""Patterns of rules that can never match anything. A deny that denies nothing must not look like one that does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from octavo.config.model import Config, FileOptions
from octavo.config.words import RESERVED_SCHEMES
from octavo.core.glob import Glob

_OF_THE_SERVER: Final = ("server://config", "server://metrics")


class Never(NamedTuple):
    why: str
    hint: str = ""
    sure: bool = True  # False: a plugin may bring what is missing


def never(pattern: str, config: Config) -> Never | None:
    """Why no address of this configuration can match it; None where one can."""
    glob = Glob(pattern)
    if glob.asks:
        if glob.scheme == "file" and "root=" in pattern.partition("?")[2]:
            hint = "a file that another one hides is named by its absolute address, file:///…"
        else:
            hint = "leave it out: a rule on an address holds for all views and versions of it; a name has %3F for ?"
        return Never("never matches: patterns are about paths, and this one goes on behind a question mark", hint)
    served = [source.scheme for source in config.sources.values() if source.expose]
    known = [*dict.fromkeys((*served, *RESERVED_SCHEMES))]
    if glob.scheme not in (*known, "*"):
        near = get_close_matches(glob.scheme, known, n=1)
        hint = f"did you mean {near[0]}://?" if near else f"there is {', '.join(f'{one}://' for one in known)}"
        return Never(f"never matches: no exposed source serves {glob.scheme}://", hint, sure=not config.plugins)
    if glob.scheme == "server" and not any(map(glob.may_overlap, map(Glob, _OF_THE_SERVER))):
        return Never("never matches: of the server there are few addresses", f"write {' or '.join(_OF_THE_SERVER)}")
    if glob.literal.absolute and "file" in served and not any(map(glob.may_overlap, _roots(config))):
        hint = "absolute addresses begin with the path of a root, or with its as:"
        return Never("never matches: no root lies there", hint)
    return None


def _roots(config: Config) -> Iterator[Glob]:
    for source in config.sources.values():
        if isinstance(source, FileOptions) and source.scheme == "file" and source.expose:
            for root in source.roots:
                paths = (root.path, Path(os.path.realpath(root.path))) if root.public is None else (Path(root.public),)
                for path in paths:
                    names = "".join(f"/{name}" for name in path.parts[1:])
                    yield Glob(f"file://{names.replace('%', '%25').replace('*', '%2A').replace('?', '%3F')}/*")
