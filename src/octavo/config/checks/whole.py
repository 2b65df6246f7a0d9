"""What only shows when the parts of a configuration, and the machine, are seen together.

A problem keeps a configuration from loading; a warning is told and loads.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from octavo.config.checks.findings import LOCAL, ConfigFinding, Site
from octavo.config.checks.patterns import never
from octavo.config.model import Config, Rule
from octavo.config.problems import KeyPath, dotted
from octavo.config.sections.stores import Postgres
from octavo.core.foundation import folded, passes_through
from octavo.core.kinds import Over
from octavo.core.ports.stores import STORE_FILE

MIN_KEY_CHARACTERS = 16
HOLD_KEYS = (STORE_FILE, "keys.json")  # of the state folder; the latter is that of earlier versions


def check(site: Site) -> list[ConfigFinding]:
    """Everything that is wrong or odd, in no particular order."""
    return [finding for look in LOOKS for finding in look(site)]


def _roots_exist(site: Site) -> Iterator[ConfigFinding]:
    for name, source in site.config.sources.items():
        for folder in source.folders:
            if fault := _not_a_folder(folder.path):
                yield ConfigFinding(
                    ("sources", name, *folder.key), fault, "paths are relative to the configuration file"
                )


def _kinds_can_be_read(site: Site) -> Iterator[ConfigFinding]:
    for name, source in site.config.sources.items():
        record = source.record
        if record.module and not _installed(record.module):
            by = f"install Octavo with its extra {record.extra}: docs/install.md"
            hint = by if record.extra else f"install {record.module} beside octavo"
            message = f"kind: {record.name} needs {record.module}, which is not installed"
            yield ConfigFinding(("sources", name, "kind"), message, hint)


def _options_fit(site: Site) -> Iterator[ConfigFinding]:
    """What the kinds themselves have to say, and options for what a kind cannot do."""
    for name, source in site.config.sources.items():
        for key, message, hint, fatal in source.record.checks(source):
            yield ConfigFinding(("sources", name, *key), message, hint, fatal)
        if getattr(source, "write", False) and "write" not in source.can:
            message = f"kind: {source.kind} cannot be written"
            yield ConfigFinding(("sources", name, "write"), message, "leave it out")


def _roots_lie_apart(site: Site) -> Iterator[ConfigFinding]:
    """Two ways to one file would let the rules of one address be passed by the other."""
    seen: list[tuple[KeyPath, str, bool, Path]] = []
    told: set[tuple[KeyPath, KeyPath]] = set()
    roots = [(path, folder) for path, folder in _roots(site.config) if not _not_a_folder(folder)]
    for path, folder in (*roots, *_catalog_folders(site.config)):
        name, real = str(path[1]), Path(os.path.realpath(folder))
        exposed = site.config.sources[name].expose
        for other_path, other_name, other_exposed, other in seen:
            if name != other_name and not (exposed and other_exposed):
                continue
            if _store_of(site.config, name) in (other_name, _store_of(site.config, other_name) or other_name):
                continue  # told of the catalogs themselves
            if _left_out(site.config, name, real, other) or _left_out(site.config, other_name, other, real):
                continue
            if name != other_name and _never_both(site.config, (name, real), (other_name, other)):
                continue
            relation = _relation(real, other)
            if relation and (path, other_path) not in told:
                told.add((path, other_path))
                hint = "keep one of the sources at expose: false"
                if name == other_name:
                    hint = "serve the outer folder once"
                elif looked := next((one for one in (name, other_name) if _looked(site.config, one)), ""):
                    hint = f"the folder of {looked} is found by looking and could be this one: write its path:"
                yield ConfigFinding(
                    path, f"{relation} {dotted(other_path)}: the same files would have two addresses", hint
                )
        seen.append((path, name, exposed, real))


def _schemes_are_unique(site: Site) -> Iterator[ConfigFinding]:
    owners: dict[str, str] = {}
    for name, source in site.config.sources.items():
        if not source.expose:
            continue
        if owner := owners.get(source.scheme):
            yield ConfigFinding(
                ("sources", name),
                f"{source.scheme}:// already belongs to the source {owner}",
                "give this one a scheme: of its own, or merge the two into one source",
            )
        owners.setdefault(source.scheme, name)


def _stores_are_stores(site: Site) -> Iterator[ConfigFinding]:
    """A file under two addresses would let the rules of one be passed by the other."""
    for name, over in _over_stores(site.config):
        path: KeyPath = ("sources", name, "store")
        store = site.config.sources.get(over.store)
        if store is None:
            if "sources" not in site.kept.broken:
                stores = [other for other, one in site.config.sources.items() if one.over is None]
                hint = f"there is {', '.join(stores)}" if stores else "add the source with the files, expose: false"
                yield ConfigFinding(path, f"there is no source {over.store}", hint)
        elif store.over is not None:
            yield ConfigFinding(
                path, f"{over.store} is a catalog itself; a store is a source that has files of its own"
            )
        elif store.expose:
            message = f"{over.store} is exposed by itself: the same files would have two addresses"
            yield ConfigFinding(path, message, f"give {over.store} expose: false")


def _catalogs_lie_apart(site: Site) -> Iterator[ConfigFinding]:
    seen: list[tuple[str, Over]] = []
    for name, source in _over_stores(site.config):
        for other_name, other in seen:
            around, inner = sorted((source, other), key=lambda one: len(_parts(one.folder)))
            below = _parts(inner.folder)[len(_parts(around.folder)) :]
            if source.store != other.store or _parts(inner.folder) != _parts(around.folder) + below:
                continue
            apart = (_parts(one) for one in around.without)
            if not below or not any(below[: len(one)] == one for one in apart):
                inside = "/".join(below)
                hint = "give each catalog a folder of its own"
                if below:
                    hint = f"give each catalog a folder of its own, or write without: [{inside}] for the outer one"
                yield ConfigFinding(
                    ("sources", name, *source.key),
                    f"is the same folder as that of {other_name}, inside it or around it: "
                    "the same files would have two addresses",
                    hint,
                )
        seen.append((name, source))


def _resources_are_served(site: Site) -> Iterator[ConfigFinding]:
    if "sources" in site.kept.broken or site.config.plugins:  # a plugin may bring sources of its own
        return
    schemes = _exposed_schemes(site.config)
    for index, words in enumerate(site.config.resources):
        if _scheme(words.uri) not in schemes:
            yield ConfigFinding(
                ("resources", site.number("resources", index), "uri"),
                f"no exposed source serves {_scheme(words.uri)}://",
                _offer(schemes),
            )


def _rules_name_known_things(site: Site) -> Iterator[ConfigFinding]:
    for index, rule in enumerate(site.config.policy):
        path: KeyPath = ("policy", site.number("policy", index))
        for who in (who for who in rule.who if not site.somebody_is(who)):
            role = who.removeprefix("role:") if who.startswith("role:") else ""
            said = f"no agent has the role {role}" if role else f"there is no agent {who}"
            yield ConfigFinding((*path, "who"), said, fatal=False)
        for pattern in rule.what if "sources" not in site.kept.broken else ():
            why = never(pattern, site.config)
            if why is not None:
                said = f"{pattern} {why.why}"
                yield ConfigFinding((*path, "what"), said, why.hint, fatal=rule.effect == "deny" and why.sure)


def _rules_differ(site: Site) -> Iterator[ConfigFinding]:
    seen: dict[tuple[object, ...], int] = {}
    for index, rule in enumerate(site.config.policy):
        number = site.number("policy", index)
        first = seen.setdefault(_meaning(rule), number)
        if first != number:
            yield ConfigFinding(("policy", number), f"says the same as policy[{first}]", fatal=False)


def _redaction_names_known_things(site: Site) -> Iterator[ConfigFinding]:
    wanted = site.config.redact
    for name in wanted.sources:
        if name not in site.config.sources and "sources" not in site.kept.broken:
            yield ConfigFinding(
                ("redact", "sources", name), "there is no such source", "use a name that stands under sources"
            )
        elif wanted.sources[name] is None:
            said = "neither secrets nor personal data are hidden in what this source gives"
            yield ConfigFinding(("redact", "sources", name), said, "right for public content alone", fatal=False)
    if wanted.skip:
        known = site.kinds.redactions()
        for index, name in enumerate(wanted.skip):
            if name not in known:
                yield ConfigFinding(
                    ("redact", "skip", index), f"there is no rule {name}", "docs/redaction.md lists the rules"
                )


def _limits_can_be_kept(site: Site) -> Iterator[ConfigFinding]:
    limits = site.config.limits
    if 2 * limits.in_flight > limits.total:
        hint = f"nobody gets more than half of it; say limits.total: {2 * limits.in_flight}"
        yield ConfigFinding(
            ("limits", "in_flight"), f"is more than limits.total ({limits.total}) leaves", hint, fatal=False
        )
    for name in limits.sources:
        if name not in site.config.sources and "sources" not in site.kept.broken:
            yield ConfigFinding(
                ("limits", "sources", name), "there is no such source", "use a name that stands under sources"
            )
    for who in limits.principals:
        if who in ("*", "local") or who.startswith("role:") or who in site.config.agents or ":" in who:
            continue
        yield ConfigFinding(
            ("limits", "principals", who), "there is no such agent", "nobody has these limits", fatal=False
        )


def _keys_differ(site: Site) -> Iterator[ConfigFinding]:
    owners: dict[str, str] = {}
    for name, agent in site.config.agents.items():
        digest = agent.digest
        if digest is None:
            continue
        field = "key" if agent.key is not None else "key_sha256"
        if owner := owners.get(digest):
            yield ConfigFinding(("agents", name, field), f"is the key of {owner}", "every agent needs a key of its own")
        owners.setdefault(digest, name)
        if agent.key is not None and len(agent.key.get_secret_value()) < MIN_KEY_CHARACTERS:
            yield ConfigFinding(
                ("agents", name, "key"),
                f"is shorter than {MIN_KEY_CHARACTERS} characters and could be guessed",
                "make one with: openssl rand -base64 32",
                fatal=False,
            )


def _http_is_guarded(site: Site) -> Iterator[ConfigFinding]:
    bind = site.config.serve.http.bind
    if "agents" in site.kept.broken:
        return
    if not bind.loopback and not _may_prove_callers(site.config, site.state):
        yield ConfigFinding(
            ("serve", "http", "bind"),
            f"other machines can reach {bind}, but no agent has a key",
            "give an agent a key with octavo keys new AGENT, or bind 127.0.0.1",
            fatal=not site.keyless,
        )


def _may_prove_callers(config: Config, state: Path) -> bool:
    """Whether somebody may be able to prove over HTTP who it is: by a token, a key of the configuration or one that is
    in the store, which is not opened here."""
    configured = any(agent.digest for agent in config.agents.values())
    stored = isinstance(config.store, Postgres) or any((state / name).exists() for name in HOLD_KEYS)
    return configured or config.serve.http.oauth is not None or stored


def _callers_are_agents(site: Site) -> Iterator[ConfigFinding]:
    if site.kept.broken.intersection(("agents", "serve")):
        return
    http, agents = site.config.serve.http, site.config.agents
    known = f"known agents: {', '.join(agents)}" if agents else "no agent is configured"
    for index, peer in enumerate(http.peers):
        if peer.agent not in (*agents, LOCAL):
            yield ConfigFinding(("serve", "http", "peers", index, "agent"), f"there is no agent {peer.agent}", known)
        if any(other.uid == peer.uid for other in http.peers[:index]):
            yield ConfigFinding(("serve", "http", "peers", index, "uid"), "is there twice")
    if http.peers and http.bind.socket is None:
        yield ConfigFinding(("serve", "http", "peers"), "is about unix sockets, and bind is none", fatal=False)
    seen: dict[str, str] = {}
    for name, issuer in (http.oauth.issuers if http.oauth is not None else {}).items():
        path: KeyPath = ("serve", "http", "oauth", "issuers", name)
        if name == "role" or ":" in name:
            yield ConfigFinding(path, "cannot be the name of an issuer", "choose another, without a colon")
        if first := seen.get(issuer.issuer):
            yield ConfigFinding((*path, "issuer"), f"is that of {first}")
        seen.setdefault(issuer.issuer, name)
        for claim, agent in issuer.agents.items():
            if agent not in agents:
                yield ConfigFinding((*path, "agents", claim), f"there is no agent {agent}", known)
        for agent in agents:
            if agent.startswith(f"{name}:"):
                yield ConfigFinding(
                    ("agents", agent), f"could be taken for a subject of the issuer {name}", "rename one"
                )


def _keys_travel_hidden(site: Site) -> Iterator[ConfigFinding]:
    http = site.config.serve.http
    if not http.bind.loopback and http.tls is None and not http.trusted_proxies:
        yield ConfigFinding(
            ("serve", "http", "bind"),
            f"{http.bind} is plain HTTP, so that keys can be read on their way",
            "give serve.http.tls, or let a proxy of serve.http.trusted_proxies do it",
            fatal=False,
        )


def _named_files_exist(site: Site) -> Iterator[ConfigFinding]:
    tls = site.config.serve.http.tls
    for key, file in (("cert", tls.cert), ("key", tls.key)) if tls is not None else ():
        if not file.is_file():
            yield ConfigFinding(("serve", "http", "tls", key), f"there is no file {file}")
    for index, folder in enumerate(site.config.prompts.dirs or ()):
        if fault := _not_a_folder(folder):
            yield ConfigFinding(("prompts", "dirs", index), fault)
    for index, folder in enumerate(site.config.tools.dirs):
        if fault := _not_a_folder(folder):
            yield ConfigFinding(("tools", "dirs", index), fault, "octavo new tool NAME makes it", fatal=False)
    for index, plugin in enumerate(site.config.plugins):
        if plugin.path is None:
            continue
        path: KeyPath = ("plugins", site.number("plugins", index), "path")
        if not plugin.path.exists():
            yield ConfigFinding(path, f"there is no {plugin.path}")
        elif plugin.path.is_file() and plugin.path.suffix != ".py":
            yield ConfigFinding(path, "is no Python file")
        elif plugin.path.is_dir() and not (plugin.path / "__init__.py").is_file():
            yield ConfigFinding(path, "is no Python package: it has no __init__.py")


def _programs_are_safe(site: Site) -> Iterator[ConfigFinding]:
    """Who may write a file must not thereby choose what is run."""
    commands = site.config.commands
    if "process" in site.config.toolsets and not commands.programs and "commands" not in site.kept.broken:
        yield ConfigFinding(
            ("toolsets",), "the toolset process has nothing to run", "list programs in commands.programs"
        )
    if "web" in site.config.toolsets and not site.config.web.hosts and "web" not in site.kept.broken:
        yield ConfigFinding(("toolsets",), "the toolset web has nobody to ask", "list hosts in web.hosts")
    for name, program in commands.programs.items():
        for path in (program.run[0], *map(str, program.runs)):
            for source, options in site.config.sources.items():
                if any(one.write and _could_be_written(Path(path), one.path) for one in options.folders):
                    message = f"{path} lies in {source}, which may be written: callers could replace the program"
                    yield ConfigFinding(("commands", "programs", name, "run"), message, "move it elsewhere")


def _state_is_apart(site: Site) -> Iterator[ConfigFinding]:
    for path, folder in _roots(site.config):
        real = Path(os.path.realpath(folder))
        for named in (site.state, *site.state_homes):
            state = Path(os.path.realpath(named))
            if real == state or state in real.parents:
                message = f"lies in the state folder {named}, which is never served"
                yield ConfigFinding(path, message, "serve another folder, or name another with state.path")
                break


def _checkpoints_are_apart(site: Site) -> Iterator[ConfigFinding]:
    if site.config.audit.checkpoints is None:
        return
    path: KeyPath = ("audit", "checkpoints", "path")
    file = Path(os.path.realpath(site.config.audit.checkpoints.path))
    for root_path, folder in _roots(site.config):
        if passes_through(site.config.audit.checkpoints.path, folder):
            yield ConfigFinding(
                path, f"lies in {dotted(root_path)} and would be served", "name a file outside of all roots"
            )
    if Path(os.path.realpath(site.state)) in file.parents:
        message = "lies in the state folder: whoever forges the audit log there forges the checkpoints with it"
        yield ConfigFinding(path, message, "name a file on another disk or machine", fatal=False)
    if not file.parent.is_dir():
        yield ConfigFinding(path, f"there is no folder {file.parent}", "make it, or mount it", fatal=False)


def _something_is_served(site: Site) -> Iterator[ConfigFinding]:
    if not site.config.sources and not site.config.plugins:
        yield ConfigFinding((), "names no source, so nothing is served", "add an entry under sources:", fatal=False)


def _rules_make_sense(site: Site) -> Iterator[ConfigFinding]:
    if site.config.policy:
        from octavo.config.checks.rules import LOOKS as LOOKS_AT_RULES

        for look in LOOKS_AT_RULES:
            yield from look(site)


def _code_cannot_be_written(site: Site) -> Iterator[ConfigFinding]:
    """Whoever may write a file there could have the server run it."""
    code: list[tuple[KeyPath, Path]] = [(("tools", "dirs", at), one) for at, one in enumerate(site.config.tools.dirs)]
    code += [
        (("plugins", site.number("plugins", at), "path"), one.path)
        for at, one in enumerate(site.config.plugins)
        if one.path is not None
    ]
    for path, place in code:
        for name, source in site.config.sources.items():
            for folder in source.folders:
                if folder.write and _could_be_written(place, folder.path):
                    where = dotted(("sources", name, *folder.key))
                    message = f"lies in or around {where}, which may be written: clients could have the server run code"
                    yield ConfigFinding(path, message, "keep code outside of all folders that may be written")


LOOKS: tuple[Callable[[Site], Iterator[ConfigFinding]], ...] = (
    _roots_exist,
    _kinds_can_be_read,
    _roots_lie_apart,
    _options_fit,
    _schemes_are_unique,
    _stores_are_stores,
    _catalogs_lie_apart,
    _resources_are_served,
    _rules_name_known_things,
    _rules_differ,
    _rules_make_sense,
    _keys_differ,
    _redaction_names_known_things,
    _limits_can_be_kept,
    _http_is_guarded,
    _callers_are_agents,
    _keys_travel_hidden,
    _named_files_exist,
    _programs_are_safe,
    _code_cannot_be_written,
    _state_is_apart,
    _checkpoints_are_apart,
    _something_is_served,
)


def _over_stores(config: Config) -> Iterator[tuple[str, Over]]:
    for name, source in config.sources.items():
        if source.over is not None:
            yield name, source.over


def _roots(config: Config) -> Iterator[tuple[KeyPath, Path]]:
    for name, source in config.sources.items():
        for folder in source.folders:
            if folder.files:
                yield ("sources", name, *folder.key), folder.path


def _catalog_folders(config: Config) -> Iterator[tuple[KeyPath, Path]]:
    for name, over in _over_stores(config):
        store = config.sources.get(over.store)
        for folder in store.folders if store is not None else ():
            for place in _looked(config, name) or (over.folder,):
                inside = _below(folder.path, place)
                # What is committed stands in the work tree too, if there is one.
                yield ("sources", name, *over.key), inside if folder.files or inside.is_dir() else folder.path


def _looked(config: Config, name: str) -> Sequence[str]:
    """The folders of its store of which a catalog will take one, whichever is there when it is opened: what comes
    later must not make two addresses of one. Empty where that is settled."""
    over = config.sources[name].over
    if over is None or sum(over.store == other.store for _, other in _over_stores(config)) > 1:
        return ()
    return over.looked


def _below(folder: Path, inside: str) -> Path:
    """A place below a folder of the disk, whichever Unicode form its names have there."""
    for part in _parts(inside):
        there = folder / part
        if not part.isascii() and not os.path.lexists(there):
            there = folder / next((one for one in _names_in(folder) if _same(one, part)), part)
        folder = there
    return folder


def _same(name: str, other: str) -> bool:
    return unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other)


def _names_in(folder: Path) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _left_out(config: Config, name: str, folder: Path, other: Path) -> bool:
    """Whether a catalog with files in a real folder says of another folder that it is somebody else's. A link does not
    say it of the folder to which it leads: that has its own address."""
    over = config.sources[name].over
    gaps = () if over is None else over.without
    return any(other.is_relative_to(_below(folder, gap)) for gap in gaps)


def _never_both(config: Config, *both: tuple[str, Path]) -> bool:
    """Whether two sources could never serve one file: one keeps out the folder of the other, or they take files of
    other endings."""
    for (name, folder), (other, inner) in (both, both[::-1]):
        source, over = config.sources[name], config.sources[other].over
        if "write" in source.can:
            continue  # who moves or deletes a folder takes with it what lies there unseen
        kept = frozenset(folded(tuple(source.record.keeps_out(source))))
        if inner.is_relative_to(folder) and kept.intersection(folded(inner.relative_to(folder).parts)):
            return True
        listed = () if source.record.extensions is None else source.record.extensions(source)
        if over is not None and over.endings and listed and not any(_could_end(one, over.endings) for one in listed):
            return True
    return False


def _could_end(extension: str, endings: Sequence[str]) -> bool:
    """Whether a name that an entry of `extensions` allows, such as .md, md, Makefile or *, could end so."""
    plain = extension.casefold().removeprefix(".")
    return plain == "*" or f".{plain}".endswith(tuple(endings))


def _parts(folder: str) -> tuple[str, ...]:
    return tuple(part for part in folder.split("/") if part)


def _store_of(config: Config, name: str) -> str | None:
    over = config.sources[name].over
    return None if over is None else over.store


def _exposed_schemes(config: Config) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source.scheme for source in config.sources.values() if source.expose))


def _scheme(uri: str) -> str:
    return uri.partition("://")[0].lower()


def _offer(schemes: Sequence[str]) -> str:
    return f"there is {', '.join(f'{scheme}://' for scheme in schemes)}" if schemes else "no source is exposed"


def _meaning(rule: Rule) -> tuple[object, ...]:
    asked = repr(rule.when), repr(rule.unless), rule.approve
    return frozenset(rule.who), frozenset(rule.may), frozenset(rule.what), rule.effect, rule.hide, asked


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of
        return False


def _not_a_folder(folder: Path) -> str:
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        return f"there is no folder {folder}"
    except OSError as error:
        return f"cannot look at {folder}: {error.strerror}"
    if not stat.S_ISDIR(mode):
        return f"{folder} is no folder"
    if not os.access(folder, os.R_OK | os.X_OK):
        return f"{folder} may not be read by this user"
    return ""


def _could_be_written(place: Path, root: Path) -> bool:
    """Whether whoever may write into a root could make or change something of a place: it lies there, or around it."""
    return passes_through(place, root) or passes_through(root, place)


def _relation(folder: Path, other: Path) -> str:
    """How two real folders overlap; by device and inode, so that bind mounts are seen through, and by their names where
    one is not there yet."""
    if _is_one(folder, other):
        return "is the same folder as"
    if any(_is_one(parent, other) for parent in folder.parents):
        return "lies inside"
    if any(_is_one(parent, folder) for parent in other.parents):
        return "contains"
    return ""


def _is_one(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return folder == other
