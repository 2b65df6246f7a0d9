"""The example organisation, served by the real program, and four doors to it: both transports in both eras."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from tests.e2e.harness import ROOT, Asking, Place, Server

AGENTS = ("agent-brand", "agent-finance", "agent-hr", "agent-ops", "agent-orchestrator")
BRAND, ORCHESTRATOR = "agent-brand", "agent-orchestrator"
DOORS = ("stdio modern", "stdio legacy", "http modern", "http legacy")
ERROR, FILTER, METADATA = "dev.octavo/error", "dev.octavo/filter", "dev.octavo/metadata"
# Where the seed says that the files are, below the handbook.
FOLDERS = {"sop": "sops", "doc": "docs", "skill": "skills", "agent": "agents", "org": "org"}


def key(agent: str) -> str:
    return f"octavo_{agent}-key-for-tests-0123456789"


def maison_haru(base: Path, *, more: str = "") -> Place:
    """A copy to write in, without a limit of requests. `root` is its handbook; `more` is further configuration."""
    place = Place(base, root=False)
    example = ROOT / "examples" / "maison-haru"
    place.root = base / "handbook"
    shutil.copytree(example / "handbook", place.root)
    (base / ".keys").mkdir(mode=0o700)
    for agent in AGENTS:
        file = base / ".keys" / agent
        file.write_text(f"{key(agent)}\n", encoding="utf-8")
        file.chmod(0o600)
    text = (example / "octavo.yaml").read_text(encoding="utf-8")
    assert "per_principal: 50/s" in text
    (base / "octavo.yaml").write_text(text.replace("per_principal: 50/s", "per_principal: 100000/s") + more, "utf-8")
    return place


class Front:
    """What the files say of themselves, read without the product: a plain reading to hold its answers against."""

    def __init__(self, handbook: Path) -> None:
        self.files: dict[str, Path] = {}
        self.said: dict[str, Mapping[str, Any]] = {}
        for scheme, folder in FOLDERS.items():
            for file in sorted((handbook / folder).rglob("*.*")):
                names = file.relative_to(handbook / folder).with_suffix("").parts
                if scheme == "org":
                    names = (names[0].removesuffix("s"), *names[1:])
                uri = f"{scheme}://{'/'.join(names)}"
                text = file.read_text(encoding="utf-8")
                self.files[uri] = file
                self.said[uri] = yaml.safe_load(text.split("---\n")[1] if file.suffix == ".md" else text)

    def uris(self, scheme: str, **asked: Any) -> list[str]:
        """Those whose front matter says so, word for word."""

        def fits(said: Mapping[str, Any]) -> bool:
            return all(value == said.get(name) or value in _listed(said.get(name)) for name, value in asked.items())

        return [uri for uri, said in self.said.items() if uri.startswith(f"{scheme}://") and fits(said)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class Door:
    """One client of one agent: whole messages in, whole answers out, whatever the transport."""

    def __init__(self, asking: Any, era: str) -> None:
        self.asking, self.era = asking, era

    def send(self, method: str, **params: Any) -> Any:
        answer = self.asking.ask(method, params)
        return getattr(answer, "body", answer)

    def result(self, method: str, **params: Any) -> Any:
        answer = self.send(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, **params: Any) -> Any:
        answer = self.send(method, **params)
        assert "error" in answer, answer
        return answer["error"]

    def read(self, uri: str) -> Any:
        (content,) = self.result("resources/read", uri=uri)["contents"]
        assert content["uri"] == uri
        return content

    def told(self, uri: str) -> Any:
        """What a resource of JSON says."""
        return json.loads(self.read(uri)["text"])

    def tool(self, name: str, **arguments: Any) -> Any:
        result = self.result("tools/call", name=name, arguments=arguments)
        assert not result["isError"], result
        return result

    def tool_error(self, name: str, **arguments: Any) -> Any:
        result = self.result("tools/call", name=name, arguments=arguments)
        assert result["isError"], result
        return result["_meta"][ERROR]

    def listed(self, **params: Any) -> list[Any]:
        """All pages of `resources/list`."""
        found: list[Any] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.result("resources/list", **params, **cursor)
            found += page["resources"]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    def completed(self, template: str, argument: str, prefix: str = "", **given: str) -> list[str]:
        asked: dict[str, Any] = {
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": argument, "value": prefix},
        }
        if given:
            asked["context"] = {"arguments": given}
        values: list[str] = self.result("completion/complete", **asked)["completion"]["values"]
        return values


class Doors:
    """Opens what is asked for, once."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self._place, self._stack = place, stack
        self._server: Server | None = None
        self._open: dict[tuple[str, str], Door] = {}

    def __call__(self, door: str, agent: str) -> Door:
        if (door, agent) not in self._open:
            transport, era = door.split()
            config = ("--config", self._place.base / "octavo.yaml")
            asking: Any
            if transport == "stdio":
                asking = self._stack.enter_context(self._place.pipe(*config, "--as", agent, era=era))
            else:
                self._server = self._server or self._stack.enter_context(self._place.serve(*config))
                asking = self._server.asking(key(agent), era).open()
            self._open[door, agent] = Door(asking, era)
        found = self._open[door, agent]
        if isinstance(found.asking, Asking):
            found.asking.hang_up()  # a connection that was idle for long may be closed; the next request opens one
        return found


def opened(place: Place) -> Iterator[Doors]:
    with ExitStack() as stack:
        yield Doors(place, stack)


def uris(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return [entry["uri"] for entry in entries]
