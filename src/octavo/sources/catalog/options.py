"""The options of catalogs: `kind: sop`, `doc`, `skill`, `agent`, `org` and `catalog`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from octavo.config.sections.source import Cache, Options
from octavo.config.words import Flag, Name, Scheme, check_uri, nfc

if TYPE_CHECKING:
    from octavo.core.kinds import Host
    from octavo.sources.catalog.declaration import Declaration


def _check_folder(folder: str) -> str:
    if folder.startswith("/"):
        raise ValueError("must be relative to the roots of the store")
    inside = folder.strip("/").removeprefix("./")
    if inside in ("", "."):
        return ""
    check_uri(f"x://{inside}")
    return nfc(inside)


Folder: TypeAlias = Annotated[str, AfterValidator(_check_folder)]


class OverStore(Options):
    """What all catalogs have in common."""

    store: Name = Field(description="The source with the files: its name here. It must have expose: false.")
    expose: Flag = Field(default=True, description="False: not served, only there for others to refer to.")
    cache: Cache = Field(default_factory=Cache, description="How long copies are kept.")

    @property
    def folder(self) -> str:
        """In the store: where its files stand, or mostly do where that is found by looking."""
        raise NotImplementedError

    @property
    def apart(self) -> tuple[str, ...]:
        """Folders below it that are not its own."""
        return ()

    @property
    def looked(self) -> tuple[str, ...]:
        """Folders that a look at the store may choose instead; nothing where the folder is said."""
        return ()

    def declared(self) -> Declaration:
        """What the options say."""
        raise NotImplementedError

    async def found(self, host: Host) -> Declaration:
        """The same, with what they do not say found by a look at the store, where a catalog does that."""
        return self.declared()


def _check_ending(ending: str) -> str:
    usual = "." + ending.strip().lstrip(".").lower()
    if usual not in ENDINGS:
        raise ValueError(f"must be one of {', '.join(ENDINGS)}")
    return usual


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


ENDINGS: Final = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".txt", ".yml", ".yaml", ".json")
Ending: TypeAlias = Annotated[str, AfterValidator(_check_ending)]
FilePatterns: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(nfc)], ...], BeforeValidator(_several)]


class UsualCatalog(OverStore):
    """What the catalogs have in common that every organisation has."""

    usual: ClassVar[str]

    path: Folder | None = Field(
        default=None,
        description="Their folder in the store. Not given: the usual one, if it is there and holds most of the "
        "documents, with the documents beside it; else the whole store. Both only if no other catalog stands on it.",
    )
    without: Annotated[tuple[Folder, ...], BeforeValidator(_several)] = Field(
        default=(),
        description="Folders below it that are not its own, such as those of another catalog on the same store.",
    )
    files: FilePatterns = Field(
        default=(),
        description="Where files stand below it, one pattern or several, such as {team}/{name}.md or **/*.mdx. A "
        "variable is one folder or the name, {+path} and ** are any number of folders. Not given: found by looking.",
    )
    endings: tuple[Ending, ...] = Field(
        default=(), description="Endings of files that are entries, where the patterns name none, such as .md and .rst."
    )
    required: tuple[Name, ...] = Field(
        default=(), description="Keys that the front matter of every file must have; without one, check names the file."
    )
    id_rule: Annotated[str, AfterValidator(nfc)] = Field(
        default="",
        alias="id",
        description="The key of the front matter that is the id, or how it is made of the pattern's variables, such as "
        "sop-{function}-{name}. Not given: the key id, else the path of the address.",
    )
    title_rule: Annotated[str, AfterValidator(nfc)] = Field(
        default="",
        alias="title",
        description="The same of the name for people. Not given: the keys title or name, else the first heading.",
    )
    model: dict[str, Any] = Field(
        default={},
        alias="schema",
        description="JSON Schema (2020-12) that the front matter of every file must fit, beside what the kind knows.",
    )

    @property
    def folder(self) -> str:
        return self.usual if self.path is None else self.path

    @property
    def apart(self) -> tuple[str, ...]:
        return self.without

    @property
    def looked(self) -> tuple[str, ...]:
        declared = self.declared()
        return () if self.path is not None else (*declared.usual, *([""] if declared.anywhere else []))

    def declared(self) -> Declaration:
        from octavo.sources.catalog.kinds import with_options

        return with_options(replace(self._usual(), scheme=self.scheme), **self.layout)

    def _usual(self) -> Declaration:
        from octavo.sources.catalog.kinds import DECLARATIONS

        return DECLARATIONS[self.kind]

    async def found(self, host: Host) -> Declaration:
        from octavo.sources.catalog.choice import chosen

        return await chosen(
            self.declared(),
            host.store(),
            path=self.path,
            alone=host.alone,
            files=bool(self.files),
            ruled=host.ruled,
        )

    @property
    def layout(self) -> dict[str, Any]:
        """As a declaration takes it."""
        return {
            "files": self.files,
            "endings": self.endings,
            "schema": self.model,
            "required": self.required,
            "ids": self.id_rule,
            "titles": self.title_rule,
            "without": self.without,
        }

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if any(self.layout.values()):
            from octavo.sources.catalog.kinds import check_options  # here: few configurations have one

            if fault := check_options(getattr(self, "kind", ""), **self.layout):
                raise ValueError(fault)
        return self


class SopOptions(UsualCatalog):
    """Standard operating procedures: texts in folders, with or without front matter."""

    usual = "sops"

    kind: Literal["sop"] = Field(description="Standard operating procedures: {function}/{name}.md, or deeper.")
    scheme: Scheme = Field(default="sop", description="What the addresses begin with.")


def _categories(value: object) -> object:
    if value == []:
        raise ValueError("must name a folder, or be any")
    return value


class DocOptions(UsualCatalog):
    """Documents: texts in folders, with or without front matter."""

    usual = "docs"

    kind: Literal["doc"] = Field(description="Documents: {category}/{name}.md, or deeper.")
    scheme: Scheme = Field(default="doc", description="What the addresses begin with.")
    categories: Annotated[tuple[Name, ...] | Literal["any"], BeforeValidator(_categories)] = Field(
        default="any", description="The folders that there may be, or any. With a list, check names what is elsewhere."
    )

    def _usual(self) -> Declaration:
        from octavo.sources.catalog.kinds import doc_with

        return super()._usual() if self.categories == "any" else doc_with(self.categories)


class SkillOptions(UsualCatalog):
    """Skills: folders with a SKILL.md, and YAML definitions."""

    usual = "skills"

    kind: Literal["skill"] = Field(description="Skills: {name}/SKILL.md at any depth, or {function}/{name}.yml.")
    scheme: Scheme = Field(default="skill", description="What the addresses begin with.")


class AgentOptions(UsualCatalog):
    """Agents: definitions. They describe agents and grant nothing; see `agents` and `policy`."""

    usual = "agents"

    kind: Literal["agent"] = Field(description="Agents: {name}.yml.")
    scheme: Scheme = Field(default="agent", description="What the addresses begin with.")


class OrgOptions(UsualCatalog):
    """The organisation: definitions of functions, value streams and roles."""

    usual = "org"

    kind: Literal["org"] = Field(
        description="The organisation: functions/{name}.yml, value-streams/{name}.yml, roles/{name}.yml."
    )
    scheme: Scheme = Field(default="org", description="What the addresses begin with.")


class CatalogOptions(OverStore):
    """A namespace of your own."""

    kind: Literal["catalog"] = Field(description="A namespace of your own.")
    scheme: Scheme = Field(description="What the addresses begin with.")
    path: Folder = Field(default="", description="Its folder in the store; empty is the whole store.")
    files: FilePatterns = Field(
        min_length=1,
        description="Where files stand below it, one pattern or several, such as {team}/{name}.md. A variable is one "
        "folder or the name; {+path} and ** are any number of folders.",
    )
    address: Annotated[str, AfterValidator(nfc)] | None = Field(
        default=None,
        description="The path of an address, with the same variables. Not given: as files, without ending.",
    )
    model: dict[str, Any] = Field(
        default={},
        alias="schema",
        description="JSON Schema (2020-12) of the front matter. Its properties are the metadata of an entry, and "
        "those with single values are filters.",
    )

    @model_validator(mode="after")
    def _can_be_used(self) -> CatalogOptions:
        from octavo.sources.catalog.kinds import check_own  # here: few configurations have one

        if fault := check_own(self.scheme, self.path, self.files, self.model, self.address):
            raise ValueError(fault)
        return self

    @property
    def folder(self) -> str:
        return self.path

    def declared(self) -> Declaration:
        from octavo.sources.catalog.kinds import own

        return own(self.scheme, self.path, self.files, self.model, self.address)
