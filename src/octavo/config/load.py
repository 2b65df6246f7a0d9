"""Reads a configuration: text, shape, and what the parts mean together. All problems at once, with their lines."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from octavo.config.checks.findings import WHOLE, ConfigFinding, Remaining, Site
from octavo.config.checks.whole import check
from octavo.config.document import ConfigText
from octavo.config.model import Audit, Config, Toolset
from octavo.config.problems import ConfigError, KeyPath, Position, Problem, dotted
from octavo.config.reference import Context
from octavo.config.schema import known_keys, nearest
from octavo.config.sections.source import Kinds
from octavo.config.yaml import read_yaml
from octavo.core.clients import CLIENT_FILES, HOOKS, own_files
from octavo.core.sizes import MIB

MAX_FILE_BYTES = MIB
NAMES = ("octavo.yaml", "octavo.yml", "octavo.toml")
# Without a configuration: a home that cannot be written stops nobody's editor, and what is not kept is said.
WITHOUT = Config(audit=Audit(fail_closed=False))
FREE_FORM = frozenset({"metadata", "annotations", "parameters", "schema"})  # whose values are the operator's own


class Loaded(Struct, frozen=True):
    """A configuration that holds together, and where it came from."""

    config: Config
    kinds: Kinds  # that its sources can be of
    base: Path  # where relative paths begin; the served folder, or the first of them, without a configuration
    file: Path | None = None  # None without a configuration
    warnings: tuple[Problem, ...] = ()
    state_home: Path = Path(".")  # below which state goes without a configuration
    state_homes: tuple[Path, ...] = ()  # whatever is below these is the state of some Octavo of this user
    client_files: tuple[Path, ...] = ()  # in which clients of this user name the programs that they start
    secret_files: tuple[Path, ...] = ()
    places: Mapping[KeyPath, Position] = field(default_factory=dict[KeyPath, Position])
    toolsets: tuple[str, ...] | None = None  # that the command line chose instead
    tools: tuple[str, ...] | None = None

    def line(self, *path: str | int) -> int | None:
        """The line of a key, such as `line("policy", 2)`; None without a file."""
        place = self.places.get(path)
        return place.line if place else None


def find(directory: Path) -> Path | None:
    """The configuration of a folder, if it has one."""
    return next((directory / name for name in NAMES if (directory / name).is_file()), None)


def load(path: Path, kinds: Kinds, *, environ: Mapping[str, str] | None = None, keyless: bool = False) -> Loaded:
    """`kinds` are those that sources can be of. `keyless`: an open address without any key is a warning, for the
    commands that make one; nothing is served so. Raises ConfigError with every problem of the file."""
    path = path.absolute()
    text = read_text(path)
    return load_text(text, kinds, file=path, environ=environ, keyless=keyless)


def load_text(
    text: str, kinds: Kinds, *, file: Path, environ: Mapping[str, str] | None = None, keyless: bool = False
) -> Loaded:
    """The same for text that stands in `file`, or would; its suffix says which format it is."""
    reader = _Reader(_document(text, file), file, os.environ if environ is None else environ, kinds)
    return reader.load(keyless=keyless)


def _document(text: str, file: Path) -> ConfigText:
    if file.suffix == ".toml":
        from octavo.config.toml import read_toml  # here: most are YAML

        return read_toml(text)
    return read_yaml(text)


def zero(
    kinds: Kinds,
    *directories: Path,
    write: bool = False,
    here: bool = True,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Without a configuration: folders, everything in them but what is always hidden, no policy. `here`: they are
    served to a program of this machine, which knows them by their paths.

    Raises ConfigError when a folder cannot be served.
    """
    paths = [one.absolute() for one in directories]
    environ = os.environ if environ is None else environ
    try:
        entry = {"files": _entry(kinds, paths, here=here, write=write)}
        config = Config.model_validate({**dict(WITHOUT), "sources": entry}, context=Context(paths[0], environ, kinds))
    except ValidationError as error:  # clients know it by its path, and this path is no address
        hint = "rename it, or name it with as: in a configuration"
        wrong = {next((part for part in one["loc"] if isinstance(part, int)), 0) for one in error.errors()}
        said = "this path cannot be told as an address"
        raise ConfigError([Problem(str(paths[one]), "", said, hint) for one in sorted(wrong)]) from None
    homes, starts = state_homes(environ), client_files(environ)
    loaded = Loaded(config, kinds, paths[0], state_home=_state_home(environ), state_homes=homes, client_files=starts)
    findings = check(Site(loaded.config, state_directory(loaded), kinds, state_homes=loaded.state_homes))
    if problems := _of_folders(directories, [found for found in findings if found.fatal]):
        raise ConfigError(problems)
    return loaded


