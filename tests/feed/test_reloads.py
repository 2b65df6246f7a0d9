"""A reload that changes a source loses none of its changes, and tells none of them twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from octavo.app import Octavo
from octavo.app.configuration import load_text
from octavo.config.load import Loaded
from octavo.core.values import Change

pytestmark = [pytest.mark.anyio, pytest.mark.seed("F12")]

FILES = "sources: {work: {kind: file, roots: [./work], extensions: [.md, .%s]}}"
CATALOG = """
sources:
  store: {kind: file, roots: [./work], expose: false, extensions: [.md, .%s]}
  sops: {kind: sop, store: store, path: ""}
"""


def loaded(folder: Path, sources: str, number: int) -> Loaded:
    text = "version: 1\n" + sources % ("txt", "csv")[number % 2]
    return load_text(text, file=folder / "octavo.yaml", environ={})


@pytest.mark.parametrize("sources", (FILES, CATALOG), ids=("files", "catalog"))
async def test_what_changes_while_a_source_is_replaced_is_told_once(tmp_path: Path, sources: str) -> None:
    work = tmp_path / "work" / "ops"
    work.mkdir(parents=True)
    (work / "kept.md").write_text("0", encoding="utf-8")
    told = Counter[str]()
    heard = asyncio.Event()

    def listen(change: Change) -> None:
        told[f"{change.kind} {change.ref.segments[-1].removesuffix('.md')}"] += 1
        heard.set()

    wanted = set[str]()
    async with Octavo(loaded(tmp_path, sources, 0)) as house:
        await house.feed.followed([source.scheme for source in house.works.sources])
        house.feed.subscribe(listen)
        for number in range(1, 7):
            reloading = asyncio.ensure_future(house.reload(loaded(tmp_path, sources, number)))
            for step in range(20):
                name = f"n{number}-{step}"
                (work / f"{name}.md").write_text(name, encoding="utf-8")
                wanted.add(f"created {name}")
                if number > 1:  # what was told to be there
                    (work / f"n{number - 1}-{step}.md").unlink()
                    wanted.add(f"deleted n{number - 1}-{step}")
                await asyncio.wait((reloading,), timeout=0.002)
            await reloading
            try:
                async with asyncio.timeout(30):
                    while not wanted <= told.keys():
                        heard.clear()
                        await heard.wait()
            except TimeoutError:
                pytest.fail(f"never told: {sorted(wanted - told.keys())}")
        await house.feed.handed_over()
    twice = {what: count for what, count in told.items() if count > 1}
    assert not twice and not {*told} - wanted
