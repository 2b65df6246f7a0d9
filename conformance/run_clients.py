"""Real clients against the real `octavo serve`: each lists, reads back, calls, gets a prompt, subscribes.

    python conformance/run_clients.py                      every client; writes the table of docs/clients.md
    python conformance/run_clients.py --only mcp-use       some of them, by name; writes nothing
    python conformance/run_clients.py --lock               renews the lock files of the clients

Exit 1 where a client could not do what it can, unless the difference is its own and stands below; and where one
that stands below is gone. Clients of Python are installed once into `.tools/` from the lock files in
`conformance/python/`, those of Node from `conformance/node/`. Both lock names, versions and hashes, no addresses.
Clients have a home of their own, telemetry is off, and whoever connects to another machine fails.
"""

from __future__ import annotations

import argparse
import base64
import collections
import contextlib
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run as node  # noqa: E402  (how the packages of Node are put in place)

PAGE = HERE.parent / "docs" / "clients.md"
BEGIN, END = "<!-- make clients: begin -->\n", "<!-- make clients: end -->\n"
RUN_SECONDS = 300
# Built from source because nobody publishes a wheel of them.
SOURCES = ("pybars4", "pymeta3")


@dataclass(frozen=True)
class Client:
    name: str  # as its users call it
    runner: str  # a file of conformance/clients
    home: str  # a folder of conformance/python or conformance/node, or "dev" for the environment of the tests
    theirs: Mapping[str, str] = field(default_factory=dict)  # a pattern of what fails: why that is the client's own


FIRST_PAGE = {r"^HTTP resources: 8 of 18 listed$": "asks for the first page of a list alone"}
CLIENTS = (
    Client("Inspector", "with_inspector.mjs", "clients"),
    Client("fastmcp", "with_fastmcp.py", "dev"),
    Client("openai-agents", "with_openai_agents.py", "mcp2"),
    Client("pydantic-ai", "with_pydantic_ai.py", "mcp2"),
    Client("llama-index", "with_llama_index.py", "mcp2", FIRST_PAGE),
    Client("google-adk", "with_google_adk.py", "mcp2", FIRST_PAGE),
    Client("mcporter", "with_mcporter.mjs", "mcporter", FIRST_PAGE),
    Client("TypeScript SDK", "with_typescript.mjs", "clients"),
    Client("langchain-mcp-adapters", "with_langchain.py", "mcp1", FIRST_PAGE),
    Client("mcp-use", "with_mcp_use.py", "mcp-use", FIRST_PAGE),
    Client("crewai-tools", "with_crewai.py", "mcp1"),
    Client("semantic-kernel", "with_semantic_kernel.py", "mcp1"),
    Client("smolagents", "with_smolagents.py", "mcp1"),
)
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "true",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "NO_GCE_CHECK": "true",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "SCARF_NO_ANALYTICS": "true",
}

# -- what is served

KEY = "octavo_reader-key-for-clients-0123456789"
WATCHED = "0-watched.md"  # on the first page: some clients see no other
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
# Names that URL types fold, split, decode twice or refuse, below each scheme that we give.
FILES = (
    "Docs/Upper Case.MD",
    "한국/새 문서 (초안).md",
    "100%.md",
    "50%25 off.md",
    "a#b.md",
    "who?me=you&me#too.md",
    "[draft] colon:at@host.md",
    "v1.2..3/..notes.md",
    "café.md",
    WATCHED,
)
HANDBOOK = (
    "sops/인사/휴가 신청.md",
    "sops/Ops 1:1/Call @ 5 [draft].md",
    "docs/새 문서 (초안).md",
    "docs/1:1 @home [draft] 100%.md",
    "docs/Upper/what?.md",
    "skills/글쓰기/brief-writing/SKILL.md",
)
CONFIGURATION = """\
version: 1
sources:
  files:    {{kind: file, roots: [./root]}}
  handbook: {{kind: file, roots: [./handbook], expose: false}}
  sops:     {{kind: sop,   store: handbook, path: sops}}
  docs:     {{kind: doc,   store: handbook, path: docs}}
  skills:   {{kind: skill, store: handbook, path: skills}}
agents:
  reader: {{key: "file:key"}}
policy:
  - {{who: reader, may: [list, read, search, watch, render, complete], what: "**"}}
prompts: {{dirs: [./prompts]}}
limits: {{page: {page}, per_principal: 100000/s}}
"""
PROMPT = {
    "id": "brief",
    "description": "Asks for a brief.",
    "inputSchema": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Write a brief: {{topic}}"}]}],
}
ASK = {"name": "read", "arguments": {"target": "sop://인사/휴가%20신청"}}
CALLS: Mapping[str, tuple[Mapping[str, Any], str]] = {  # each tool, its arguments, and what its answer must hold
    "list": ({"target": "file://한국", "depth": 1}, "새 문서 (초안).md"),
    "read": (ASK["arguments"], "sops/인사/휴가 신청.md"),  # type: ignore[dict-item]
    "info": ({"target": "doc://새%20문서%20(초안)"}, "text/markdown"),
    "search": ({"query": "휴가"}, "휴가"),
    "changes": ({"limit": 5}, "change"),
}
# Over HTTP a list has several pages, on stdio one: so both are seen.
PAGES = {"stdio": 100, "HTTP": 8}


