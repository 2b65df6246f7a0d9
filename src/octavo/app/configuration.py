"""Configurations, read with the kinds of sources that there are: those of Octavo, and those of the plugins named."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo.config import load as reading
from octavo.config.load import Loaded, StateAndAudit
from octavo.config.sections.source import Kinds, Options
from octavo.core.kinds import SourceKind, faults
from octavo.sources.kinds import Registry


class BuiltInKinds(Registry):
    """The kinds that come with Octavo. Plugins are loaded when a source is of a kind that is none of these."""

    def redactions(self) -> Collection[str]:
        from octavo.pipeline.redact.rules.book import rules_for
        from octavo.pipeline.redact.rules.personal import GROUPS

        return {rule.name for rule in rules_for(GROUPS)}

    def further(self, loaded: Loaded) -> tuple[Kinds, Sequence[tuple[int, str]]]:
        from octavo.app.essentials import changeable
        from octavo.tools.plugins import PluginError, load_plugin

        brought, wrong = dict[str, SourceKind[Any]](), list[tuple[int, str]]()
        by_clients = changeable(loaded)
        for number, one in enumerate(loaded.config.plugins):
            where = one.path or one.module or one.entry_point or ""
            try:
                plugin = load_plugin(where, entry_point=bool(one.entry_point), changeable=by_clients)
            except PluginError as error:
                wrong.append((number, str(error)))
                continue
            for kind in plugin.kinds:
                fault = next(_faults(kind, (*self.names, *brought)), "")
                if fault:
                    wrong.append((number, f"its kind {kind.name!r:.80} {fault}"))
                else:
                    brought[kind.name] = kind
        return BuiltInKinds(brought), wrong


def _faults(kind: SourceKind[Any], taken: Sequence[str]) -> Iterator[str]:
    """What keeps a kind of a plugin from being used."""
    if kind.name in taken:
        yield "is there already: choose another name"
    if not isinstance(kind.options, type) or not issubclass(kind.options, Options):
        yield "has options that are no model over octavo.SourceOptions"
        return
    missing = next((key for key in ("kind", "scheme", "expose") if not hasattr(kind.options, key)), "")
    missing = missing if missing not in kind.options.model_fields else ""
    if missing or "kind" not in kind.options.model_fields:
        yield f"has options without {missing or 'kind'}: add the key"
    elif fault := faults(kind):
        yield fault
    try:
        kind.options.model_json_schema()
    except Exception as error:  # foreign code, and all that pydantic says of it
        yield f"has options of which no schema can be made: {type(error).__name__}"


KINDS = BuiltInKinds()


def load(path: Path, *, environ: Mapping[str, str] | None = None, keyless: bool = False) -> Loaded:
    """Raises ConfigError with every problem of the file; `keyless`: but for that no agent has a key."""
    return reading.load(path, KINDS, environ=environ, keyless=keyless)


def load_text(text: str, *, file: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    """The same for text that stands in `file`, or would; its suffix says which format it is."""
    return reading.load_text(text, KINDS, file=file, environ=environ)


def kept_by(path: Path) -> StateAndAudit:
    """Raises ConfigError with what is wrong in the part of the configuration that says it."""
    return reading.kept_by(path, KINDS)


def zero(
    *directories: Path, write: bool = False, here: bool = True, environ: Mapping[str, str] | None = None
) -> Loaded:
    """Without a configuration. Raises ConfigError when a folder cannot be served."""
    return reading.zero(KINDS, *directories, write=write, here=here, environ=environ)
