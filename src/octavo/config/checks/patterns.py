"""Patterns of rules that can never match anything. A deny that denies nothing must not look like one that does."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from octavo.config.checks.address_forms import forms, roots
from octavo.config.checks.rules import covers
from octavo.config.model import Config
from octavo.config.words import RESERVED_SCHEMES
from octavo.core.glob import Glob

_TOLD: Final = 5  # addresses


class Never(NamedTuple):
    why: str
    hint: str = ""
    sure: bool = True  # False: a plugin may bring what is missing


def never(pattern: str, config: Config) -> Never | None:
    """Why no address of this configuration can match it; None where one can."""
    glob = Glob(pattern)
    if glob.asks:
        return _asking(pattern, glob)
    served = [source.scheme for source in config.sources.values() if source.expose]
    known = [*dict.fromkeys((*served, *RESERVED_SCHEMES))]
    if glob.scheme not in (*known, "*"):
        near = get_close_matches(glob.scheme, known, n=1)
        hint = f"did you mean {near[0]}://?" if near else f"there is {', '.join(f'{one}://' for one in known)}"
        return Never(f"never matches: no exposed source serves {glob.scheme}://", hint, sure=not config.plugins)
    if glob.absolute:
        if "file" in served and not any(form.meets(glob) for form in roots(config)):
            hint = "absolute addresses begin with the path of a root, or with its as:"
            return Never("never matches: no root lies there", hint)
        return None
    if glob.scheme in ("*", "changes") and config.plugins:
        return None  # a plugin may bring a scheme
    if (apart := _left_out(config, glob)) is not None:
        return apart
    return _unlike_any(config, glob, known)


def _asking(pattern: str, glob: Glob) -> Never:
    if glob.scheme == "file" and "root=" in pattern.partition("?")[2]:
        hint = "a file that another one hides is named by its absolute address, file:///…"
    else:
        hint = "leave it out: a rule on an address holds for all views and versions of it; a name has %3F for ?"
    return Never("never matches: patterns are about paths, and this one goes on behind a question mark", hint)


def _unlike_any(config: Config, glob: Glob, known: Sequence[str]) -> Never | None:
    kinds = [forms(config, scheme) for scheme in (known if glob.scheme == "*" else (glob.scheme,))]
    if all(kind is not None and not any(form.meets(glob) for form in kind) for kind in kinds):
        return Never(f"never matches: no address of {glob.scheme}:// can look like that", _addresses(config, glob))
    return None


def _left_out(config: Config, glob: Glob) -> Never | None:
    for source in config.sources.values():
        for folder in source.over.without if source.scheme == glob.scheme and source.over is not None else ():
            outside = Glob(f"{source.scheme}://{folder}/*")
            if covers(outside, glob):
                hint = "write the address that the other catalog gives to what stands there"
                # A file may have the folder's name, and then its address.
                sure = glob.literal != outside.literal
                return Never(f"never matches: {folder} is left out by without", hint, sure=sure)
    return None


def _addresses(config: Config, glob: Glob) -> str:
    told = [f"{glob.scheme}://{form}" for form in forms(config, glob.scheme) or ()]
    return f"there is {', '.join(told[:_TOLD])}{' and more' if len(told) > _TOLD else ''}" if told else ""
