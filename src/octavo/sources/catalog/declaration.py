"""What a catalog is, as data: where its files stand, which addresses they have, and what their front matter says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref

Segments: TypeAlias = tuple[str, ...]
Form: TypeAlias = Literal["markdown", "yaml"]

_VARIABLE: Final = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")
_FORMS: Final[Mapping[str, Form]] = {".md": "markdown", ".markdown": "markdown", ".yml": "yaml", ".yaml": "yaml"}
# `expense@1.1.0.md` is version 1.1.0 of `expense`. At least one dot, so that few other names look like it.
_VERSION: Final = re.compile(r"(?P<name>.+)@(?P<version>[0-9]+(?:\.[0-9]+)+(?:[-+][0-9A-Za-z.+-]+)?)\Z")


class Shape:
    """A pair of templates: `functions/{name}.yml` in the store is `function/{name}` in the catalog.

    A variable is one whole segment; `{+path}` at the end is one or more. Both templates have the same variables. A
    YAML file may end in .yml or in .yaml, whichever the template says.
    """

    def __init__(self, file: str, address: str | None = None, *, kind: str = "") -> None:
        """`kind` is what others call such an entry when they refer to it. Raises InvalidParams for a template that
        cannot be used."""
        stem, dot, ending = file.rpartition(".")
        suffix = f"{dot}{ending}".lower()
        if suffix not in _FORMS or not stem:
            raise InvalidParams(f"The path {file!r} must end in one of {', '.join(_FORMS)}")
        self.form: Form = _FORMS[suffix]
        self.suffixes = (suffix, *(other for other in (".yml", ".yaml") if self.form == "yaml" and other != suffix))
        self.kind = kind
        self.file = _Template(stem)
        self.address = _Template(stem if address is None else address)
        names = set(self.file.names)
        if not names or len(names) < len(self.file.names) or sorted(self.address.names) != sorted(names):
            raise InvalidParams(f"The path {file!r} and its address need the same variables, each once")

    def fits(self, place: Segments) -> tuple[dict[str, str], str] | None:
        """The variables of a file, and the version that its name tells; None for a file of another shape."""
        if not place:
            return None
        last = place[-1]
        suffix = next((s for s in self.suffixes if last.lower().endswith(s) and len(last) > len(s)), None)
        if suffix is None or last[-len(suffix) :] != suffix:
            return None  # one address, one spelling: `.MD` would be a second
        name, version = last[: -len(suffix)], ""
        if found := _VERSION.match(name):
            name, version = found["name"], found["version"]
        values = self.file.match((*place[:-1], name))
        return None if values is None else (values, version)

    def resembles(self, place: Segments) -> bool:
        """Whether a file looks as if it was meant to be one of this shape, wherever it stands."""
        name = place[-1].lower()
        literal = not self.file.ends_in_variable
        return any(name == f"{self.file.last}{s}".lower() if literal else name.endswith(s) for s in self.suffixes)

    def rank(self, place: Segments) -> int:
        """Of two files with one address the one of lesser rank is served."""
        return next(n for n, suffix in enumerate(self.suffixes) if place[-1].endswith(suffix))

    def places(self, segments: Segments, version: str = "") -> list[Segments]:
        """Where the file of an address can stand, the first that is there counts."""
        values = self.address.match(segments)
        if values is None:
            return []
        stem = self.file.fill(values)
        if _VERSION.match(stem[-1]):
            return []  # the version of another entry has no address of its own
        name = f"{stem[-1]}@{version}" if version else stem[-1]
        return [(*stem[:-1], name + suffix) for suffix in self.suffixes]


class _Template:
    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: list[tuple[str, bool, bool]] = []  # name or literal, whether a variable, whether many segments
        for number, segment in enumerate(segments := text.split("/"), 1):
            found = _VARIABLE.fullmatch(segment)
            if found is None and ("{" in segment or "}" in segment):
                raise InvalidParams(f"In the path {text!r} a variable must be a whole segment, such as {{name}}")
            many = found is not None and bool(found[1])
            if many and number < len(segments):
                raise InvalidParams(f"In the path {text!r} a variable with + must come last")
            self._parts.append((segment if found is None else found[2], found is not None, many))
        Ref.of("x", [part for part, variable, _ in self._parts if not variable])  # raises for what can be no name
        self.names = [part for part, variable, _ in self._parts if variable]
        self.last, self.ends_in_variable, _ = self._parts[-1]

    def match(self, segments: Segments) -> dict[str, str] | None:
        parts = self._parts
        many = parts[-1][2]
        if len(segments) < len(parts) or (len(segments) > len(parts) and not many):
            return None
        values: dict[str, str] = {}
        for (part, variable, all_of_it), *rest in zip(parts, segments, strict=False):
            if variable:
                values[part] = "/".join(segments[len(parts) - 1 :]) if all_of_it else rest[0]
            elif part != rest[0]:
                return None
        return values

    def fill(self, values: Mapping[str, str]) -> Segments:
        filled = [values[part] if variable else part for part, variable, _ in self._parts]
        return tuple("/".join(filled).split("/"))


class Declaration(Struct, frozen=True, dict=True):
    """`schema` is the JSON Schema of the front matter: its properties, in their order, are the metadata of an entry.

    `names` are the keys of which the first that is there names an entry for people. `filters` are query parameters of
    collections, each with the key or variable that it looks at. `links` are keys that refer to other entries, each
    with the kinds that may stand there; `stages.sops` is the key in each item of a list. `within` is a key that the
    folder must agree with. `further` are keys that rules ask about: told as well, where a file has them.
    """

    scheme: str
    path: str
    shapes: tuple[Shape, ...]
    schema: Mapping[str, Any]
    what: str = "entry"  # for people: a problem says what the file should have been
    names: tuple[str, ...] = ("title", "name")
    about: tuple[str, ...] = ("description", "summary")
    filters: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    above: tuple[str, ...] = ()  # keys that name an entry above this one: no circle may come of them
    within: str = ""
    views: tuple[str, ...] = ("parsed", "relations")
    tools: str = ""  # a key that names tools
    matches: bool = False  # whether `?match=` finds entries by a request in plain words
    manifest: str = ""  # the file that makes a folder an entry, with whatever else stands in the folder
    further: tuple[str, ...] = ()

    @cached_property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        found: Mapping[str, Mapping[str, Any]] = self.schema.get("properties", {})
        return found

    @cached_property
    def texts(self) -> frozenset[str]:
        """Keys whose values are text, or lists of texts: a version 1.10 is no number there."""
        return frozenset(
            key
            for key, schema in self.properties.items()
            if schema.get("type") == "string" or schema.get("items", {}).get("type") == "string"
        )

    @cached_property
    def asked(self) -> frozenset[str]:
        """Keys that others want to know of every entry."""
        return frozenset((*self.properties, *self.filters.values(), *filter(None, [self.tools])))

    @cached_property
    def checked(self) -> frozenset[str]:
        """Keys that may be wrong only in the company of others, so that their lines are remembered."""
        return frozenset(("id", "permissions", self.tools, *(key.partition(".")[0] for key in self.links)))

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(name for shape in self.shapes for name in shape.file.names)

    def kind_of(self, ref: Ref) -> str:
        return next((s.kind for s in self.shapes if s.address.match(ref.segments) is not None), "") or self.scheme
