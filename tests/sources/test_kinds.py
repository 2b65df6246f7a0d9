"""The records of Octavo's own kinds, held against the sources that they open."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from octavo.app import Octavo
from octavo.app.configuration import KINDS, load_text
from octavo.core.errors import InvalidParams
from octavo.core.kinds import faults
from octavo.core.ports.source import abilities
from octavo.core.ref import Ref
from octavo.stores.state import StateDirectory

CONFIGURATION = """\
sources:
  read: {kind: file, roots: [a]}
  written: {kind: file, roots: [b], scheme: work, write: true}
  notes: {kind: memory, scheme: note, resources: {a: {text: A}}}
  store: {kind: file, roots: [c], expose: false}
  sops: {kind: sop, store: store, path: sops}
  docs: {kind: doc, store: store, path: docs}
  skills: {kind: skill, store: store, path: skills}
  agents: {kind: agent, store: store, path: agents}
  org: {kind: org, store: store, path: org}
  own: {kind: catalog, store: store, path: own, scheme: own, files: "{name}.md"}
"""


@pytest.mark.anyio
async def test_a_record_claims_no_more_than_its_sources_have_methods(tmp_path: Path) -> None:
    for folder in ("a", "b", "c/sops", "c/docs", "c/skills", "c/agents", "c/org", "c/own"):
        (tmp_path / folder).mkdir(parents=True)
    loaded = load_text(CONFIGURATION, file=tmp_path / "octavo.yaml", environ={})
    async with Octavo(loaded, state=StateDirectory.in_memory()) as house:
        by_scheme = {source.scheme: source for source in house.works.sources}
        for name, options in loaded.config.sources.items():
            if options.expose:
                assert options.can <= abilities(by_scheme[options.scheme]), name
                with pytest.raises(InvalidParams, match="Unknown query parameter: 'nobody'"):
                    await by_scheme[options.scheme].read(Ref.parse(f"{options.scheme}://a?nobody=1"), max_bytes=100)
    assert "write" in loaded.config.sources["written"].can
    assert "write" not in loaded.config.sources["read"].can
    assert "write" not in loaded.config.sources["notes"].can


def test_a_branch_can_do_what_its_record_claims() -> None:
    pytest.importorskip("pygit2")
    from octavo.sources.git import GitSource
    from octavo.sources.git.kind import GIT

    source: Any = object.__new__(GitSource)
    assert GIT.abilities <= abilities(source)


def test_all_records_are_sound() -> None:
    assert {record.name: faults(record) for record in KINDS} == dict.fromkeys(KINDS.names, "")


@pytest.mark.parametrize(
    ("entry", "loaded"),
    [
        ("{kind: memory, scheme: note}", {"memory"}),
        ("{kind: file, roots: [.]}", {"file"}),
        ("{kind: sop, store: nowhere}", {"catalog"}),
    ],
)
def test_only_the_kinds_that_a_file_names_are_loaded(entry: str, loaded: set[str], tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from octavo.app.configuration import load_text
try:
    load_text("sources: {{a: {entry}}}", file=Path({str(tmp_path)!r}) / "octavo.yaml", environ={{}})
except ValueError:
    pass
names = [one.split(".") for one in sys.modules if one.startswith("octavo.sources.")]
print(*sorted({{parts[2] for parts in names}} - {{"_shared", "kinds"}}), "pygit2" in sys.modules)
print(sum(parts[2:] == ["file", "source"] for parts in names))
"""
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.split() == [*sorted(loaded), "False", "0"], done.stdout