def _entry(kinds: Kinds, paths: Sequence[Path], *, here: bool, write: bool) -> Mapping[str, Any]:
    record = kinds.kind(kinds.of_folders)
    if record is None or record.of_folders is None:
        raise ConfigError([Problem("", "", "no kind of source serves folders here")])
    return record.of_folders(paths, here, write)


def _of_folders(directories: Sequence[Path], findings: Iterable[ConfigFinding]) -> list[Problem]:
    """The first problem of each folder of the command line, in words that help there: no file is there to change."""
    problems: dict[Path, Problem] = {}
    for found in findings:
        index = next((part for part in found.path if isinstance(part, int)), 0)
        message = re.sub(r"\S*roots\[(\d+)\]", lambda at: str(directories[int(at[1])]), found.message)
        hint = found.hint if message != found.message else ""  # of two folders: others are about a file
        hint = f"write an octavo.yaml and {hint}" if "as:" in hint else hint
        problems.setdefault(directories[index], Problem(str(directories[index]), "", message, hint=hint))
    return [*problems.values()]


class StateAndAudit(Struct, frozen=True):
    """What a server leaves behind: it can be looked at where what is served is not, and no secret is set."""

    state: Path
    audit: Audit


def kept_by(path: Path, kinds: Kinds, *, environ: Mapping[str, str] | None = None) -> StateAndAudit:
    """By servers of the configuration at `path`, whatever else it says. Raises ConfigError with what is wrong in that
    part of it."""
    path = path.absolute()
    document = _document(read_text(path), path).only("version", "state", "audit")
    config = _Reader(document, path, os.environ if environ is None else environ, kinds).read()
    return StateAndAudit(_state_beside(path, config), config.audit)


def kept_of(directories: Sequence[Path], *, environ: Mapping[str, str] | None = None) -> StateAndAudit:
    """By servers of these folders without a configuration, whether or not the folders are still there."""
    return StateAndAudit(_state_of(directories, _state_home(os.environ if environ is None else environ)), WITHOUT.audit)


def with_toolsets(loaded: Loaded, names: tuple[str, ...]) -> Loaded:
    """The same with other groups of built-in tools. Raises ValueError for one that does not exist."""
    known = get_args(Toolset)
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ValueError(f"there is no toolset {wrong[0]}; there are: {', '.join(known)}")
    return replace(loaded, config=loaded.config.model_copy(update={"toolsets": names}), toolsets=names)


def with_tools(loaded: Loaded, names: tuple[str, ...]) -> Loaded:
    """The same with these tools alone."""
    tools = loaded.config.tools.model_copy(update={"only": names})
    return replace(loaded, config=loaded.config.model_copy(update={"tools": tools}), tools=names)


def chosen_as(before: Loaded, loaded: Loaded) -> Loaded:
    """What the command line chose before, chosen again."""
    loaded = loaded if before.toolsets is None else with_toolsets(loaded, before.toolsets)
    return loaded if before.tools is None else with_tools(loaded, before.tools)


def state_directory(loaded: Loaded) -> Path:
    """Where state lives: `.octavo` beside the configuration, or below $XDG_STATE_HOME without one."""
    if loaded.file is not None:
        return _state_beside(loaded.file, loaded.config)
    return _state_of(served_folders(loaded), loaded.state_home)


def _state_beside(file: Path, config: Config) -> Path:
    return config.state.path or file.parent / ".octavo"


def _state_of(folders: Iterable[Path], home: Path) -> Path:
    # What was found out about some folders is not true of others, so each choice of them has its own.
    roots = sorted({os.path.realpath(folder) for folder in folders})
    return home / "octavo" / hashlib.sha256(os.fsencode("\0".join(roots))).hexdigest()[:16]


def served_folders(loaded: Loaded) -> list[Path]:
    """Those whose files are served as they lie there."""
    return [folder.path for source in loaded.config.sources.values() for folder in source.folders if folder.files]


