"""Folders of the world behind the policy: every spelling of an address is under the same rules."""

import logging
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.app.test_catalogs import ask

from octavo.app import Octavo
from octavo.app.configuration import load
from octavo.core.errors import Forbidden, NotFound, OctavoError

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O17")]

CONFIGURATION = """
version: 1
sources:
  store: {{kind: file, roots: [./store], expose: false}}
  it: {{kind: {kind}, store: store}}
agents:
  reader: {{}}
policy:
  - {{who: reader, may: [list, read, search], what: "{kind}://*"}}
  - {{who: reader, may: "*", what: [{denied}], effect: deny}}
"""
Opened = Callable[..., Awaitable[Octavo]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:

        async def open_house(kind: str, files: Mapping[str, str], denied: str = "x://none") -> Octavo:
            for path, text in files.items():
                (tmp_path / "store" / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "store" / path).write_text(text, encoding="utf-8")
            (tmp_path / "store").mkdir(exist_ok=True)
            file = tmp_path / "octavo.yaml"
            text = CONFIGURATION.format(kind=kind, denied=f'"{denied}"')
            file.write_text(text if denied != "x://none" else text.rpartition("  - ")[0], encoding="utf-8")
            return await stack.enter_async_context(Octavo(load(file, environ={})))

        yield open_house


async def listed(house: Octavo, uri: str) -> list[str]:
    return [str(entry.ref) for entry in (await ask(house, "reader", "list", uri)).items]


async def test_no_spelling_of_a_denied_document_leads_to_it(opened: Opened) -> None:
    house = await opened("doc", {"team/a.md": "secret", "team/b.md": "[a](a.md)\n"}, "doc://team/a")
    assert await listed(house, "doc://") == ["doc://team/b"]
    for uri in ("doc://team/a", "doc://team/a.md", "doc://team/./a", "doc://team/a?view=relations", "doc://team/A.md"):
        for op in ("read", "stat"):
            with pytest.raises((Forbidden, NotFound, OctavoError)):
                await ask(house, "reader", op, uri)
    for uri in ("doc://team", "doc://", "doc://team/b?view=relations"):
        assert "team/a" not in (await ask(house, "reader", "read", uri)).body


async def test_what_a_rule_says_of_a_skill_it_says_of_its_files_at_every_depth(opened: Opened) -> None:
    skill = "---\nname: {0}\ndescription: d\n---\n"
    files = {
        f"skills/{path}/SKILL.md": skill.format(path.rpartition("/")[2]) for path in ("pdf", "office/docx", "open")
    }
    files |= {f"skills/{path}/run.py": "x" for path in ("pdf", "office/docx", "open")}
    house = await opened("skill", files, 'skill://pdf", "skill://office/docx')
    assert await listed(house, "skill://") == ["skill://open", "skill://open/SKILL.md", "skill://open/run.py"]
    for path in ("pdf", "office/docx"):
        for part in ("", "/SKILL.md", "/run.py"):
            with pytest.raises(Forbidden):
                await ask(house, "reader", "read", f"skill://{path}{part}")
    assert (await ask(house, "reader", "read", "skill://open/run.py")).body == "x"


async def test_a_folder_in_a_folder_is_read_as_what_the_caller_may_see_of_it(opened: Opened) -> None:
    files = {"a/b/index.md": "# B\n", "a/b/c.md": "c", "a/hidden/d.md": "d"}
    house = await opened("doc", files, "doc://a/hidden/*")
    body = (await ask(house, "reader", "read", "doc://a")).body
    assert "doc://a/b/index" in body and "hidden" not in body
    assert (await ask(house, "reader", "stat", "doc://a/b/c")).mime_type == "text/markdown"
    assert (await ask(house, "reader", "stat", "doc://a/b")).mime_type == "inode/directory"
    with pytest.raises((Forbidden, NotFound)):
        await ask(house, "reader", "read", "doc://a/hidden")


@pytest.mark.parametrize("files", [{}, {"a.png": "", "b/c.jpg": ""}])
async def test_a_start_that_serves_nothing_is_said(
    opened: Opened, files: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="octavo.app"):
        await opened("doc", files)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["it"]
    assert "nothing is served" in caplog.text


async def test_a_usual_folder_that_leaves_much_out_is_said_at_the_start_and_rules_keep_it(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"docs/hr/pay.md": "secret", "docs/a.md": "a", "src/one.md": "1", "src/two.md": "2", "src/three.md": "3"}
    with caplog.at_level(logging.WARNING, logger="octavo.app"):
        house = await opened("doc", files, "doc://hr/*")
    assert await listed(house, "doc://") == ["doc://a"], "a rule holds, whatever comes beside the folder"
    assert "it: docs: files beside this folder that are not served: 3; path: '' would serve them as well" in caplog.text


async def test_loops_of_links_and_names_that_differ_in_case_or_unicode_form_are_served_or_said(
    opened: Opened, tmp_path: Path
) -> None:
    decomposed = unicodedata.normalize("NFD", "가이드")
    files = {"a/Guide.md": "1", "a/guide.md": "2", "b/가이드.md": "3", f"c/{decomposed}.md": "4"}
    (tmp_path / "store/a").mkdir(parents=True)
    (tmp_path / "store/a/up").symlink_to("..")
    (tmp_path / "store/a/self.md").symlink_to("self.md")
    house = await opened("doc", files)
    assert await listed(house, "doc://") == ["doc://a/Guide", "doc://a/guide", "doc://b/가이드", "doc://c/가이드"]
    for uri, body in (("doc://a/Guide", "1"), ("doc://a/guide", "2"), ("doc://c/가이드", "4")):
        assert (await ask(house, "reader", "read", uri)).body == body
