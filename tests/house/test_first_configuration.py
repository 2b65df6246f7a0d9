"""A configuration of 0.1 with every key that there was: it opens as before, whatever has moved behind it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from octavo.app import Octavo
from octavo.app.configuration import KINDS, load
from octavo.config.load import Loaded
from octavo.config.schema import schema
from octavo.core.ref import Ref
from octavo.core.values import Call, Content, Trail

TEXT = (Path(__file__).parent / "first_configuration.yaml").read_text(encoding="utf-8")
SITE = Path(__file__).parent / "installed"
SECRETS = {
    "BRAND_KEY": "correct-horse-battery-staple",
    "EMBED_KEY": "another-long-secret-value",
    "ONE": "one-more-value",
}

# Keys that came after it. Whatever else a schema has stands in the file.
LATER = {
    "feed", "feed.keep", "feed.age", "feed.catch_up", "store", "store.kind", "store.url", "store.schema", "store.time",
    "shared", "shared.kind", "shared.url", "shared.name", "shared.time", "serve.http.oauth.issuers.*.inside",
}  # fmt: skip


def keys_of(node: Any, defined: Mapping[str, Any], path: str = "", within: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys of a schema, with a star for names that the operator chooses; those of all kinds of one thing together.
    What is a JSON schema itself, or free, has none of ours below it."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in within:
            yield from keys_of(defined[name], defined, path, (*within, name))
        return
    for one in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        yield from keys_of(one, defined, path, within)
    for name, below in node.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        yield here
        yield from keys_of(below, defined, here, within)
    if isinstance(below := node.get("additionalProperties"), dict):
        yield from keys_of(below, defined, f"{path}.*", within)
    if isinstance(below := node.get("items"), dict):
        yield from keys_of(below, defined, path, within)


def written(value: Any, known: set[str], path: str = "") -> Iterator[str]:
    """The keys of a configuration, by the same names."""
    if isinstance(value, list):
        for one in value:
            yield from written(one, known, path)
    elif isinstance(value, dict):
        for name, below in value.items():
            here = f"{path}.{name}".lstrip(".")
            if here in known:
                yield here
                yield from written(below, known, here)
            else:
                yield from written(below, known, f"{path}.*")


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    for folder in ("sops", "docs", "skills", "agents", "org", "letters", "notes"):
        (tmp_path / "handbook" / folder).mkdir(parents=True)
    for folder in ("prompts", "tools", "checkpoints", "site"):
        (tmp_path / folder).mkdir()
    for file in ("plugin.py", "site/more_of_it.py"):
        (tmp_path / file).write_text("def register(octavo):\n    pass\n", encoding="utf-8")
    for file in ("cert.pem", "key.pem"):
        (tmp_path / file).touch(mode=0o600)
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main", "repository"], check=True)
    (tmp_path / "repository" / "a.md").write_text("# A\n", encoding="utf-8")
    for command in (("add", "."), ("commit", "--quiet", "--message=one")):
        subprocess.run([*git[:2], str(tmp_path / "repository"), *git[3:], *command], check=True)
    for place in (SITE, tmp_path / "site"):
        monkeypatch.syspath_prepend(str(place))
    (tmp_path / "octavo.yaml").write_text(TEXT, encoding="utf-8")
    yield load(tmp_path / "octavo.yaml", environ=SECRETS)
    for name in ("acme_shelf", "more_of_it"):
        sys.modules.pop(name, None)


def test_it_has_every_key_that_there_was() -> None:
    """A key that comes is one more of `LATER`; one that goes says here what an operator has to write."""
    whole = schema(KINDS)
    known = set(keys_of(whole, whole["$defs"]))
    assert known - set(written(YAML(typ="safe").load(TEXT), known)) == LATER


def test_it_loads_and_nothing_more_is_said_of_it_than_before(loaded: Loaded) -> None:
    assert [(warning.key, warning.message) for warning in loaded.warnings] == [
        ("serve.http.peers", "is about unix sockets, and bind is none")
    ]


@pytest.mark.anyio
async def test_it_opens(loaded: Loaded) -> None:
    async with Octavo(loaded) as server:
        works = server.works
        who = works.identity.launched("agent-brand")
        assert dict(works.unopened) == {}
        found = await works.ask(Call("read", Ref.parse("note://a"), who, Trail(), "note://a"))
        assert isinstance(found, Content) and found.body == "A"
