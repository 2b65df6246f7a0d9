"""From what a model writes to a URI: `docs/a.md`, `/docs/a.md`, `.`, a path of the machine or a URI; and back."""

from __future__ import annotations

from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.model import Entry
from octavo.core.ref import Ref, is_scheme
from octavo.tools.context import ToolContext

_ESCAPES: Final = {ord(c): f"%{ord(c):02X}" for c in "%?#"}


def address(ctx: ToolContext, target: str) -> str:
    """A URI stays as it is, but for a slash at its end. Everything else is a path below `file://`, in which `%`, `?`
    and `#` are parts of names; one that begins with a served folder of the machine is one of the machine. Whatever
    is wrong with it, the pipeline refuses: `..` too."""
    if target.startswith("/"):
        absolute = f"file:///{_path(target)}"
        try:
            ctx.canonical(Ref.parse(absolute))
        except OctavoError:  # outside of what is served: then the slash means all that is served
            return _relative(target)
        return absolute
    return _relative(target)


def local(path: str) -> str:
    """As `address`, but a path that begins with a slash is always one of the machine."""
    return f"file:///{_path(path)}" if path.startswith("/") else _relative(path)


def with_parameter(uri: str, written: str) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{written}"


def below(ctx: ToolContext, ref: Ref, scope: Ref) -> tuple[str, ...]:
    """The names of an entry below the scope that was listed, however both are spelled; () when it is the scope."""
    return ctx.canonical(ref).segments[len(ctx.canonical(scope).segments) :]


def path_of(ctx: ToolContext, entry: Entry) -> str:
    """As a model can write it again: relative to what is served, or the URI where that would not be enough."""
    ref = ctx.canonical(entry.ref)
    return ref.path if ref.scheme == "file" and not ref.params else str(ref)


def _relative(target: str) -> str:
    scheme, separator, rest = target.partition("://")
    if separator and is_scheme(scheme):
        return target[:-1] if rest.strip("/") and rest.endswith("/") and "?" not in rest else target
    return "file://" + _path(target)


def _path(text: str) -> str:
    path = "/".join(name for name in text.split("/") if name not in ("", ".")).translate(_ESCAPES)
    # `file://localhost/x` is the absolute spelling of `/x`: a folder of that name needs an escape.
    return f"%6C{path[1:]}" if path.startswith("localhost/") else path
