"""A skill is a definition, a folder with a SKILL.md, or both: its files have addresses below its own."""

from typing import Any

import pytest
from tests.sources.catalog.test_changes import following, heard

from octavo.core.errors import InvalidParams, NotFound, TooLarge
from octavo.core.ref import Ref
from octavo.sources.catalog import CatalogSource
from octavo.text.frontmatter import of_markdown

pytestmark = pytest.mark.anyio

MANIFEST = "---\nname: letters\ndescription: Answers letters.\nagents: [agent-brand]\n---\n# Letters\n"
FILES = {
    "skills/brand/brief-writing.yml": (
        "id: skill-brand-brief-writing\nname: 브리프 쓰기\ndescription: 한 장짜리 브리프를 쓴다.\nversion: 1.10\n"
        "triggers:\n  keywords: [브리프, campaign brief]\nrequired_tools: [read]\ninputs:\n  goal: {required: true}\n"
        "steps:\n  - Ask for the goal.\n  - Write one page.\noutput: |\n  One page\n  of Markdown.\n"
    ),
    "skills/brand/letters/SKILL.md": MANIFEST,
    "skills/brand/letters/references/tone.md": "# Tone\n",
    "skills/brand/letters/templates/regional/eu.yml": "dear: NAME\n",
    "skills/brand/zine.yml": "id: skill-zine\nname: Zine\n",
    "skills/brand/zine/layout.md": "# Layout\n",
    "skills/brand/브리프.yml": "id: skill-korean\nname: 브리프\n",
    "skills/README.md": "No skill.\n",
    "agents/brand.yml": "id: agent-brand\nname: brand\n",
}
LETTERS = "skill://brand/letters"


@pytest.fixture
async def skills(founded: Any) -> Any:
    return await founded(FILES)


@pytest.mark.seed("O4")
async def test_a_skill_may_be_a_folder_and_its_files_are_listed_behind_it(skills: Any) -> None:
    assert await skills.uris("skill://") == [
        "skill://brand/brief-writing",
        LETTERS,
        f"{LETTERS}/SKILL.md",
        f"{LETTERS}/references/tone.md",
        f"{LETTERS}/templates/regional/eu.yml",
        "skill://brand/zine",
        "skill://brand/zine/layout.md",
        "skill://brand/브리프",
    ]
    assert await skills.uris(f"{LETTERS}/templates") == [f"{LETTERS}/templates/regional/eu.yml"]
    for entry in await skills.entries(LETTERS):
        content = await skills.read(str(entry.ref))
        assert content.entry == await skills.source(LETTERS).stat(entry.ref) == entry
        assert content.body == FILES[f"skills/{entry.ref.path}" + ("/SKILL.md" if str(entry.ref) == LETTERS else "")]


async def test_filters_matches_and_collections_speak_of_skills_and_not_of_their_files(skills: Any) -> None:
    assert await skills.uris("skill://?agent=agent-brand") == [LETTERS]
    assert await skills.uris("skill://?match=letters") == [LETTERS]
    assert "tone.md" not in (await skills.read("skill://brand")).body


async def test_a_folder_is_a_skill_like_every_other(skills: Any) -> None:
    entry = next(one for one in await skills.entries("skill://") if str(one.ref) == LETTERS)
    assert (entry.name, entry.description) == ("letters", "Answers letters.")
    assert dict(entry.metadata) == {"id": "letters", "name": "letters", "function": "brand", "agents": ["agent-brand"]}
    assert (await skills.entries(f"{LETTERS}/SKILL.md"))[0].metadata == {}, "the front matter is not told twice"


@pytest.mark.seed("O4")
async def test_a_manifest_is_made_of_the_definition(skills: Any) -> None:
    content = await skills.read("skill://brand/brief-writing/SKILL.md")
    assert (content.entry.name, content.entry.mime_type) == ("brief-writing", "text/markdown")
    assert content.entry == await skills.source("skill://").stat(content.entry.ref)
    matter = of_markdown(content.body)
    assert matter.data == {
        "name": "brief-writing",
        "description": "한 장짜리 브리프를 쓴다.",
        "metadata": {"id": "skill-brand-brief-writing", "version": "1.10"},
    }
    assert content.body[matter.body :] == (
        "\n# 브리프 쓰기\n\n한 장짜리 브리프를 쓴다.\n"
        "\n## When to use it\n\n- **keywords**\n  - 브리프\n  - campaign brief\n"
        "\n## Required tools\n\n- read\n"
        "\n## Inputs\n\n- **goal**\n  - **required**: true\n"
        "\n## Steps\n\n1. Ask for the goal.\n2. Write one page.\n"
        "\n## Output\n\nOne page\nof Markdown.\n"
    )


@pytest.mark.parametrize(
    "description",
    [
        '"quoted \\"words\\", a \\\\ and: a # sign"',
        "'- no list'",
        '"two\\nlines\\x07\\x7f\\u2028 and 👩‍💻"',
        "가 나",
        "''",
    ],
)
async def test_whatever_a_definition_says_its_manifest_has_front_matter(founded: Any, description: str) -> None:
    made = await founded({"skills/a/x.yml": f"id: x\nname: '# X'\ndescription: {description}\n---: odd\n"})
    matter = of_markdown((await made.read("skill://a/x/SKILL.md")).body)
    assert not matter.faults
    assert matter.data["name"] == "x" and matter.data["description"].strip()
    assert "\n" not in matter.data["description"]


