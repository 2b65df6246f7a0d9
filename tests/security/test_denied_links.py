"""An open deny holds through a link: whether there is anything of that name behind it is not told (O14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gate.doors import Pipe
from tests.gate.fixtures import anyio_backend
from tests.gate.twins import INITIALIZED, frame, initialize
from tests.security.test_hidden_links import plain, requests, tool

from octavo.app import Octavo
from octavo.app.configuration import load_text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O14", "A8")]

__all__ = ["anyio_backend"]

CONFIG = """
version: 1
sources: {docs: {kind: file, roots: [./docs], extensions: ["*"], write: true}}
toolsets: [files, filesystem, process]
agents: {a: {}}
policy:
  - {who: "*", may: "*", what: "**", approve: never}
  - {who: "*", may: DENIED, what: "file://hidden/*", effect: deny}
commands: {programs: {cat: {run: [cat], args: [{name: file, type: path}]}}}
limits: {read: 64KiB}
"""


@pytest.fixture
async def docs(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    (docs / "hidden").mkdir(parents=True)
    (docs / "hidden/plan.md").write_text("plan\n", encoding="utf-8")
    (docs / "seen.md").write_text("seen\n", encoding="utf-8")
    return docs


async def answers(tmp_path: Path, rights: str, *names: str) -> AsyncIterator[list[tuple[object, str]]]:
    """What is told of each name, question by question, without the name."""
    loaded = load_text(CONFIG.replace("DENIED", rights), file=tmp_path / "octavo.yaml")
    async with Octavo(loaded) as octavo, Pipe(octavo, octavo.works.identity.launched("a"), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"), INITIALIZED)
        for same in zip(*(requests(name) for name in names), strict=True):
            told: list[tuple[object, str]] = []
            for name, (method, params) in zip(names, same, strict=True):
                lay_out(tmp_path)
                told.append((params, plain((await asked(pipe, method, params)).replace(name, "NAME"))))
            yield told


async def asked(pipe: Pipe, method: str, params: dict[str, object]) -> str:
    """The answer alone, without what is told of changes meanwhile."""
    (answer,) = [one for one in await pipe.ask(frame(method, params)) if "id" in one.value]
    return answer.text


def lay_out(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for link, target in (("via", "hidden"), ("to-plan.md", "hidden/plan.md"), ("to-none.md", "hidden/none.md")):
        if not (docs / link).is_symlink():
            (docs / link).unlink(missing_ok=True)
            (docs / link).symlink_to(target)
    (docs / "given.md").write_text("given\n", encoding="utf-8")
    for made in ("copied", "moved"):
        (docs / made).unlink(missing_ok=True)


@pytest.mark.parametrize("rights", ('"*"', "[list, read, watch]"))
@pytest.mark.parametrize("pair", (("via/plan.md", "via/none.md"), ("to-plan.md", "to-none.md")))
async def test_a_link_to_what_is_denied_tells_nothing_of_what_is_there(
    tmp_path: Path, docs: Path, rights: str, pair: tuple[str, str]
) -> None:
    told = [same async for same in answers(tmp_path, rights, *pair)]
    different = [same for same in told if same[0][1] != same[1][1]]
    assert not different, "\n".join(f"{a}\n  {one}\n  {other}" for (a, one), (_, other) in different)
    assert len(told) > 30
    assert (docs / "hidden/plan.md").read_text(encoding="utf-8") == "plan\n"
    assert not (docs / "hidden/none.md").exists()


async def test_the_address_itself_is_refused_as_before_and_who_may_list_is_told_why(tmp_path: Path, docs: Path) -> None:
    lay_out(tmp_path)
    for rights, name, words in (
        ('"*"', "hidden/plan.md", "Access denied"),
        ('"*"', "hidden/none.md", "Access denied"),
        ('"*"', "to-plan.md", "not found"),
        ("read", "to-plan.md", "Access denied"),
        ("read", "via/plan.md", "Access denied"),
    ):
        loaded = load_text(CONFIG.replace("DENIED", rights), file=tmp_path / "octavo.yaml")
        async with Octavo(loaded) as octavo, Pipe(octavo, octavo.works.identity.launched("a"), lane=True) as pipe:
            await pipe.ask(initialize("2025-11-25"), INITIALIZED)
            assert words in await asked(pipe, "resources/read", {"uri": f"file://{name}"})
            told = await asked(pipe, *tool("read_text_file", path=name))
            assert ("ENOENT" if words == "not found" else words) in told