class Scene:
    """A folder with odd names, a handbook, a policy and a key, served over one transport."""

    def __init__(self, base: Path, transport: str) -> None:
        self.base, self.transport = base, transport
        self.expected = collections.Counter({base64.b64encode(PIXEL).decode(): 1})
        for folder, names in (("root", FILES), ("handbook", HANDBOOK)):
            for name in names:
                text = f"# {name}\n"
                if name.endswith("SKILL.md"):
                    text = f"---\nname: brief-writing\ndescription: Writes briefs.\n---\n{text}"
                    self.expected[text] += 1  # listed as the skill and as its file
                self._put(f"{folder}/{name}", text)
                self.expected[text] += 1
        (base / "root" / "pixel.png").write_bytes(PIXEL)
        self._put("prompts/brief.json", json.dumps(PROMPT))
        self._put("key", f"{KEY}\n").chmod(0o600)
        self._put("octavo.yaml", CONFIGURATION.format(page=PAGES[transport]))
        (base / "home").mkdir()

    def _put(self, name: str, text: str) -> Path:
        file = self.base / name
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.base / "draft"
        draft.write_text(text, encoding="utf-8")
        return draft.replace(file)

    def change(self) -> None:
        self._put(f"root/{WATCHED}", "# changed\n")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.base / "home"), "OCTAVO_CALLED_OUT": str(self.base / "called-out")}

    @contextlib.contextmanager
    def served(self) -> Iterator[dict[str, Any]]:
        """What a runner needs to reach it."""
        command = [sys.executable, "-m", "octavo", "serve", "--config", str(self.base / "octavo.yaml")]
        if self.transport == "stdio":
            yield {"command": [*command, "--as", "reader"], "env": self.environment}
            return
        with subprocess.Popen(
            [*command, "--http", "127.0.0.1:0"], env=self.environment, stderr=subprocess.PIPE, encoding="utf-8"
        ) as server:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:
                said += line
                if found := re.search(r"serving MCP at (http://\S+)", line):
                    break
            else:
                sys.exit(f"octavo serve ended before it was ready:\n{said}")
            reading = threading.Thread(target=server.stderr.read, daemon=True)
            reading.start()
            try:
                yield {"url": found[1], "key": KEY}
            finally:
                server.terminate()
                server.wait(30)
                reading.join(5)

    def era(self) -> str:
        """As the audit log has it: who shakes hands says initialize."""
        records = "".join(file.read_text(encoding="utf-8") for file in self.base.rglob("audit/*.jsonl"))
        return "handshake" if '"op":"initialize"' in records else "modern"


# -- one client


@dataclass
class Outcome:
    """What a client did over one transport."""

    cells: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    era: str = ""


def meet(client: Client, transport: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="octavo-clients-") as temporary:
        scene = Scene(Path(temporary), transport)
        with scene.served() as where:
            lines, log = _walk(client, scene, where)
        outcome = judge(scene, lines)
        outcome.era = scene.era()
        called = scene.base / "called-out"
        if called.is_file():
            outcome.failures.append(f"called out: {sorted(set(called.read_text(encoding='utf-8').split()))}")
        outcome.failures = [f"{transport} {one}" for one in outcome.failures]
        if any(not known(client, one) for one in outcome.failures):
            say(f"{client.name} over {transport} said:\n{log[-4000:]}")
        return outcome


