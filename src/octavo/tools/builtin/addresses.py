"""From what a model writes to a URI: `docs/a.md`, `.`, a path of the machine (`/srv/docs/a.md`) or a URI; and back."""

from __future__ import annotations

from typing import Final

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref, is_scheme
from octavo.core.values import Content, Entry
from octavo.tools.context import ToolContext

_ESCAPES: Final = {ord(c): f"%{ord(c):02X}" for c in "%?#"}


def address(target: str) -> str:
    """A URI stays as it is, but for a slash at its end. Everything else is a path, in which `%`, `?` and `#` are parts
    of names: with a slash at its beginning one of the machine, else one below `file://`; `/` alone is all that is
    served. Whatever is wrong with it, the pipeline refuses: what is outside, and `..` too."""
    if target.startswith("/") and (path := _path(target)):
        return f"file:///{path}"
    return _relative(target)


def repeated(uri: str) -> str:
    """An address in the form in which it was asked for, as lists would write it."""
    return str(Ref.parse(uri))


def with_parameter(uri: str, written: str) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{written}"


async def read_with(ctx: ToolContext, uri: str, written: str, told: str = "") -> Content:
    """A read with parameters that a tool adds. A refusal names the address as the caller knows it: `uri`, or `told`."""
    asked, known = with_parameter(uri, written), told or uri
    try:
        return await ctx.read(asked)
    except OctavoError as refused:
        refused.message = refused.message.replace(asked, known)
        refused.args = (refused.message,)
        refused.data = {key: known if value == asked else value for key, value in refused.data.items()}
        raise


def below(ctx: ToolContext, ref: Ref, scope: Ref) -> tuple[str, ...]:
    """The names of an entry below the scope that was listed, however both are spelled; () when it is the scope."""
    return ctx.canonical(ref).segments[len(ctx.canonical(scope).segments) :]


def is_hidden(ctx: ToolContext, entry: Entry) -> bool:
    """Whether a file of the same name stands in an earlier folder: else it is told where the plain name led."""
    ref = ctx.canonical(entry.ref)
    leads = entry.target is not None and entry.target.bare == ref.bare
    return ref.scheme == "file" and ref.param("root") not in (None, "1") and not leads


def path_of(ctx: ToolContext, entry: Entry) -> str:
    """As a model can write it again: relative to what is served, or as lists give it where that would not be enough."""
    ref = ctx.canonical(entry.ref)
    return ref.path if ref.scheme == "file" and ref.param("root") in (None, "1") else str(entry.ref)


def _relative(target: str) -> str:
    scheme, separator, rest = target.partition("://")
    if separator and is_scheme(scheme):
        return target[:-1] if rest.strip("/") and rest.endswith("/") and "?" not in rest else target
    return "file://" + _path(target)


def _path(text: str) -> str:
    path = "/".join(name for name in text.split("/") if name not in ("", ".")).translate(_ESCAPES)
    # `file://localhost/x` is the absolute spelling of `/x`: a folder of that name needs an escape.
    return f"%6C{path[1:]}" if path.startswith("localhost/") else path
