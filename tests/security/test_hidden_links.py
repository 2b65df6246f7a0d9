"""A link to what is hidden cannot be told from one to what is not there, whatever is asked of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.gate.doors import Pipe
from tests.gate.fixtures import anyio_backend
from tests.gate.twins import INITIALIZED, frame, initialize

from octavo.app import Octavo
from octavo.app.configuration import load_text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O14", "A8")]

__all__ = ["anyio_backend"]

CONFIG = """
version: 1
sources: {docs: {kind: file, roots: [./docs], extensions: ["*"], write: true}}
toolsets: [files, filesystem, process]
policy:
  - {who: "*", may: "*", what: "**", approve: never}
  - {who: "*", may: RIGHTS, what: "file://hidden/*", effect: deny, hide: true}
commands: {programs: {cat: {run: [cat], args: [{name: file, type: path}]}}}
limits: {read: 64KiB}
"""
TARGETS = {
    "plan.md": b"plan\n",
    "plan.docx": b"no document",
    "plan.pdf": b"%PDF-1.4 nothing",
    "plan.bin": bytes(range(256)),
    "plan.png": b"\x89PNG\r\n\x1a\nnothing",
    "large.txt": b"x" * 100_000,
    "folder": None,
}


def tool(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


def requests(link: str) -> list[tuple[str, dict[str, Any]]]:
    """The last ones change something: each is asked of links that are as they were."""
    asked = [("resources/read", {"uri": f"file://{link}{more}"})
             for more in ("", "?as=text", "?as=image", "?as=image&bytes=100", "?range=0-3", "?range=7-3", "?lines=1-2",
                          "?encoding=cp949", "?view=outline", "?version=1")]  # fmt: skip
    asked += [
        tool("read", target=link), tool("read", target=link, **{"as": "text"}),
        tool("read", target=link, **{"as": "image"}),
        tool("read", target=link, encoding="cp949"), tool("read", target=link, tail=2), tool("info", target=link),
        tool("list", target=link), tool("search", query="plan", target=link), tool("changes", target=link),
        tool("read_media_file", path=link), tool("read_text_file", path=link, head=1),
        tool("get_file_info", path=link), tool("list_directory", path=link), tool("directory_tree", path=link),
        tool("run_command", program="cat", args={"file": link}), tool("run_command", program="cat", folder=link),
        tool("write", target=link, content="x", if_match="no"),
        tool("edit", target=link, edits=[{"old": "plan", "new": "map"}]),
        tool("edit", target=link, edits=[{"old": "plan", "new": "map"}], dry_run=True),
        tool("create_directory", target=f"{link}/new"), tool("write", target=f"{link}/new.md", content="x"),
        tool("write", target=link, content="x"), tool("create_directory", target=link),
        tool("copy", target=link, to="copied"), tool("move", target=link, to="moved"),
        tool("copy", target="given.md", to=link), tool("move", target="given.md", to=link),
        tool("copy", target="given.md", to=link, overwrite=True),
        tool("move", target="given.md", to=link, overwrite=True),
        tool("copy", target=link, to="given.md", overwrite=True), tool("move", target=link, to="given.md"),
        tool("delete", target=link), tool("delete", target=link, if_match="no"),
    ]  # fmt: skip
    # A link to a folder is no resource, and goes as what it is wherever it leads.
    return [
        (method, params) for method, params in asked if not (link.endswith("folder") and params.get("name") == "delete")
    ]


def lay_out(folder: Path) -> None:
    docs = folder / "docs"
    (docs / "hidden").mkdir(parents=True)
    for name, body in TARGETS.items():
        if body is None:
            (docs / "hidden" / name).mkdir()
            (docs / "hidden" / name / "within.md").write_bytes(b"within\n")
        else:
            (docs / "hidden" / name).write_bytes(body)


def restore(folder: Path, name: str) -> None:
    docs = folder / "docs"
    for place in ("hidden", "absent"):
        link = docs / f"to-{place}-{name}"
        if not link.is_symlink():
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.join(place, name))
    (docs / "given.md").write_text("given\n", encoding="utf-8")
    for made in ("copied", "moved"):
        (docs / made).unlink(missing_ok=True)


@pytest.mark.parametrize("rights", ('"*"', "[list, read]"))
@pytest.mark.parametrize("name", TARGETS)
async def test_a_link_to_what_is_hidden_is_one_to_nothing(tmp_path: Path, name: str, rights: str) -> None:
    await compare(tmp_path, name, CONFIG.replace("RIGHTS", rights))


@pytest.mark.parametrize(
    "may", ('"*"', "[read, write, delete, invoke]", "[list, write, delete, invoke]", "[write, delete, invoke]")
)
@pytest.mark.parametrize("name", ("plan.md", "folder"))
async def test_nor_does_what_is_said_before_a_human_is_asked_tell_them_apart(
    tmp_path: Path, name: str, may: str
) -> None:
    asking = f'{{who: "*", may: {may}, what: "**"}}\n  - {{who: "*", may: [write, delete], what: "**", approve: human}}'
    config = CONFIG.replace('{who: "*", may: "*", what: "**", approve: never}', asking).replace("RIGHTS", '"*"')
    await compare(tmp_path, name, config)


async def test_nor_does_the_spelling_of_an_address_in_a_refusal(tmp_path: Path) -> None:
    await compare(tmp_path, "plan.md", CONFIG.replace("RIGHTS", '"*"'), f"{tmp_path}/docs/")


@pytest.mark.parametrize("template", ("file://{+path}", "file://{folder}/{path}.md"))
async def test_nor_does_a_completion(tmp_path: Path, template: str) -> None:
    lay_out(tmp_path)
    links = tmp_path / "docs" / "links"
    links.mkdir()
    for name, target in (("to-hidden", "hidden/plan.md"), ("to-absent", "absent/plan.md"), ("to-seen", "seen.md")):
        (links / f"{name}.md").symlink_to(f"../{target}")
    (tmp_path / "docs" / "seen.md").write_text("seen\n", encoding="utf-8")
    (tmp_path / "docs" / "links" / "plain.md").write_text("plain\n", encoding="utf-8")
    config = CONFIG.replace("RIGHTS", '"*"').replace("write: true", "write: true, templates: [TEMPLATE]")
    loaded = load_text(
        config.replace("TEMPLATE", '{uri: "file://{folder}/{path}.md", name: note}'), file=tmp_path / "octavo.yaml"
    )
    async with Octavo(loaded) as octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"), INITIALIZED)
        ref = {"type": "ref/resource", "uri": template}
        (answer,) = await pipe.ask(
            frame("completion/complete", {"ref": ref, "argument": {"name": "path", "value": ""}})
        )
    assert "plain" in answer.text and "to-seen" in answer.text
    assert not re.search("to-hidden|to-absent|plan", answer.text), answer.text


async def compare(tmp_path: Path, name: str, config: str, before: str = "") -> None:
    lay_out(tmp_path)
    restore(tmp_path, name)
    loaded = load_text(config, file=tmp_path / "octavo.yaml")
    told = []
    both = [requests(f"{before}to-{place}-{name}") for place in ("hidden", "absent")]
    async with Octavo(loaded) as octavo, Pipe(octavo, octavo.works.identity.launched(None), lane=True) as pipe:
        await pipe.ask(initialize("2025-11-25"), INITIALIZED)
        for hidden, absent in zip(*both, strict=True):
            answers = []
            for method, params in (hidden, absent):
                (answer,) = await pipe.ask(frame(method, params))
                answers.append(plain(answer.text))
                restore(tmp_path, name)
            if answers[0] != answers[1]:
                told.append((hidden, *answers))
    assert not told, "\n".join(f"{asked}\n  {one}\n  {other}" for asked, one, other in told)


def plain(text: str) -> str:
    """Without the name that was asked for, the number of the feed, which goes on by itself, and those of questions."""
    text = re.sub(r"(?i)approval\W+[0-9a-f]{10}|expires\W+[\w:.-]+Z", "?", text.replace("hidden", "absent"))
    return re.sub(r"\d{16}", "#", text)
