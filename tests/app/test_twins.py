"""Two files whose names differ in their Unicode form alone: what is asked for is what is answered, or nothing is."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.app.asking import ask

from octavo.app import Octavo
from octavo.app.configuration import load_text, zero
from octavo.core.arguments import OwnArguments
from octavo.core.errors import Conflict, OctavoError
from octavo.core.ref import Ref
from octavo.core.values import Call, Op, Trail
from octavo.stores.state import StateDirectory

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F1")]

NFC = unicodedata.normalize("NFC", "예산안")
NFD = unicodedata.normalize("NFD", NFC)


def put(base: Path, name: str, text: str) -> None:
    file = base / "served" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def serving(base: Path) -> Octavo:
    loaded = zero(base / "served", write=True, environ={"HOME": str(base)})
    return Octavo(loaded, state=StateDirectory.open(base / "state"))


def spellings(base: Path, name: str) -> list[str]:
    """Relative and absolute, as it is and percent-encoded as some clients send it."""
    return [f"{begin}{one}" for begin in ("file://", f"file://{base}/served/") for one in (name, quote(name))]


async def said(octavo: Octavo, op: Op, uri: str, **arguments: Any) -> str:
    with pytest.raises(OctavoError) as refused:
        await ask(octavo, None, op, uri, arguments)
    assert isinstance(refused.value, Conflict), refused.value
    return refused.value.message


async def test_the_other_form_of_a_name_never_reads_what_is_beside_it(tmp_path: Path) -> None:
    put(tmp_path, f"{NFC}.md", "composed\n"), put(tmp_path, f"{NFD}.md", "decomposed\n")
    async with serving(tmp_path) as octavo:
        for _ in range(2):  # from the cache, too
            for uri in spellings(tmp_path, f"{NFC}.md"):
                assert (await ask(octavo, None, "read", uri)).body == "composed\n"
            for uri in spellings(tmp_path, f"{NFD}.md"):
                for op in ("read", "stat"):
                    assert "in its Unicode form alone" in await said(octavo, op, uri)
        uri = f"file://{NFD}.md"
        await said(octavo, "write", uri, body="lost")
        await said(octavo, "delete", uri)
        call = Call(
            "invoke", Ref("tool", ("read",)), octavo.works.identity.launched(None), Trail(), "tool://read",
            OwnArguments({"target": uri}),
        )  # fmt: skip
        with pytest.raises(Conflict, match="in its Unicode form alone"):
            await octavo.works.ask(call)
    texts = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "served").iterdir()}
    assert texts == {f"{NFC}.md": "composed\n", f"{NFD}.md": "decomposed\n"}


async def test_one_file_is_read_in_either_form(tmp_path: Path) -> None:
    put(tmp_path, f"{NFC}/{NFD}.md", "one\n")
    async with serving(tmp_path) as octavo:
        for folder in (NFC, NFD):
            for name in (NFC, NFD):
                for uri in spellings(tmp_path, f"{folder}/{name}.md"):
                    assert (await ask(octavo, None, "read", uri)).body == "one\n"


async def test_folders_in_two_forms_are_not_taken_for_each_other(tmp_path: Path) -> None:
    put(tmp_path, f"{NFC}/a.md", "composed\n"), put(tmp_path, f"{NFD}/a.md", "decomposed\n")
    async with serving(tmp_path) as octavo:
        assert (await ask(octavo, None, "read", f"file://{NFC}/a.md")).body == "composed\n"
        assert "in its Unicode form alone" in await said(octavo, "read", f"file://{NFD}/a.md")
        assert "in its Unicode form alone" in await said(octavo, "list", f"file://{NFD}")


async def test_an_entry_of_a_catalog_is_not_taken_for_its_twin(tmp_path: Path) -> None:
    put(tmp_path, f"guides/{NFC}.md", "# Composed\n"), put(tmp_path, f"guides/{NFD}.md", "# Decomposed\n")
    put(tmp_path, f"guides/{NFD}-alone.md", "# Alone\n")
    sources = "sources:\n  files: {kind: file, roots: [./served], expose: false}\n  docs: {kind: doc, store: files}\n"
    async with Octavo(load_text(f"version: 1\n{sources}", file=tmp_path / "octavo.yaml", environ={})) as octavo:
        assert (await ask(octavo, None, "read", f"doc://guides/{NFC}")).body == "# Composed\n"
        for uri in (f"doc://guides/{NFD}", f"doc://guides/{quote(NFD)}"):
            assert "in its Unicode form alone" in await said(octavo, "read", uri)
        assert (await ask(octavo, None, "read", f"doc://guides/{NFD}-alone")).body == "# Alone\n"
