"""Lists say what plain Markdown files call themselves, to whoever may read them (B6, A13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.asking import ask

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.core.errors import Forbidden

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A13")]

CONFIGURATION = """
version: 1
sources:
  work: {kind: file, roots: [./work], extensions: ['*']}
agents: {reader: {}, lister: {}, part: {}}
policy:
  - {who: reader, may: [list, read], what: "file://*"}
  - {who: [lister, part], may: list, what: "file://*"}
  - {who: part, may: read, what: "file://guide/*"}
"""
FILES = {
    "guide/README.md": "Some words, and no heading.\n",
    "guide/deploy.md": "---\ntags: [ops]\n---\n\n# How we **deploy** at night\n",
    "guide/key.md": "# The key is AKIAQYLPMN5HFIQR7XYA of production\n",
    "guide/old.md": "제목\n====\n\n본문\n".encode("cp949"),
    "guide/plain.txt": "# no Markdown\n",
    "guide/words.markdown": "---\ntitle: 배포 안내\n---\n# Other\n",
    "notes.md": "## Only a second level\n",
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Octavo]:
    for name, text in FILES.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    async with Octavo(load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})) as octavo:
        yield octavo


async def titles(house: Octavo, who: str, scope: str = "file://") -> dict[str, str | None]:
    page: Any = await ask(house, who, "list", scope, limit=100)
    return {entry.name: entry.title for entry in page.items}


async def test_a_list_says_what_a_file_calls_itself(house: Octavo) -> None:
    told = await titles(house, "reader")
    assert told.pop("key.md", "") != FILES["guide/key.md"][2:-1]
    assert told == {
        "README.md": "guide",
        "deploy.md": "How we deploy at night",
        "old.md": "제목",
        "plain.txt": None,
        "words.markdown": "배포 안내",
        "notes.md": "Only a second level",
    }


async def test_a_secret_in_a_title_is_redacted(house: Octavo) -> None:
    title = (await titles(house, "reader"))["key.md"]
    assert title is not None
    assert "AKIA" not in title
    assert "[redacted:" in title


async def test_who_may_list_but_not_read_is_told_no_title(house: Octavo) -> None:
    assert set((await titles(house, "lister")).values()) == {None}
    with pytest.raises(Forbidden):
        await ask(house, "lister", "read", "file://notes.md")


async def test_of_some_files_the_titles_of_those_that_may_be_read_are_told(house: Octavo) -> None:
    told = await titles(house, "part")
    assert told["notes.md"] is None
    assert told["deploy.md"] == "How we deploy at night"
    assert await titles(house, "reader") != told  # what one caller was told is nobody else's


async def test_a_changed_title_is_told_in_the_next_list(house: Octavo, tmp_path: Path) -> None:
    assert (await titles(house, "reader"))["notes.md"] == "Only a second level"
    (tmp_path / "work/notes.md").write_text("# Another name\n", encoding="utf-8")
    assert (await titles(house, "reader"))["notes.md"] == "Another name"