def _walk(client: Client, scene: Scene, where: Mapping[str, Any]) -> tuple[list[Any], str]:
    program, packages = _program(client)
    calls = [{"name": name, "arguments": given} for name, (given, _) in CALLS.items()]
    prompt = {"name": "brief", "arguments": {"topic": "봄 & <여름>"}}
    work = {**where, "packages": packages, "calls": calls, "prompt": prompt, "ask": ASK, "watch": WATCHED}
    environment = {**scene.environment, **QUIET, "PYTHONWARNINGS": "ignore"}
    if client.runner.endswith(".mjs"):
        environment["NODE_OPTIONS"] = f"--import={HERE / 'clients' / 'guard.mjs'}"
    lines = []
    with (
        (scene.base / "log").open("w+", encoding="utf-8") as log,
        subprocess.Popen(
            [*program, str(HERE / "clients" / client.runner), json.dumps(work)],
            cwd=scene.base / "home",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
        ) as running,
    ):
        late = threading.Timer(RUN_SECONDS, running.kill)
        late.start()
        assert running.stdout is not None
        for text in running.stdout:
            if text.startswith('{"what"'):
                lines.append(json.loads(text))
                if lines[-1]["what"] == "subscribed":
                    scene.change()
        running.wait()
        late.cancel()
        log.seek(0)
        return lines, log.read()


def judge(scene: Scene, lines: Sequence[Any]) -> Outcome:
    """Compares what was said with what is served: nothing is believed because it did not fail."""
    outcome = Outcome()
    said: dict[str, list[Any]] = collections.defaultdict(list)
    for line in lines:
        said[line["what"]].append(line)
    fail = outcome.failures.append
    if not said["can"]:
        fail("session: never began")
    for line in said["failed"]:
        fail(f"{line['step']}: {line.get('uri') or line.get('name') or ''} {line['error']}")
    can = said["can"][0]["steps"] if said["can"] else []
    outcome.versions = {name: value for line in said["versions"] for name, value in line.items() if name != "what"}
    total = scene.expected.total()
    if "resources" in can:
        listed = len(said["resources"][0]["uris"]) if said["resources"] else 0
        outcome.cells["list"] = f"{listed}/{total}"
        if listed != total:
            fail(f"resources: {listed} of {total} listed")
        right = (collections.Counter(line["text"] for line in said["read"]) & scene.expected).total()
        outcome.cells["read"] = f"{right}/{listed}"
        if right != listed:
            fail(f"read: {right} of {listed} right")
    if "tools" in can:
        missing = CALLS.keys() - set(said["tools"][0]["names"] if said["tools"] else ())
        if missing:
            fail(f"tools: {sorted(missing)} not listed")
        good = {line["name"] for line in said["call"] if _holds(line["text"], CALLS[line["name"]][1])}
        outcome.cells["call"] = f"{len(good)}/{len(CALLS)}"
        if len(good) != len(CALLS):
            fail(f"call: {[line for line in said['call'] if line['name'] not in good]} wrong")
    wanted = {"prompt": "봄 & <여름>", "agent": "sops/인사/휴가 신청.md", "subscribe": WATCHED}
    for step, piece in wanted.items():
        if step in can:
            done = any(_holds(line.get("text") or line.get("uri"), piece) for line in said[step])
            outcome.cells[step] = "yes" if done else "no"
            if not done:
                fail(f"{step}: {said[step]} wrong")
    return outcome


def _holds(text: str | None, piece: str) -> bool:
    text = text or ""
    return piece in text or json.dumps(piece)[1:-1] in text


def known(client: Client, failure: str) -> bool:
    return any(re.search(pattern, failure) for pattern in client.theirs)


# -- where clients live


def _program(client: Client) -> tuple[list[str], str]:
    if client.runner.endswith(".mjs"):
        return [str(node.node())], str(node.install(client.home))
    if client.home == "dev":
        return [sys.executable], ""
    return [str(environment(client.home) / "bin" / "python")], ""


