"""What a source is given when it is opened, and whether a reload would give it the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from octavo.app.essentials import foundation_of
from octavo.config.load import Loaded
from octavo.config.model import ResourceWords
from octavo.core.errors import SourceUnavailable
from octavo.core.foundation import Essential, Foundation
from octavo.core.ports.source import Source
from octavo.core.values import Template

if TYPE_CHECKING:
    from octavo.app.narrowing import Narrowing
    from octavo.stores.state import StateDirectory

T = TypeVar("T")


class SourceHost:
    """Of one source. It remembers what it was asked for: nothing else of a reload concerns that source."""

    def __init__(
        self,
        name: str,
        loaded: Loaded,
        state: StateDirectory,
        narrowing: Narrowing,
        stores: Mapping[str, Source] = MappingProxyType({}),
        together: dict[Callable[[], Any], Any] | None = None,
    ) -> None:
        self.name = name
        self._loaded, self._options = loaded, loaded.config.sources[name]
        self._state, self._narrowing, self._stores = state, narrowing, stores
        self._together = {} if together is None else together
        self._given: dict[tuple[str, object], object] = {}

    def gives_the_same(self, other: SourceHost) -> bool:
        """As the other has given."""
        return all(self._make(what, about) == given for (what, about), given in other._given.items())

    @property
    def secret(self) -> bytes:
        return cast("bytes", self._give("secret"))

    @property
    def seconds(self) -> float:
        return cast("float", self._give("seconds"))

    @property
    def templates(self) -> Sequence[Template]:
        return cast("Sequence[Template]", self._give("templates"))

    @property
    def kept(self) -> Sequence[Essential]:
        return cast("Sequence[Essential]", self._give("kept"))

    @property
    def foundation(self) -> Foundation:
        return cast("Foundation", self._give("foundation"))

    @property
    def extensions(self) -> Sequence[str] | None:
        return cast("Sequence[str] | None", self._give("extensions"))

    @property
    def relative(self) -> bool:
        return cast("bool", self._give("relative"))

    @property
    def alone(self) -> bool:
        return cast("bool", self._give("alone"))

    @property
    def ruled(self) -> bool:
        return cast("bool", self._give("ruled"))

    @property
    def asked(self) -> Sequence[str]:
        return cast("Sequence[str]", self._give("asked"))

    def within(self, folder: Path) -> tuple[tuple[str, ...], ...] | None:
        return cast("tuple[tuple[str, ...], ...] | None", self._give("within", folder))

    def folder(self, purpose: str) -> Path | None:
        return cast("Path | None", self._give("folder", purpose))

    def store(self) -> Source:
        over = self._options.over
        if over is None or over.store not in self._stores:
            raise SourceUnavailable(f"The source {self.name} stands on no store", source=self.name)
        return self._stores[over.store]

    def together(self, make: Callable[[], T]) -> T:
        if make not in self._together:
            self._together[make] = make()
        return cast("T", self._together[make])

    def _give(self, what: str, about: object = None) -> object:
        given = self._make(what, about)
        self._given[what, about] = given
        return given

    def _make(self, what: str, about: object) -> object:
        config = self._loaded.config
        match what:
            case "secret":
                return self._state.key("etag")
            case "seconds":
                return config.limits.time
            case "templates":
                return tuple(template_of(one) for one in config.resources if self._describes(one))
            case "kept":
                return tuple(one for one in foundation_of(self._loaded).essentials if not one.served)
            case "foundation":
                return foundation_of(self._loaded)
            case "extensions":
                return self._narrowing.extensions
            case "relative":
                return self._narrowing.relative
            case "alone":
                return self._is_alone()
            case "ruled":
                return self._is_ruled()
            case "asked":
                return self._asked_by_rules()
            case "within":
                return self._narrowing.within(cast("Path", about))
            case _:
                return self._state.path / cast("str", about) / self.name if self._state.path else None

    def _is_alone(self) -> bool:
        """Whether no other catalog stands on its store."""
        over = self._options.over
        stores = [one.over.store for one in self._loaded.config.sources.values() if one.over is not None]
        return over is not None and stores.count(over.store) == 1

    def _asked_by_rules(self) -> tuple[str, ...]:
        """The keys of metadata on which a rule depends."""
        rules = self._loaded.config.policy
        demands = (part for rule in rules for part in (rule.when, rule.unless) if part is not None)
        return tuple(dict.fromkeys(key for part in demands for key in part.metadata))

    def _is_ruled(self) -> bool:
        """Whether a rule or label names more of its scheme than the whole."""
        config = self._loaded.config
        said = chain((rule.what for rule in config.policy), (label.what for label in config.labels))
        patterns = (pattern.partition("://") for one in said for pattern in one)
        return any(scheme == self._options.scheme and rest not in ("", "*", "**") for scheme, _, rest in patterns)

    def _describes(self, words: ResourceWords) -> bool:
        return words.is_template and words.uri.partition("://")[0].lower() == self._options.scheme


def template_of(words: ResourceWords) -> Template:
    return Template(
        uri_template=words.uri,
        name=words.name or words.uri,
        description=words.description,
        mime_type=words.mime_type,
        parameters={"type": "object", "properties": dict(words.parameters)} if words.parameters else {},
    )