def _state_home(environ: Mapping[str, str]) -> Path:
    given = environ.get("XDG_STATE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "state"


def state_homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where servers without a configuration and `octavo install` keep state: a client may start them with another
    XDG_STATE_HOME than a shell does."""
    homes = [_state_home({})] if _knows_home() else []
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        homes.append(_state_home(environ))
    return tuple(dict.fromkeys(home / "octavo" for home in homes))


def client_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """In which clients of this user name the programs that they start."""
    if not _knows_home():
        return ()
    own = (own_files(files, environ, Path.home()) for files in CLIENT_FILES.values())
    return (*chain(*own), *(Path.home() / hooks for hooks in HOOKS))


def _knows_home() -> bool:
    """A container may run as a user of whom nobody has heard."""
    try:
        return Path.home().is_absolute()
    except RuntimeError:
        return False


def prompt_directories(loaded: Loaded) -> tuple[Path, ...]:
    """Where prompts are loaded from. Never from a folder that is served without a configuration."""
    places = prompt_places(loaded)
    return places if loaded.config.prompts.dirs is not None else tuple(place for place in places if place.is_dir())


def prompt_places(loaded: Loaded) -> tuple[Path, ...]:
    """With the one from which prompts will be loaded once it is there."""
    if loaded.file is None:
        return ()
    dirs = loaded.config.prompts.dirs
    return (loaded.base / "prompts",) if dirs is None else dirs


def read_text(path: Path) -> str:
    """Raises ConfigError for a file that cannot be a configuration."""

    def refuse(message: str, hint: str = "", line: int | None = None) -> ConfigError:
        return ConfigError([Problem(str(path), "", message, hint, line)])

    try:
        if path.is_dir():
            raise refuse("is a folder", f"name the file, such as {path / NAMES[0]}, or run: octavo serve {path}")
        if not path.exists():
            raise refuse("there is no such file", "octavo serve DIR needs no configuration; octavo demo makes one")
        if not path.is_file():
            raise refuse("is no ordinary file")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise refuse(f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse("is not UTF-8", "save it as UTF-8", raw.count(b"\n", 0, error.start) + 1) from None


class _Reader:
    def __init__(self, document: ConfigText, file: Path, environ: Mapping[str, str], kinds: Kinds) -> None:
        self._document, self._file, self._kinds = document, file, kinds
        self._state_homes, self._client_files = state_homes(environ), client_files(environ)
        self._context = Context(file.parent, environ, kinds)
        self._problems = [self._problem(fault.path, fault.message, place=fault.place) for fault in document.faults]

    def read(self) -> Config:
        """What each part says, and nothing of what they mean together."""
        config, _ = self._validate(self._nothing_said())
        if self._problems or config is None:
            raise ConfigError(self._problems)
        return config

    def load(self, *, keyless: bool) -> Loaded:
        if self._problems and not self._document.data:
            raise ConfigError(self._problems)
        said = self._nothing_said()
        self._with_plugins()
        config, kept = self._validate(said)
        warnings: list[Problem] = []
        if config is not None:
            loaded = Loaded(config, self._kinds, self._file.parent, self._file)
            site = Site(config, state_directory(loaded), self._kinds, kept, self._state_homes, keyless)
            for found in check(site):
                problem = self._problem(found.path, found.message, found.hint)
                (self._problems if found.fatal else warnings).append(problem)
        if self._problems or config is None:
            raise ConfigError(self._problems)
        places = self._document.places
        secrets = tuple(self._context.secret_files)
        return Loaded(
            config,
            self._kinds,
            self._file.parent,
            self._file,
            tuple(warnings),
            state_homes=self._state_homes,
            client_files=self._client_files,
            secret_files=secrets,
            places=places,
        )

    def _nothing_said(self) -> set[KeyPath]:
        """Tells of keys without a value. Gives the places of which something is told."""
        said = {fault.path for fault in self._document.faults}
        nulls = [*_nulls(self._document.data, ())]
        hint = "give it one, or leave the key out"
        self._problems += (self._problem(path, "has no value", hint) for path in nulls if path not in said)
        return said.union(nulls)

    def _with_plugins(self) -> None:
        """Plugins are asked for kinds where a source is of one that does not come with Octavo. What else the file says
        counts already: who may write a folder must not choose what is loaded."""
        data = self._document.data
        sources, known = data.get("sources"), set(self._kinds.names)
        if not data.get("plugins") or not isinstance(sources, Mapping):
            return
        entries = cast("Mapping[str, Any]", sources).items()
        rest = {name: entry for name, entry in entries if not isinstance(entry, Mapping) or entry.get("kind") in known}
        if len(rest) == len(sources):
            return
        try:
            config = self._config({**data, "sources": rest})
        except ValidationError as error:
            wrong = [_path(detail["loc"]) for detail in error.errors(include_url=False)]
            try:
                config = self._config(_without({**data, "sources": rest}, wrong)[0])
            except ValidationError:
                return
        loaded = Loaded(config, self._kinds, self._file.parent, self._file)
        self._kinds, faults = self._kinds.further(loaded)
        self._context = replace(self._context, kinds=self._kinds)
        self._problems += (self._problem(("plugins", number), fault) for number, fault in faults)

    def _validate(self, said: set[KeyPath]) -> tuple[Config | None, Remaining]:
        """The configuration, or what is left of it without the parts that are wrong: so the checks
        of the whole tell their problems in the same run."""
        data = self._document.data
        try:
            return self._config(data), WHOLE
        except ValidationError as error:
            wrong = [
                (_path(detail["loc"]), cast("dict[str, Any]", detail)) for detail in error.errors(include_url=False)
            ]
        # A list whose entries are wrong is also told to be too short.
        said |= {path[:at] for path, _ in wrong for at, part in enumerate(path) if isinstance(part, int)}
        self._problems += (self._explained(path, detail) for path, detail in wrong if path not in said)
        rest, kept = _without(data, [path for path, _ in wrong])
        try:
            return self._config(rest), kept
        except ValidationError:
            return None, kept

    def _config(self, data: Mapping[str, Any]) -> Config:
        return Config.model_validate(data, context=self._context)

    def _explained(self, path: KeyPath, detail: Mapping[str, Any]) -> Problem:
        """In our words. The input itself is looked at for hints and never repeated."""
        kind, context = detail["type"], detail.get("ctx", {})
        match kind:
            case "extra_forbidden":
                near = nearest(str(path[-1]), known := known_keys(path[:-1], self._document.data, self._kinds))
                hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
                return self._problem(path, "unknown key", hint)
            case "missing" | "union_tag_not_found":
                path = (*path, "kind") if kind == "union_tag_not_found" else path
                return self._problem(path, "is required")
            case "union_tag_invalid":
                kinds = context["expected_tags"].replace("'", "")
                near = nearest(str(context["tag"]), kinds.split(", "))
                return self._problem(
                    (*path, "kind"), f"must be one of: {kinds}", f"did you mean {near}?" if near else ""
                )
            case "literal_error":
                near = nearest(
                    str(detail["input"]), context["expected"].replace(" or ", ", ").replace("'", "").split(", ")
                )
                return self._problem(path, f"must be {context['expected']}", f"did you mean {near}?" if near else "")
            case "value_error":
                return self._problem(path, str(context["error"]))
            case _:
                return self._problem(path, MESSAGES.get(kind) or detail["msg"].replace("Input should", "must"))

    def _problem(self, path: KeyPath, message: str, hint: str = "", *, place: Position | None = None) -> Problem:
        place = place or self._document.place(path)
        return Problem(str(self._file), dotted(path), message, hint, place.line, place.column)


MESSAGES: Mapping[str, str] = {
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys and values",
    "model_type": "must be a mapping of keys and values",
    "model_attributes_type": "must be a mapping of keys and values",
    "string_type": "must be text (put quotes around it)",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}


def _path(loc: tuple[int | str, ...]) -> KeyPath:
    """pydantic's location as a path in the file: without the mark of a key, and without the kind of a store."""
    path = tuple(part for part in loc if part != "[key]")
    return (*path[:1], *path[2:]) if path[0] == "store" else path


def _nulls(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        items = enumerate(cast("Iterable[Any]", value))
    elif value is None and not FREE_FORM.intersection(path[:-1]):
        yield path
    for key, item in items:
        yield from _nulls(item, (*path, key))


def _without(data: Mapping[str, Any], wrong: list[KeyPath]) -> tuple[dict[str, Any], Remaining]:
    """The data without every section, and every entry of a section, that is wrong."""
    whole = {path[0] for path in wrong if len(path) == 1}
    entries = {path[:2] for path in wrong if len(path) > 1}
    rest: dict[str, Any] = {}
    numbers: dict[str, list[int]] = {}
    for section, value in data.items():
        if section in whole:
            continue
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            rest[section] = {key: item for key, item in items if (section, key) not in entries}
        elif isinstance(value, list):
            listed = [*enumerate(cast("Iterable[Any]", value))]
            numbers[section] = [index for index, _ in listed if (section, index) not in entries]
            rest[section] = [item for index, item in listed if (section, index) not in entries]
        else:
            rest[section] = value
    return rest, Remaining(frozenset(str(path[0]) for path in wrong), numbers)