def environment(name: str) -> Path:
    """The environment of one lock file; made if it is not there or not current."""
    lock, target = HERE / "python" / name / "requirements.lock", node.TOOLS / "python" / name
    with node._alone(f"python-{name}"):
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()
        stamp = target / ".installed"
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
            return target
        say(f"installing {name} into {target.relative_to(HERE.parent)}")
        shutil.rmtree(target, ignore_errors=True)
        uv("venv", "--python", sys.executable, str(target))
        built = [word for package in SOURCES for word in ("--no-binary", package)]
        uv("pip", "install", "--python", str(target / "bin" / "python"), "--require-hashes",
           "--only-binary", ":all:", *built, "-r", str(lock))  # fmt: skip
        stamp.write_text(digest, encoding="utf-8")
        return target


def uv(*arguments: str) -> None:
    if subprocess.run([str(Path(sys.executable).with_name("uv")), "--quiet", *arguments], check=False).returncode:
        sys.exit(f"uv {' '.join(arguments)} failed")


def lock() -> None:
    """Names, versions and hashes. mcp-use alone is a part of the environment that it shares with its generation."""
    built = [word for package in SOURCES for word in ("--no-binary", package)]
    for name, more in (("mcp2", []), ("mcp1", []), ("mcp-use", ["-c", str(HERE / "python/mcp1/requirements.lock")])):
        folder = HERE / "python" / name
        uv("pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url",
           "--no-header", "--no-annotate", "--only-binary", ":all:", *built, *more,
           str(folder / "requirements.in"), "-o", str(folder / "requirements.lock"))  # fmt: skip
    npm = [str(node.node()), str(node.node_home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    for package in sorted((HERE / "node").iterdir()):
        subprocess.run(
            [*npm, "install", "--package-lock-only", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund"],
            cwd=package,
            env=node.environment(),
            check=True,
        )


# -- the table

COLUMNS = {
    "list": "list",
    "read": "read back",
    "call": "tools",
    "prompt": "prompt",
    "agent": "agent loop",
    "subscribe": "hears a change",
}


def table(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
    lines = [f"| client | version | era | {' | '.join(COLUMNS.values())} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for name, by in outcomes.items():
        stdio, http = by["stdio"], by["HTTP"]
        cells = [_both(stdio.cells.get(column, "–"), http.cells.get(column, "–")) for column in COLUMNS]
        own, *sdk = stdio.versions.items()
        version = own[1] + "".join(f" ({package} {number})" for package, number in sdk)
        lines.append(f"| {name} | {version} | {_both(stdio.era, http.era)} | {' | '.join(cells)} |")
    today = datetime.datetime.now(datetime.UTC).date()
    python = ".".join(map(str, sys.version_info[:3]))
    return "\n".join(lines) + (
        f"\n\nstdio / HTTP where they differ; – what the client has no way to do. Of {today}, with Python {python} and "
        f"Node {_node_version()}; written by `make clients`.\n"
    )


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one} / {other}"


def _node_version() -> str:
    done = subprocess.run([str(node.node()), "--version"], capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip().removeprefix("v")


def write(text: str) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")


def say(text: str) -> None:
    print(f"clients: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Real clients against octavo serve.")
    parser.add_argument(
        "--only", action="append", choices=[one.name for one in CLIENTS], help="this client; repeatable"
    )
    parser.add_argument("--lock", action="store_true", help="renew the lock files of the clients")
    options = parser.parse_args(arguments)
    if options.lock:
        lock()
        return 0
    outcomes: dict[str, dict[str, Outcome]] = {}
    bad: list[str] = []
    for client in CLIENTS:
        if options.only and client.name not in options.only:
            continue
        outcomes[client.name] = {transport: meet(client, transport) for transport in PAGES}
        failures = [one for outcome in outcomes[client.name].values() for one in outcome.failures]
        bad += [f"{client.name}: {one}" for one in failures if not known(client, one)]
        bad += [
            f"{client.name}: is no longer so: {pattern}"
            for pattern in client.theirs
            if not any(re.search(pattern, one) for one in failures)
        ]
        own = "".join(f"; {why}" for why in client.theirs.values())
        say(f"{client.name}: {len(failures)} differences{own}")
    print(table(outcomes))
    print("\n".join(bad) or "clients: ok")
    if not options.only:
        write(table(outcomes))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
