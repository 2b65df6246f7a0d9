"""From what a model writes to a URI: `docs/a.md`, `/docs/a.md`, `.` or a URI."""

from __future__ import annotations

from typing import Final

from octavo.core.ref import Ref, is_scheme

_ESCAPES: Final = {ord(c): f"%{ord(c):02X}" for c in "%?#"}


def address(target: str) -> str:
    """A URI stays as it is, but for a slash at its end. Everything else is a path below `file://`, in which `%`, `?`
    and `#` are parts of names. Whatever is wrong with it, the pipeline refuses: `..` too."""
    scheme, separator, rest = target.partition("://")
    if separator and is_scheme(scheme):
        return target[:-1] if rest.strip("/") and rest.endswith("/") and "?" not in rest else target
    return "file://" + _path(target)


def local(path: str) -> str:
    """As `address`, but a path that begins with a slash is one of the machine."""
    return f"file:///{_path(path)}" if path.startswith("/") else address(path)


def with_parameter(uri: str, written: str) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{written}"


def below(ref: Ref, scope: Ref) -> tuple[str, ...]:
    """The names of an entry below the scope that was listed; () when it is the scope itself.

    A source may answer a scope in one spelling with entries in the other, of which the root is not known here:
    then the longest overlap of the two counts.
    """
    names, above = ref.segments, scope.segments
    if ref.absolute is scope.absolute:
        return names[len(above) :]
    if scope.absolute:
        overlaps = range(min(len(names), len(above)), 0, -1)
        return names[next((n for n in overlaps if above[-n:] == names[:n]), 0) :]
    begins = range(len(names) - len(above) + 1)
    return names[next((n for n in begins if names[n : n + len(above)] == above), 0) + len(above) :]


def _path(text: str) -> str:
    path = "/".join(name for name in text.split("/") if name not in ("", ".")).translate(_ESCAPES)
    # `file://localhost/x` is the absolute spelling of `/x`: a folder of that name needs an escape.
    return f"%6C{path[1:]}" if path.startswith("localhost/") else path
