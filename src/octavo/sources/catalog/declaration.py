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
Form: TypeAlias = Literal["markdown", "text", "yaml", "json"]

_VARIABLE: Final = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}")
# In the order in which files of one address are preferred.
FORMS: Final[Mapping[str, Form]] = {
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown", ".rst": "text", ".adoc": "text", ".txt": "text",
    ".yml": "yaml", ".yaml": "yaml", ".json": "json",
}  # fmt: skip
DOCUMENTS: Final = tuple(ending for ending, form in FORMS.items() if form in ("markdown", "text"))
DEFINITIONS: Final = tuple(ending for ending, form in FORMS.items() if form in ("yaml", "json"))
# What a folder's own page is called; it is named for people as the folder is.
FRONT_PAGES: Final = frozenset(("index", "_index", "readme"))
# `expense@1.1.0.md` is version 1.1.0 of `expense`. At least one dot, so that few other names look like it.
_VERSION: Final = re.compile(r"(?P<name>.+)@(?P<version>[0-9]+(?:\.[0-9]+)+(?:[-+][0-9A-Za-z.+-]+)?)\Z")


def form_of(name: str) -> Form:
    """By the ending of a file's name."""
    return FORMS.get(ending_of(name), "text")


def ending_of(name: str) -> str:
    """One of those that are served, in small letters; nothing for every other."""
    _, dot, ending = name.rpartition(".")
    suffix = f"{dot}{ending.lower()}"
    return suffix if suffix in FORMS and len(name) > len(suffix) else ""


class Shape:
    """A pair of templates: `functions/{name}.yml` in the store is `function/{name}` in the catalog.

    A variable is one whole segment; `{+path}` is one or more. Both templates have the same variables. A YAML file may
    end in .yml or in .yaml, whichever the template says; a template without an ending takes all of `endings`.
    """

    def __init__(
        self,
        file: str,
        address: str | None = None,
        *,
        kind: str = "",
        endings: tuple[str, ...] = (),
        offered: bool = True,
        pages: bool = True,
        literal: bool = False,
    ) -> None:
        """`kind` is what others call such an entry when they refer to it. `offered` says whether clients are shown the
        template, `pages` whether a folder's own page (`README`) is an entry too, `literal` that it is one file alone.
        Raises InvalidParams for a template that cannot be used."""
        suffix = ending_of(file.rpartition("/")[2])
        stem = file[: -len(suffix)] if suffix else file
        if not suffix and (not endings or "." in _VARIABLE.sub("", file.rpartition("/")[2])):
            raise InvalidParams(f"The path {file!r} must end in one of {', '.join(FORMS)}")
        if unknown := [one for one in endings if one not in FORMS]:
            raise InvalidParams(f"There is no ending {unknown[0]!r}; there are {', '.join(FORMS)}")
        same = (suffix, *(other for other in (".yml", ".yaml") if suffix in (".yml", ".yaml") and other != suffix))
        self.suffixes: tuple[str, ...] = same if suffix else endings
        self.form: Form = FORMS[self.suffixes[0]]
        self.kind, self.offered, self._pages = kind, offered, pages
        self.file = _Template(stem)
        self.address = _Template(stem if address is None else address)
        names = set(self.file.names)
        if not (names or literal) or len(names) < len(self.file.names) or sorted(self.address.names) != sorted(names):
            raise InvalidParams(f"The path {file!r} and its address need the same variables, each once")

    def ending_in(self, endings: tuple[str, ...]) -> Shape:
        """The same for files with other endings; a manifest stays what it is."""
        if not self.file.ends_in_variable:
            return self
        made = Shape(self.file.text, self.address.text, kind=self.kind, endings=endings, offered=self.offered)
        made._pages = self._pages
        return made

    def below(self, folder: str) -> Shape:
        """The same for files in a folder, which is no part of their addresses."""
        text = f"{folder}/{self.file.text}"
        made = Shape(text, self.address.text, kind=self.kind, endings=self.suffixes, offered=self.offered)
        made._pages = self._pages
        return made

    def unoffered(self) -> Shape:
        """The same for files that are served where they stand, and that nobody is told to put there."""
        made = Shape(self.file.text, self.address.text, kind=self.kind, endings=self.suffixes, offered=False)
        made._pages = self._pages
        return made

    @property
    def pattern(self) -> str:
        """For people: as it would stand in `files`."""
        return self.file.text + self.suffixes[0]

    def fits(self, place: Segments) -> tuple[dict[str, str], str] | None:
        """The variables of a file, and the version that its name tells; None for a file of another shape."""
        suffix = ending_of(place[-1]) if place else ""
        if suffix not in self.suffixes:
            return None
        name, version = place[-1][: -len(suffix)], ""
        if not self._pages and name.casefold() in FRONT_PAGES:
            return None
        if found := _VERSION.match(name):
            name, version = found["name"], found["version"]
        values = self.file.match((*place[:-1], name))
        return None if values is None else (values, version)

    def resembles(self, place: Segments) -> bool:
        """Whether a file looks as if it was meant to be one of this shape, wherever it stands."""
        name = place[-1].lower()
        literal = not self.file.ends_in_variable
        return any(name == f"{self.file.last}{s}".lower() if literal else name.endswith(s) for s in self.suffixes)

    def rank(self, place: Segments) -> tuple[int, bool]:
        """Of two files with one address the one of lesser rank is served: by ending, and `.md` before `.MD`."""
        suffix = ending_of(place[-1])
        return self.suffixes.index(suffix), not place[-1].endswith(suffix)

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
        self._parts: list[tuple[str, bool]] = []  # name or literal, and whether it is a variable
        self._many: int | None = None  # the part that is several segments
        for number, segment in enumerate(text.split("/")):
            found = _VARIABLE.fullmatch(segment)
            if found is None and ("{" in segment or "}" in segment):
                raise InvalidParams(f"In the path {text!r} a variable must be a whole segment, such as {{name}}")
            if found is not None and found[1]:
                if self._many is not None:
                    raise InvalidParams(f"In the path {text!r} only one variable may have a +")
                self._many = number
            self._parts.append((segment if found is None else found[2], found is not None))
        Ref.of("x", [part for part, variable in self._parts if not variable])  # raises for what can be no name
        self.names = [part for part, variable in self._parts if variable]
        self.deep = self._many is not None
        self.last, self.ends_in_variable = self._parts[-1]

    def match(self, segments: Segments) -> dict[str, str] | None:
        parts, many = self._parts, self._many
        more = len(segments) - len(parts)
        if more < 0 or (more and many is None):
            return None
        values: dict[str, str] = {}
        at = 0
        for number, (part, variable) in enumerate(parts):
            if number == many:
                values[part] = "/".join(segments[at : at + more + 1])
                at += more
            elif variable:
                values[part] = segments[at]
            elif part != segments[at]:
                return None
            at += 1
        return values

    def fill(self, values: Mapping[str, str]) -> Segments:
        filled = [values[part] if variable else part for part, variable in self._parts]
        return tuple("/".join(filled).split("/"))


