"""The options of `kind: memory`."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from octavo.config.sections.source import Cache, Options
from octavo.config.strict import Strict
from octavo.config.words import Flag, MimeType, Scheme, check_template, check_uri


class MemoryResource(Strict):
    text: str | None = Field(default=None, description="The content, if it is text.")
    base64: str | None = Field(default=None, description="The content, if it is not text.")
    mime_type: MimeType | None = Field(default=None, alias="mimeType", description="Media type of the content.")
    name: str | None = Field(default=None, description="What people call it.")
    description: str | None = Field(default=None, description="What it is for.")
    metadata: dict[str, Any] = Field(default={}, description="Further facts about it, given to clients.")

    @model_validator(mode="after")
    def _has_one_body(self) -> MemoryResource:
        if (self.text is None) is (self.base64 is None):
            raise ValueError("needs exactly one of text and base64")
        return self

    @field_validator("base64")
    @classmethod
    def _decodes(cls, encoded: str | None) -> str | None:
        if encoded is not None:
            try:
                base64.b64decode("".join(encoded.split()), validate=True)
            except binascii.Error:
                raise ValueError("is no base64") from None
        return encoded

    @property
    def body(self) -> str | bytes:
        if self.base64 is not None:
            return base64.b64decode("".join(self.base64.split()))
        return self.text or ""


class MemoryTemplate(Strict):
    text: str = Field(description="The content; {name} stands for the value of a variable.")
    mime_type: MimeType | None = Field(default=None, alias="mimeType", description="Media type of the content.")
    name: str | None = Field(default=None, description="What people call it.")
    description: str | None = Field(default=None, description="What it is for.")
    values: dict[str, tuple[str, ...]] = Field(
        default={}, description="The values that completion offers, by variable."
    )


def _check_memory_path(path: str) -> str:
    check_uri(f"x://{path}")
    return path


def _check_memory_template(path: str) -> str:
    check_template(f"x://{path}")
    return path


MemoryPath: TypeAlias = Annotated[str, AfterValidator(_check_memory_path)]
MemoryTemplatePath: TypeAlias = Annotated[str, AfterValidator(_check_memory_template)]


class MemoryOptions(Options):
    """Resources that stand in this file."""

    kind: Literal["memory"] = Field(description="Resources that stand in this file.")
    scheme: Scheme = Field(description="What the addresses begin with.")
    resources: dict[MemoryPath, MemoryResource] = Field(default={}, description="Resources by path.")
    templates: dict[MemoryTemplatePath, MemoryTemplate] = Field(
        default={}, description="Families of resources by path with {variables}, such as item/{id}/data."
    )
    expose: Flag = Field(default=True, description="False: only a store for other sources, with no addresses.")
    cache: Cache = Field(default_factory=Cache, description="How long copies are kept.")
