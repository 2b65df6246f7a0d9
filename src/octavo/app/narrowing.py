"""What a client asks to see less of: `server/config`, and the roots of handshake-era clients.

The operator's configuration is the ceiling. A client may narrow it, never widen it: what lies outside is
Forbidden and changes nothing. Addresses stay what they are, because the operator's rules are written for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from msgspec import Struct

from octavo.config.load import Loaded, prompt_directories
from octavo.config.sections.source import Options
from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.kinds import SourceFolder
from octavo.core.ref import Ref
from octavo.sources._shared.fs.mime import SAFE_EXTENSIONS
from octavo.sources._shared.fs.names import Rules

KEYS = ("allowedDirectories", "allowedExtensions", "promptDirectory")
MAX_ENTRIES = 100


class Narrowing(Struct, frozen=True):
    """None: not narrowed. Folders are real paths, and may since have left the ceiling: then they show nothing."""

    folders: tuple[Path, ...] | None = None
    extensions: tuple[str, ...] | None = None
    prompts: Path | None = None
    prompts_as: str = ""  # in the client's own words
    relative: bool = False  # asked for by a client that knows files by their paths below its folders

    def within(self, root: Path) -> tuple[tuple[str, ...], ...] | None:
        """The names below a root that are left of it; None for all of it."""
        if self.folders is None:
            return None
        real = Path(os.path.realpath(root))
        if any(real.is_relative_to(folder) for folder in self.folders):
            return None
        below = (folder.relative_to(real).parts for folder in self.folders if folder.is_relative_to(real))
        return tuple(names for parts in below if (names := _names(parts)) is not None)

    def prompt_directories(self, loaded: Loaded) -> tuple[Path, ...]:
        every = prompt_directories(loaded)
        if self.prompts is None:
            return every
        return (self.prompts,) if any(_lies_in(self.prompts, folder) for folder in every) else ()


WHOLE = Narrowing()


def asked_for(params: Mapping[str, Any], ceiling: Loaded) -> Narrowing:
    """Raises InvalidParams for what is no such request, and Forbidden for what lies outside the ceiling."""
    unknown = [key for key in params if key not in KEYS]
    if unknown:
        raise InvalidParams(f"Unknown parameter {unknown[0][:80]!r}; there are: {', '.join(KEYS)}")
    directories, extensions = _texts(params, "allowedDirectories"), _texts(params, "allowedExtensions")
    prompts = params.get("promptDirectory")
    if prompts is not None and not isinstance(prompts, str):
        raise InvalidParams("promptDirectory is text: a folder")
    return Narrowing(
        folders=None if directories is None else tuple(dict.fromkeys(_folders(directories, ceiling))),
        extensions=None if extensions is None or "*" in extensions else _extensions(extensions, ceiling),
        prompts=None if prompts is None else _prompts(prompts, ceiling),
        prompts_as=prompts or "",
        relative=True,
    )


def by_roots(uris: Iterable[str], ceiling: Loaded) -> Narrowing | None:
    """The part of the ceiling that a client's own roots leave. None where they have nothing to do with it: a client
    that works elsewhere was given this server on purpose."""
    paths = [Path(os.path.realpath(path)) for uri in uris if (path := _path(uri)) and path.startswith("/")]
    roots = [Path(os.path.realpath(root.path)) for root in _roots(ceiling)]
    folders = [path for path in paths for root in roots if path.is_relative_to(root) or root.is_relative_to(path)]
    return Narrowing(folders=tuple(dict.fromkeys(folders))) if folders else None


def effective(loaded: Loaded, narrowing: Narrowing) -> dict[str, Any]:
    """What is left, as clients may know it: folders by their public paths."""
    exposed = [source for source in _file_sources(loaded) if source.expose]
    told: dict[str, Any] = {
        "allowedDirectories": public_folders(exposed, narrowing),
        "allowedExtensions": sorted(narrowing.extensions or _every_extension(exposed)),
    }
    if narrowing.prompts is not None:
        told["promptDirectory"] = narrowing.prompts_as
    return told


def public_folders(sources: Iterable[Options], narrowing: Narrowing) -> list[str]:
    """As clients know them, of what they can narrow."""
    folders: list[str] = []
    for root in (root for source in sources for root in source.folders if source.record.extensions is not None):
        shown, within = root.shown, narrowing.within(root.path)
        folders += [shown] if within is None else ("/".join((shown.rstrip("/"), *names)) for names in within)
    return folders


def _texts(params: Mapping[str, Any], key: str) -> list[str] | None:
    value = params.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise InvalidParams(f"{key} is a list of texts")
    texts = cast("list[str]", value)
    if not texts:
        raise InvalidParams(f"{key} is empty, which would leave nothing; leave the key out to keep what is served")
    if len(texts) > MAX_ENTRIES:
        raise InvalidParams(f"{key} has more than {MAX_ENTRIES} entries")
    return texts


def _folders(directories: Sequence[str], ceiling: Loaded) -> Iterator[Path]:
    roots = _roots(ceiling)
    for text in directories:
        path = _path(text)
        found = [] if path is None else [folder for root in roots if (folder := _inside(path, root)) is not None]
        if not found:
            raise Forbidden(
                f"Outside what this server serves: {text[:200]}; a client can narrow that and not widen it",
                directory=text[:200],
            )
        yield from found


def _inside(path: str, root: SourceFolder) -> Path | None:
    """The real folder that the path means in this root: by its public path, by its real one, or relative to it."""
    real = Path(os.path.realpath(root.path))
    if not path.startswith("/"):
        candidates = [real / path]
    elif Path(path).is_relative_to(root.shown):
        candidates = [real / Path(path).relative_to(root.shown), Path(path)]
    else:
        candidates = [Path(path)]
    folders = (Path(os.path.realpath(candidate)) for candidate in candidates)
    return next((folder for folder in folders if folder.is_relative_to(real)), None)


def _path(text: str) -> str | None:
    """A path, or one that is written as a file:// URI; relative paths stay relative. None for what is neither."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() != "file":
        return None
    if separator:
        text = unquote(rest.removeprefix("localhost") if rest.startswith("localhost/") else rest) or "."
    return None if "\x00" in text else text