async def test_a_definition_may_stand_beside_its_folder_with_or_without_a_manifest(skills: Any) -> None:
    assert "# Zine" in (await skills.read("skill://brand/zine/SKILL.md")).body
    skills.write("skills/brand/zine/SKILL.md", "---\nname: zine\ndescription: By hand.\n---\n")
    assert "By hand." in (await skills.read("skill://brand/zine/SKILL.md")).body
    assert (await skills.read("skill://brand/zine")).body == FILES["skills/brand/zine.yml"]
    assert f"{await skills.uris('skill://brand/zine')}".count("SKILL.md") == 1


async def test_what_is_no_file_of_a_skill_is_not_there(skills: Any) -> None:
    (skills.root / "skills/brand/letters/link.md").symlink_to("references/tone.md")
    (skills.root / "skills/brand/copy.yml").symlink_to("brief-writing.yml")
    for uri in (
        f"{LETTERS}/none.md",
        f"{LETTERS}/references",
        f"{LETTERS}/link.md",
        f"{LETTERS}/skill.md",
        "skill://brand/copy/SKILL.md",
        "skill://brand/브리프/SKILL.md",
        "skill://brand/none/SKILL.md",
        "skill://brand/brief-writing/other.md",
    ):
        with pytest.raises(NotFound) as absent:
            await skills.read(uri)
        assert absent.value.data == {"uri": uri}
    assert f"{LETTERS}/link.md" not in await skills.uris("skill://")
    with pytest.raises(InvalidParams):
        await skills.read(f"{LETTERS}/SKILL.md?view=parsed")


async def test_a_file_over_the_limit_is_refused_whether_it_was_written_or_made(skills: Any) -> None:
    for uri in (f"{LETTERS}/SKILL.md", "skill://brand/brief-writing/SKILL.md"):
        size = (await skills.read(uri)).size
        with pytest.raises(TooLarge):
            await skills.source(uri).read(Ref.parse(uri), max_bytes=size - 1)


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_levels_stop_at_the_skill_and_at_each_of_its_folders(skills: Any, limit: int) -> None:
    async def levels(uri: str) -> list[str]:
        source: CatalogSource = skills.source(uri)
        found, cursor = list[str](), None
        while True:
            page = await source.list_levels(Ref.parse(uri), depth=1, cursor=cursor, limit=limit)
            found += [str(entry.ref) for entry in page.items]
            cursor = page.cursor
            if cursor is None:
                return found

    assert await levels("skill://") == ["skill://brand/brief-writing"]
    assert await levels(LETTERS) == [
        LETTERS,
        f"{LETTERS}/SKILL.md",
        f"{LETTERS}/references/tone.md",
        f"{LETTERS}/templates/regional/eu.yml",
    ]


@pytest.mark.seed("O10")
async def test_changes_of_files_are_told_with_those_of_their_skill(skills: Any) -> None:
    async with heard(skills.catalogs["skill"], "skill://") as queue:
        skills.write("skills/brand/letters/references/tone.md", "# Another tone\n")
        change = await following(queue)
        assert (change.kind, str(change.ref)) == ("updated", f"{LETTERS}/references/tone.md")
        skills.write("skills/brand/letters/SKILL.md", MANIFEST.replace("Answers", "Writes"))
        told = [await following(queue) for _ in range(2)]
        assert [(one.kind, str(one.ref)) for one in told] == [("updated", LETTERS), ("updated", f"{LETTERS}/SKILL.md")]
        (skills.root / "skills/brand/zine/layout.md").unlink()
        assert str((await following(queue)).ref) == "skill://brand/zine/layout.md"


async def test_problems_say_what_keeps_clients_from_taking_a_skill(founded: Any) -> None:
    made = await founded(
        {
            "skills/a/한글.yml": "id: k\nname: k\n",
            "skills/a/other/SKILL.md": "---\nname: another\n---\n",
            "skills/lost/SKILL.md": MANIFEST,
            "skills/a/good/SKILL.md": "---\nname: good\ndescription: Fine.\n---\n",
            "skills/b/good/SKILL.md": "---\nname: good\ndescription: Fine too.\n---\n",
            "skills/b/good/notes.yml": "anything: goes\n",
        }
    )
    for number in range(512):
        made.write(f"skills/b/many/{number}.txt", "x")
    made.write("skills/b/many/SKILL.md", "---\nname: many\ndescription: Too many.\n---\n")
    assert await made.problems("skill") == [
        "skills/a/other/SKILL.md:2: clients cannot take it as a skill: name must be that of the folder, other",
        "skills/a/other/SKILL.md:2: description is missing: clients choose a skill by it",
        "skills/a/한글.yml:1: clients cannot take it as a skill: its name needs small letters a-z, digits and single "
        "hyphens",
        "skills/b/many/SKILL.md:1: clients cannot take it as a skill: more than 512 files, or 16 MiB",
        "skills/lost/SKILL.md:1: is not served: it does not stand at {function}/{name}.yml or "
        "{function}/{name}/SKILL.md",
    ]
