"""What the options of every kind of source have in common, and how an entry of `sources` finds those of its kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, cast

from pydantic import Field, PlainSerializer, PrivateAttr, ValidationInfo, WrapValidator
from pydantic_core import PydanticCustomError, PydanticKnownError

from octavo.config.reference import Context
from octavo.config.strict import Strict, written
from octavo.config.units import Time, parse_time
from octavo.config.words import Flag, Scheme
from octavo.core.kinds import Over, SourceFolder, SourceKind

if TYPE_CHECKING:
    from octavo.config.load import Loaded


class Kinds(Protocol):
    """What whoever loads a configuration knows of the house: the kinds of sources, each loaded when its name is asked
    for, and what else a configuration names."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def of_folders(self) -> str:
        """The kind that serves folders where there is no configuration."""
        ...

    def kind(self, name: str) -> SourceKind[Any] | None: ...
    def is_foreign(self, name: str) -> bool:
        """Whether a plugin brings it."""
        ...

    def redactions(self) -> Collection[str]:
        """The names of the rules that find secrets and personal data."""
        ...

    def further(self, loaded: Loaded) -> tuple[Kinds, Sequence[tuple[int, str]]]:
        """With those that plugins of a configuration bring, of which the sources of unknown kinds were left out; and
        what is wrong with which plugin, by its number."""
        ...


class Cache(Strict):
    ttl: Time = written("60s", parse_time, "How long a copy may be served, such as 60 or 5m; 0 never keeps one.")


class Options(Strict):
    """The base of the options of all kinds. Each has `kind`, `scheme` and `expose`, as keys or as what follows from
    others."""

    _record: SourceKind[Any] = PrivateAttr()

    if TYPE_CHECKING:

        @property
        def kind(self) -> str: ...
        @property
        def scheme(self) -> str: ...
        @property
        def expose(self) -> bool: ...

    @property
    def record(self) -> SourceKind[Any]:
        """What is known of their kind."""
        return self._record

    @property
    def ttl(self) -> float:
        """How long a copy may be served; 0 without the key `cache`."""
        cache = getattr(self, "cache", None)
        return cache.ttl if isinstance(cache, Cache) else 0.0

    @property
    def can(self) -> frozenset[str]:
        """What a source with these options can do beyond list, stat and read."""
        return self._record.can(self)

    @property
    def folders(self) -> Sequence[SourceFolder]:
        return self._record.needs(self).folders

    @property
    def over(self) -> Over | None:
        return self._record.over(self)


class SourceOptions(Options):
    """To begin a kind of one's own with: add the key `kind`, a Literal of its name, and a `scheme` with a default."""

    scheme: Scheme = Field(description="What the addresses begin with.")
    expose: Flag = Field(default=True, description="False: only a store for other sources, with no addresses.")
    cache: Cache = Field(default_factory=Cache, description="How long copies are kept.")


def _by_kind(value: object, ready: Callable[[object], Options], info: ValidationInfo) -> Options:
    """`ready` passes on options that are made already, and refuses whatever else is no mapping."""
    if not isinstance(value, Mapping):
        return ready(value)
    entry = cast("Mapping[str, object]", value)
    if "kind" not in entry:
        raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
    if not isinstance(info.context, Context) or info.context.kinds is None:
        raise PydanticCustomError("no_kinds", "no kinds of sources are known here")
    kinds, name = info.context.kinds, entry["kind"]
    record = kinds.kind(name) if isinstance(name, str) else None
    if record is None:
        known = ", ".join(f"'{one}'" for one in kinds.names)
        told = {"discriminator": "'kind'", "tag": str(name), "expected_tags": known}
        raise PydanticKnownError("union_tag_invalid", told)
    options = cast("Options", record.options.model_validate(value, context=info.context))
    options._record = record
    return options


# The schema has one model for each kind: see `octavo.config.schema`.
AnyOptions: TypeAlias = Annotated[
    Options,
    WrapValidator(_by_kind, json_schema_input_type=dict[str, Any]),
    PlainSerializer(lambda options: options.model_dump(mode="json"), return_type=dict[str, Any]),
]
