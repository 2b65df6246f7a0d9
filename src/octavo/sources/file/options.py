"""The options of `kind: file`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from octavo.config.reference import FilePath
from octavo.config.sections.source import Cache, Options
from octavo.config.strict import Strict
from octavo.config.words import (
    Extension,
    Flag,
    MimeType,
    NamePattern,
    Scheme,
    UriTemplate,
    check_uri,
    nfc,
)
from octavo.sources._shared.encodings import Encoding


def _check_public_prefix(prefix: str) -> str:
    if not prefix.startswith("/"):
        raise ValueError("must be an absolute path such as /project")
    if prefix != "/":
        check_uri(f"file://{prefix}")
    return nfc(prefix)


class Root(Strict):
    path: FilePath = Field(description="A folder. Relative paths begin at the folder of this file.")
    public: Annotated[str, AfterValidator(_check_public_prefix)] | None = Field(
        default=None,
        alias="as",
        description="The absolute path that clients see instead of the real one, such as /project, or / alone. Not "
        "given: / and the name of the folder.",
    )

    @property
    def shown(self) -> str:
        """The absolute path under which clients see it: never one of the server, unless the operator says it."""
        return f"/{self.path.name}" if self.public is None else self.public


def _root_of_path(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


RootEntry: TypeAlias = Annotated[Root, BeforeValidator(_root_of_path, json_schema_input_type=str | Root)]


class Listing(Strict):
    under: str = Field(default="", description="List only what stands below this folder; empty is everything.")
    recursive: Flag = Field(default=True, description="Whether files in sub-folders are listed too.")

    @field_validator("under")
    @classmethod
    def _is_relative(cls, under: str) -> str:
        folder = under.strip("/")
        if under.startswith("/"):
            raise ValueError("must be relative to the roots")
        if folder:
            check_uri(f"x://{folder}")
        return nfc(folder)


class FileTemplate(Strict):
    uri: UriTemplate = Field(description="A family of addresses, such as file:///logs/{date}.log.")
    name: str = Field(min_length=1, description="What people call it.")
    description: str | None = Field(default=None, description="What it is for.")
    mime_type: MimeType | None = Field(default=None, alias="mimeType", description="Media type of what it gives.")
    parameters: dict[str, dict[str, Any]] = Field(default={}, description="A JSON Schema for each variable.")


class FileOptions(Options):
    """Folders of this machine."""

    kind: Literal["file"] = Field(description="Folders of this machine.")
    roots: tuple[RootEntry, ...] = Field(
        min_length=1,
        description="Folders that may be served, the first that has a file wins. Nothing outside them ever is.",
    )
    extensions: tuple[Extension, ...] = Field(
        default=(),
        description="Suffixes that may be served, with or without the dot, in any case; a name such as Makefile; "
        'or "*" for all. Empty is a set of harmless text, document and image types.',
    )
    expose: Flag = Field(default=True, description="False: only a store for other sources, with no addresses.")
    scheme: Scheme = Field(default="file", description="What the addresses begin with.")
    symlinks: Literal["inside", "refuse"] = Field(
        default="inside", description="Follow symbolic links that stay inside the root, or none at all."
    )
    hard_links: Literal["auto", "refuse", "allow"] = Field(
        default="auto",
        description="Files with several names: auto refuses them with write: true and in folders that other users can "
        "write.",
    )
    listing: Listing = Field(
        default_factory=Listing, alias="list", description="What resources/list shows. It does not limit reading."
    )
    uris: Literal["absolute", "relative"] = Field(
        default="absolute",
        description="Which spelling of a file:// address lists give; both are always understood. Most clients can read "
        "back the absolute one alone.",
    )
    templates: tuple[FileTemplate, ...] = Field(
        default=(), description="Families of addresses that clients can fill in."
    )
    hide: tuple[NamePattern, ...] = Field(
        default=(), description="Names that are never served, with * for any part, beside the built-in ones."
    )
    encodings: tuple[Encoding, ...] = Field(
        default=(),
        description="Encodings that a text is likely to be in if it is not in UTF-8, the likeliest first. They are "
        "tried before the usual ones; each only if the result looks like its language.",
    )
    history: Literal["none", "refs", "all"] = Field(
        default="none",
        description="Which older states ?version= of a catalog finds, where the root lies in a git work tree: none; "
        "refs: what front matter says, and tags; all: also commits and days.",
    )
    write: Flag = Field(default=False, description="Whether files may be created, changed, moved and deleted.")
    cache: Cache = Field(default_factory=Cache, description="How long copies are kept.")
