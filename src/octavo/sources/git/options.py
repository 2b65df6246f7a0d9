"""The options of `kind: git`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from octavo.config.reference import FilePath
from octavo.config.sections.source import Options
from octavo.config.words import Extension, Flag, NamePattern
from octavo.sources._shared.encodings import Encoding
from octavo.sources._shared.git.branches import is_branch


def _check_branch(branch: str) -> str:
    if not is_branch(branch):
        raise ValueError("is no name that a branch can have; write it without refs/heads/")
    return branch


class GitOptions(Options):
    """A branch of a git repository on this machine, as a store for catalogs."""

    kind: Literal["git"] = Field(description="A branch of a git repository on this machine, as a store for catalogs.")
    path: FilePath = Field(description="A clone or a bare repository. Relative paths begin at the folder of this file.")
    branch: Annotated[str, AfterValidator(_check_branch)] | None = Field(
        default=None, description="The branch that is served, such as main. Not given: the one that HEAD names."
    )
    extensions: tuple[Extension, ...] = Field(default=(), description="Suffixes that may be served, as for files.")
    hide: tuple[NamePattern, ...] = Field(
        default=(), description="Names that are never served, with * for any part, beside the built-in ones."
    )
    encodings: tuple[Encoding, ...] = Field(
        default=(), description="Encodings that a text is likely to be in if it is not in UTF-8, as for files."
    )
    history: Literal["none", "refs", "all"] = Field(
        default="refs",
        description="Which older states ?version= of a catalog finds: none; refs: what front matter says, and tags; "
        "all: also commits and days.",
    )
    owner: Literal["self", "any"] = Field(
        default="self",
        description="Whose the repository may be: of the user that runs Octavo, or of root; or anybody's.",
    )
    expose: Flag = Field(default=False, description="Only false: a repository has no addresses of its own.")

    @property
    def scheme(self) -> str:
        return "git"

    @field_validator("expose")
    @classmethod
    def _is_a_store(cls, expose: bool) -> bool:
        if expose:
            raise ValueError("must be false: a git repository is a store; serve what is in it with catalogs over it")
        return expose
