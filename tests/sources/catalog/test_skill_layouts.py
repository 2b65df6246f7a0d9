"""Skills as the world writes them: a folder with a SKILL.md, however deep it stands."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.sources.catalog.test_layouts import Served, entries, served, told

from octavo.core.errors import NotFound
from octavo.core.ref import Ref

__all__ = ["served"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O4", "O17")]


def skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n"


LAYOUTS: list[tuple[Mapping[str, str], list[str]]] = [
    ({"skills/pdf/SKILL.md": skill("pdf"), "skills/docx/SKILL.md": skill("docx")}, ["docx", "pdf"]),
    ({"skills/office/pdf/SKILL.md": skill("pdf")}, ["office/pdf"]),
    ({"skills/a/b/pdf/SKILL.md": skill("pdf"), "skills/a/x/docx/SKILL.md": skill("docx")}, ["a/b/pdf", "a/x/docx"]),
    ({".claude/skills/pdf/SKILL.md": skill("pdf"), "README.md": "x"}, ["pdf"]),
    ({".github/skills/pdf/SKILL.md": skill("pdf")}, ["pdf"]),
    ({"plugins/one/pdf/SKILL.md": skill("pdf"), "docx/SKILL.md": skill("docx")}, ["docx", "plugins/one/pdf"]),
    (
        {"pdf/SKILL.md": skill("pdf"), "office/docx/SKILL.md": skill("docx"), "x/y/z/SKILL.md": skill("z")},
        ["office/docx", "pdf", "x/y/z"],
    ),
    (
        {"skills/pdf/SKILL.md": skill("pdf"), "skills/brand/brief.yml": "id: s\nname: brief\ntriggers: [a]\n"},
        ["brand/brief", "pdf"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), LAYOUTS)
async def test_a_skill_is_served_wherever_it_stands_with_everything_that_comes_along(
    served: Served, files: Mapping[str, str], expected: list[str]
) -> None:
    along: dict[str, str] = {}
    for path in [path for path in files if path.endswith("/SKILL.md")]:
        folder = path.removesuffix("/SKILL.md")
        along |= {
            f"{folder}/scripts/run.py": "print()\n",
            f"{folder}/agents/openai.yaml": "name: x\nid: y\n",
            f"{folder}/a.yml": "x: 1\n",
        }
    catalog = await served("skill", {**files, **along})
    found = await entries(catalog)
    skills = sorted(entry.ref.path for entry in found.values() if entry.target is None)
    assert skills == expected
    assert not any("problems" in entry.metadata for entry in found.values()) and await told(catalog) == []
    for path in expected:
        assert catalog.whole(Ref.parse(f"skill://{path}")) is None
    parts = [entry for entry in found.values() if entry.target is not None]
    assert len(parts) == len(along) + sum(path.endswith("/SKILL.md") for path in files)
    for entry in parts:
        assert catalog.whole(entry.ref) == entry.target, "its name alone tells whose rules hold for it"
        content = await catalog.read(entry.ref, max_bytes=1000)
        assert content.entry == entry == await catalog.stat(entry.ref) and content.body in {**files, **along}.values()


async def test_no_other_yaml_file_becomes_a_skill(served: Served) -> None:
    files = {
        "skills/pdf/SKILL.md": skill("pdf"),
        "skills/pdf/config.yml": "name: x\nid: y\n",
        "skills/ci/build.yml": "on: push\n",
    }
    catalog = await served("skill", files)
    assert sorted(await entries(catalog)) == ["skill://pdf", "skill://pdf/SKILL.md", "skill://pdf/config.yml"]
    for uri in ("skill://pdf/config", "skill://ci/build"):
        with pytest.raises(NotFound):
            await catalog.read(Ref.parse(uri), max_bytes=1000)


@pytest.mark.parametrize("there", [{"pdf/SKILL.md": skill("pdf")}, {"office/pdf/SKILL.md": skill("pdf")}, {}])
async def test_a_store_of_other_things_has_no_skills_of_yaml(served: Served, there: Mapping[str, str]) -> None:
    catalog = await served("skill", {**there, "config/app.yml": "name: app\n", ".github/workflow.yml": "on: push\n"})
    found = await entries(catalog)
    assert [str(entry.ref) for entry in found.values() if entry.target is None] == [
        f"skill://{path.removesuffix('/SKILL.md')}" for path in there
    ]


async def test_a_bad_line_loses_a_key_and_not_the_skill(served: Served) -> None:
    text = "---\nname: pdf\ndescription: Use it: for PDF\nlicense: *none\nallowed-tools: [a\n---\n# PDF\n"
    catalog = await served("skill", {"skills/pdf/SKILL.md": text})
    entry = (await entries(catalog))["skill://pdf"]
    assert (entry.name, entry.description, entry.metadata["license"]) == ("pdf", "Use it: for PDF", "*none")
    assert not {"allowed-tools", "problems"} & entry.metadata.keys()
    assert [problem.line for problem in await catalog.problems()] == [3, 4, 5]


async def test_what_stands_inside_a_skill_is_a_part_of_it(served: Served, tmp_path: Any) -> None:
    files = {"skills/outer/SKILL.md": skill("outer"), "skills/outer/examples/inner/SKILL.md": skill("inner")}
    catalog = await served("skill", files)
    found = await entries(catalog)
    assert [str(entry.ref) for entry in found.values() if entry.target is None] == ["skill://outer"]
    assert str(found["skill://outer/examples/inner/SKILL.md"].target) == "skill://outer"
    (tmp_path / "store/skills/new").mkdir()
    (tmp_path / "store/skills/new/SKILL.md").write_text(skill("new"), "utf-8")
    assert "skill://new" in await entries(catalog), "one that comes later is found where the others stand"