def shapes_of_files(
    files: tuple[str, ...], address: str | None, *, kind: str, endings: tuple[str, ...]
) -> tuple[Shape, ...]:
    """As somebody writes patterns: `{team}/{name}.md`, `{+path}`, `guides/**/*.mdx`, `**`. Raises InvalidParams."""
    return tuple(Shape(_in_variables(one), address, kind=kind, endings=endings) for one in files)


def _in_variables(pattern: str) -> str:
    """`**` with what follows it is `{+path}`, a `*` that is a whole name a variable of its own."""
    named = re.sub(r"(^|/)\*\*(?:/\*(?=$|\.|/))?(?=$|\.|/)", r"\1{+path}", pattern)
    count = 0
    parts = named.split("/")
    for number, part in enumerate(parts):
        stem, dot, ending = part.partition(".")
        if stem == "*":
            count += 1
            last = number == len(parts) - 1 and "{name}" not in named
            parts[number] = ("{name}" if last else f"{{folder{count if count > 1 else ''}}}") + dot + ending
        elif "*" in part:
            raise InvalidParams(f"In the path {pattern!r} * must be a whole name, or stand before an ending")
    return "/".join(parts)


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
    marks: tuple[
        str, ...
    ] = ()  # whoever writes three of these keys follows the model; other texts are taken as they are
    required: tuple[str, ...] = ()  # keys that every file must have, whatever model it follows
    ids: str = ""  # the key that holds an id, or how it is made: "sop-{function}-{name}"
    titles: str = ""  # the same of the name for people
    usual: tuple[str, ...] = ()  # folders of the store in which such files mostly stand
    guessed: bool = False  # whether the folder was found by looking, and the rest of the store is nobody's
    home: str = ""  # such a folder, where what stands beside it is served too: no part of the addresses of its files
    beside: int = 0  # files that such a folder leaves out, where they are many
    without: tuple[str, ...] = ()  # folders below the path that are another catalog's
    anywhere: bool = False  # whether they may be all that there is in a store

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

    @property
    def folders(self) -> tuple[str, ...]:
        """Of the store, for people: the one whose name is no part of addresses first."""
        return (self.home, self.path) if self.home else (self.path,)

    @property
    def is_lenient(self) -> bool:
        """Whether nothing is asked of a file of which nobody said that it is an entry."""
        return bool(self.marks) and not self.required

    @cached_property
    def checked(self) -> frozenset[str]:
        """Keys that may be wrong only in the company of others, so that their lines are remembered."""
        return frozenset(("id", "permissions", self.tools, *(key.partition(".")[0] for key in self.links)))

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(name for shape in self.shapes for name in shape.file.names)

    def located(self, place: Segments) -> tuple[Segments, Shape, str] | None:
        """The address of a file, and the version that its name tells; None for a file that has none."""
        for shape in self.shapes:
            fit = shape.fits(place)
            if fit is not None:
                values, version = fit
                names = shape.address.fill(values)
                return None if self.owner(names) is not None else (names, shape, version)  # None: a file of another
        return None

    def owner(self, names: Segments) -> Segments | None:
        """The entry that a file of this address would belong to, by its name alone."""
        if not self.manifest:
            return None
        for shape in self.shapes:
            if shape.address.match(names) is not None:
                return None  # it is one itself
            for n in range(1, len(names)):
                if shape.address.match(names[:n]) is not None:
                    return names[:n]
        return None

    def kind_of(self, ref: Ref) -> str:
        return next((s.kind for s in self.shapes if s.address.match(ref.segments) is not None), "") or self.scheme