def _extensions(asked: Sequence[str], ceiling: Loaded) -> tuple[str, ...]:
    served = [Rules(extensions, ()) for extensions in _extensions_of(_file_sources(ceiling))]
    for extension in asked:
        bare = extension.removeprefix(".")
        if not any(rules.allows(f"x.{bare}") or rules.allows(bare) for rules in served):
            raise Forbidden(
                f"Not served here: {extension[:80]}; a client can narrow what is served and not widen it",
                extension=extension[:80],
            )
    return tuple(dict.fromkeys(extension.lower() for extension in asked))


def _prompts(asked: str, ceiling: Loaded) -> Path:
    path, every = _path(asked), prompt_directories(ceiling)
    # An absolute path stays itself when it is joined to another.
    for candidate in () if path is None else (folder / path for folder in every):
        if any(_lies_in(candidate, folder) for folder in every):
            return Path(os.path.realpath(candidate))
    raise Forbidden(
        f"Outside the prompt folders of this server: {asked[:200]}; the operator names them in prompts.dirs",
        directory=asked[:200],
    )


def _lies_in(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _names(parts: Sequence[str]) -> tuple[str, ...] | None:
    """As addresses write them; None for what no address can say, and so nothing below it is served."""
    try:
        return Ref.of("file", parts).segments
    except OctavoError:
        return None


def _file_sources(loaded: Loaded) -> list[Options]:
    return [source for source in loaded.config.sources.values() if source.record.extensions is not None]


def _extensions_of(sources: Iterable[Options]) -> Iterator[Sequence[str]]:
    for source in sources:
        if source.record.extensions is not None:
            yield source.record.extensions(source)


def _roots(loaded: Loaded) -> list[SourceFolder]:
    return [root for source in _file_sources(loaded) for root in source.folders]


def _every_extension(sources: Iterable[Options]) -> set[str]:
    listed = [extensions or SAFE_EXTENSIONS for extensions in _extensions_of(sources)]
    return {one if one == "*" else f".{one.removeprefix('.').lower()}" for extensions in listed for one in extensions}
