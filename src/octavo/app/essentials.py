"""The list of files that the server depends on, which no source may change.

What is loaded from a new kind of place belongs here too: the rest follows from the list.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from octavo.config.load import NAMES, Loaded, prompt_places, served_folders, state_directory
from octavo.core.clients import IN_PROJECTS, starts_programs
from octavo.core.foundation import Changeable, Essential, Foundation, nothing_changes, passes_through
from octavo.core.version import PACKAGE


def foundation_of(loaded: Loaded) -> Foundation:
    mine = (*_of_configuration(loaded), *_of_programs(loaded), *_of_python(loaded))
    return Foundation((*mine, *_of_clients(loaded)))


def writable_roots(loaded: Loaded) -> list[Path]:
    return [folder.path for source in loaded.config.sources.values() for folder in source.folders if folder.write]


def changeable(loaded: Loaded) -> Changeable:
    foundation, roots = foundation_of(loaded), writable_roots(loaded)
    if not roots:
        return nothing_changes
    return lambda path: path.is_symlink() and foundation.is_changeable(path, roots)


def among_writable(loaded: Loaded) -> list[tuple[Essential, str]]:
    """What of it lies where clients may write, or is reached by a link that does, and in which source."""
    found: dict[tuple[Path, str], Essential] = {}
    for essential in foundation_of(loaded).essentials:
        for name, options in loaded.config.sources.items():
            if any(one.write and passes_through(essential.path, one.path) for one in options.folders):
                found.setdefault((essential.path, name), essential)
    return [(essential, name) for (_, name), essential in found.items()]


def _of_configuration(loaded: Loaded) -> Iterator[Essential]:
    config = loaded.config
    if loaded.file is not None:
        yield Essential(loaded.file, "the configuration", served=True)
    # The first of these that is there is used by whoever runs octavo in the folder.
    for beside in served_folders(loaded) if loaded.file is None else [loaded.file.parent]:
        yield from (Essential(beside / name, "a configuration that would be used", served=True) for name in NAMES)
    yield Essential(state_directory(loaded), "the state", folder=True)
    yield from (Essential(home, "the state of other servers", folder=True) for home in loaded.state_homes)
    yield from (Essential(place, "prompts", folder=True) for place in prompt_places(loaded))
    yield from (Essential(place, "tools", folder=True, served=True) for place in config.tools.dirs)
    for plugin in config.plugins:
        if plugin.path is not None:
            yield Essential(plugin.path, "a plugin", folder=True, served=True)
    yield from (Essential(file, "a secret or a key set") for file in loaded.secret_files)
    if (tls := config.serve.http.tls) is not None:
        yield Essential(tls.cert, "the certificate", served=True)
        yield Essential(tls.key, "the key of the certificate")
    if (checkpoints := config.audit.checkpoints) is not None:
        yield Essential(checkpoints.path, "checkpoints of the audit log", served=True)
    for name, source in config.sources.items():
        for essential in source.record.needs(source).essentials:
            yield replace(essential, what=f"{essential.what} of {name}")


def _of_programs(loaded: Loaded) -> Iterator[Essential]:
    for name, program in loaded.config.commands.programs.items():
        scripts = (Path(word) for word in program.run if word.startswith("/") and os.path.isfile(word))
        for path in (*scripts, *program.runs):
            yield Essential(path, f"the program {name}", folder=True, served=True)


def _of_clients(loaded: Loaded) -> Iterator[Essential]:
    """Files that name programs are told by their names in every folder; here are those whose names do not tell it: that
    are reached by links, or by a variable of the environment."""
    in_roots = (root / path for root in writable_roots(loaded) for path in IN_PROJECTS)
    for file in (*loaded.client_files, *in_roots):
        if not starts_programs(Path(os.path.realpath(file)).parts):
            yield Essential(file, "what a client starts", served=True, starts=True)


def _of_python(loaded: Loaded) -> Iterator[Essential]:
    """The code of this very server, where it lies below a root: a virtual environment in the folder that is served."""
    places = {sys.prefix, sys.base_prefix, PACKAGE, *(path for path in sys.path if path)}
    roots = [Path(os.path.realpath(root)) for root in writable_roots(loaded)]
    for place in sorted(places):
        spellings = {Path(os.path.abspath(place)), Path(os.path.realpath(place))}
        if any(root in spelled.parents for root in roots for spelled in spellings):
            yield Essential(Path(os.path.abspath(place)), "the code of this server", folder=True, served=True)
