"""House rules that a program can check: who may open, ask, start and catch what, and how tests wait."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "octavo"
TESTS = ROOT / "tests"

# What -> the rooms or modules that own it. A name ends a path, or names a folder of it.
OWNERS: dict[str, tuple[str, ...]] = {
    "opens files": (
        "stores",
        "config",
        "sources/file",
        "sources/_shared/fs",
        "cli",
        "prompts/loader.py",
        "tools/folder.py",
        "transport/stdio/streams.py",
        "sandbox",
    ),
    "sees the environment": ("cli", "config"),
    "starts programs": (
        "sandbox",
        "tools/builtin/process",
        "tools/data/child.py",
        "gateway",
        "sources/_shared/documents/child.py",
    ),
    "opens connections": ("net", "cli"),
    "tells the time": ("core/clock.py",),
    "runs text as code": (),
    "declares dataclasses": (),
}

# A blind `except` swallows our own mistakes too. Each that does not raise again says here why it may.
BLIND: dict[str, str] = {
    "app/configuration.py": "options of a plugin of which no schema can be made",
    "app/sources.py": "a kind of a plugin that does not open hurts nobody else",
    "app/serve.py": "carries whatever a function raised to whoever waits",
    "core/foreign.py": "what an exception says of itself is foreign code too",
    "feed/feed.py": "one listener or one watch must not silence the others",
    "feed/storing.py": "what cannot be stored, or a source that cannot be compared, holds up no other",
    "pipeline/guard/abilities.py": "the door of a plugin's source: whatever it does is its own fault",
    "pipeline/guard/contract.py": "what was put into an address can raise when it is looked at",
    "pipeline/guard/door.py": "the door of a plugin's source: whatever it does is its own fault",
    "pipeline/guard/life.py": "a source that does not open or close hurts nobody else",
    "pipeline/throttle.py": "the door of every source: nothing foreign passes",
    "sources/catalog/first_look.py": "carries whatever a store raised to whoever waits",
    "sources/file/source.py": "a stamp that cannot be had is no stamp",
    "testing/fault_suite.py": "a suite lets through what the server catches at the door",
    "testing/base.py": "a suite must be able to say what left a source",
    "tools/modules.py": "foreign code runs here",
    "tools/plugins.py": "foreign code runs here",
    "tools/registry.py": "whatever would end the process ends the call of the tool alone",
    "tools/threads.py": "carries whatever a function raised to whoever waits",
    "transport/http/door.py": "what a handler let slip has its number in the log, and the client nothing else",
    "transport/http/listening.py": "the edge of the protocol: every fault becomes an answer",
    "transport/mcp/eager.py": "carries whatever was raised to whoever waits",
    "transport/mcp/fast_path.py": "the end of the pipeline: whatever comes out is the answer",
    "transport/mcp/server.py": "the edge of the protocol: every fault becomes an answer",
}

# Tests wait for events. A test that really needs time to pass says here why.
SLEEPS: dict[str, str] = {
    "feed/truth.py": "a client whose connection broke comes again, and tells the server nothing of that before",
    "security/slow_sockets.py": "a slow client is slow",
    "services/engines.py": "a server that begins has no other sign than that it answers",
    "stores/writers.py": "writers have a rhythm of their own, and wait for a service that is away",
}

OPENERS = {"open", "os.open", "os.fdopen", "io.open", "codecs.open"}
PATH_METHODS = {"read_text", "write_text", "read_bytes", "write_bytes"}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv"}
PROGRAMS = {
    "os.system", "os.popen", "os.fork", "os.posix_spawn", "os.posix_spawnp", "os.execv", "os.execve", "os.execvp",
    "os.execvpe", "os.spawnv", "os.spawnve", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell",
    "anyio.run_process", "anyio.open_process",
}  # fmt: skip
CLIENTS = {"httpx", "httpx2", "httpcore2", "websockets", "aiohttp", "requests", "urllib.request", "http.client",
           "ftplib", "smtplib"}  # fmt: skip
TIME = {"time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "datetime.now", "datetime.utcnow",
        "datetime.datetime.now", "datetime.datetime.utcnow", "date.today"}  # fmt: skip
CODE = {"eval", "exec", "pickle.loads", "pickle.load", "marshal.loads", "yaml.load", "yaml.unsafe_load", "shelve.open"}
SLEEPERS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep"}


@dataclass(frozen=True)
class Finding:
    what: str
    line: int
    text: str


def findings(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        what = _of_import(node) or _of_name(node) or _of_call(node)
        if what:
            yield Finding(what, getattr(node, "lineno", 0), ast.unparse(node)[:100])


def _of_import(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return None
    for what, known in (
        ("starts programs", {"subprocess", "multiprocessing", "pty"} | PROGRAMS),
        ("opens connections", CLIENTS),
        ("sees the environment", ENVIRONMENT),
        ("tells the time", TIME),
        ("runs text as code", {"pickle", "marshal", "shelve"}),
        ("declares dataclasses", {"dataclasses"}),
    ):
        if known.intersection(names):
            return what
    return None


def _of_name(node: ast.AST) -> str | None:
    name = dotted(node)
    if name in ENVIRONMENT:
        return "sees the environment"
    if name in TIME:
        return "tells the time"
    return None


def _of_call(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    name = dotted(node.func)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in PROGRAMS or method in ("subprocess_exec", "subprocess_shell"):
        return "starts programs"
    if name in CODE:
        return "runs text as code"
    if name in OPENERS or method in PATH_METHODS or (method == "open" and _mode(node) is not None):
        return "opens files"
    return None


def dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _mode(node: ast.Call) -> str | None:
    """The mode of `open(...)` or `path.open(...)`, where the call is written like one."""
    name = dotted(node.func)
    place = 1 if name in OPENERS else 0
    given = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    given += node.args[place : place + 1]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
        return given[0].value if set(given[0].value) <= set("rwxab+t") else None
    return "r" if not given and name in ("open", "io.open") else None


def unencoded(tree: ast.AST) -> Iterator[Finding]:
    """Text that is read or written in whatever encoding the machine likes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(keyword.arg in ("encoding", None) for keyword in node.keywords):
            continue
        name = dotted(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        mode = _mode(node) if name in ("open", "io.open") or (method == "open" and name != "os.open") else None
        reads = method == "read_text" and not node.args
        writes = method == "write_text" and len(node.args) < 2
        if (mode is not None and "b" not in mode) or reads or writes:
            yield Finding("has no encoding=", node.lineno, ast.unparse(node)[:100])


def blind(tree: ast.AST) -> Iterator[Finding]:
    """Handlers that catch everything and do not end by raising it again."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        everything = any(kind is None or dotted(kind) in ("Exception", "BaseException") for kind in kinds)
        last = node.body[-1]
        if everything and not (isinstance(last, ast.Raise) and last.exc is None):
            yield Finding("catches blindly", node.lineno, ast.unparse(node)[:60])


def sleeps(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in SLEEPERS and ast.unparse(node)[-3:] != "(0)":
            yield Finding("sleeps", node.lineno, ast.unparse(node))


def modules(folder: Path) -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        if "examples" not in path.relative_to(folder).parts:
            yield path.relative_to(folder).as_posix(), ast.parse(path.read_text(encoding="utf-8"), path.name)


def owned(module: str, owners: tuple[str, ...]) -> bool:
    return any(module == owner or module.startswith((f"{owner}/", f"{owner}.py")) for owner in owners)


@cache
def findings_of_the_package() -> list[tuple[str, Finding]]:
    return [(module, finding) for module, tree in modules(PACKAGE) for finding in findings(tree)]


@pytest.mark.parametrize("what", OWNERS)
@pytest.mark.seed("F10", "T7")
def test_only_the_owning_rooms(what: str) -> None:
    breaches = [
        f"src/octavo/{module}:{finding.line} {what}: {finding.text}"
        for module, finding in findings_of_the_package()
        if finding.what == what and not owned(module, OWNERS[what])
    ]
    assert breaches == []


def test_blind_handlers_are_listed_with_a_reason() -> None:
    found = {module: [*blind(tree)] for module, tree in modules(PACKAGE)}
    unlisted = [f"{module}:{finding.line}" for module, all_ in found.items() for finding in all_ if module not in BLIND]
    assert unlisted == []
    assert [module for module in BLIND if not found.get(module)] == [], "listed, and no longer there"
    assert all(reason.strip() for reason in BLIND.values())


@pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=["src", "tests"])
def test_text_always_says_its_encoding(folder: Path) -> None:
    assert [
        f"{module}:{finding.line} {finding.text}" for module, tree in modules(folder) for finding in unencoded(tree)
    ] == []


def test_tests_wait_for_events_and_do_not_sleep() -> None:
    found = {module: [*sleeps(tree)] for module, tree in modules(TESTS)}
    unlisted = [
        f"{module}:{finding.line} {finding.text}"
        for module, all_ in found.items()
        for finding in all_
        if module not in SLEEPS
    ]
    assert unlisted == []
    assert [module for module in SLEEPS if not found.get(module)] == [], "listed, and no longer there"
    assert all(reason.strip() for reason in SLEEPS.values())


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("open('x')", "opens files"),
        ("p.open('rb')", "opens files"),
        ("p.read_text(encoding='utf-8')", "opens files"),
        ("os.open('x', 0)", "opens files"),
        ("os.environ['X']", "sees the environment"),
        ("from os import environ", "sees the environment"),
        ("os.getenv('X')", "sees the environment"),
        ("import subprocess", "starts programs"),
        ("from asyncio import create_subprocess_exec", "starts programs"),
        ("os.system('x')", "starts programs"),
        ("from urllib import request", "opens connections"),
        ("import httpx", "opens connections"),
        ("t = time.time()", "tells the time"),
        ("from time import monotonic", "tells the time"),
        ("datetime.now(UTC)", "tells the time"),
        ("yaml.load(x)", "runs text as code"),
        ("import pickle", "runs text as code"),
        ("from dataclasses import replace", "declares dataclasses"),
    ],
)
def test_the_rules_bite(code: str, what: str) -> None:
    assert what in {finding.what for finding in findings(ast.parse(code))}


@pytest.mark.parametrize(
    "code", ["s.open(x)", "state.open(path)", "re.compile('x')", "os.close(1)", "x.environ", "clock.time()"]
)
def test_the_rules_do_not_bite_what_is_harmless(code: str) -> None:
    assert [*findings(ast.parse(code))] == []


@pytest.mark.parametrize(
    ("code", "bites"),
    [
        ("open('x')", True),
        ("open('x', 'rb')", False),
        ("open('x', encoding='utf-8')", False),
        ("p.open('w')", True),
        ("p.open('wb')", False),
        ("p.read_text()", True),
        ("p.read_text('utf-8')", False),
        ("p.write_text('x')", True),
        ("p.write_text('x', encoding='utf-8')", False),
        ("os.open('x', 1)", False),
    ],
)
def test_the_rule_on_encodings_bites(code: str, bites: bool) -> None:
    assert bool([*unencoded(ast.parse(code))]) is bites


@pytest.mark.parametrize(
    ("handler", "bites"),
    [
        ("except Exception: pass", True),
        ("except: pass", True),
        ("except (ValueError, BaseException): pass", True),
        ("except BaseException: raise", False),
        ("except ValueError: pass", False),
    ],
)
def test_the_rule_on_blind_handlers_bites(handler: str, bites: bool) -> None:
    assert bool([*blind(ast.parse(f"try: pass\n{handler}"))]) is bites


@pytest.mark.parametrize(
    ("code", "bites"), [("time.sleep(1)", True), ("await asyncio.sleep(n)", True), ("await asyncio.sleep(0)", False)]
)
def test_the_rule_on_sleeps_bites(code: str, bites: bool) -> None:
    assert bool([*sleeps(ast.parse(code))]) is bites
