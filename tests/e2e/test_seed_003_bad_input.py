"""Seed 003 over a handbook in which much is wrong: the rest is served, and the listing says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.harness import Place
from tests.e2e.maison_haru import METADATA, ORCHESTRATOR, Door, Doors, maison_haru, opened, uris

pytestmark = [pytest.mark.slow, pytest.mark.seed("O2", "O9")]

GOOD = "sop://brand/campaign-brief"
HEAD = "---\nid: {0}\ntitle: {0}\nversion: 1.0.0\nstatus: active\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MEGABYTES = 50
# Each file, and a word of the problem that its entry tells.
FAULTY: dict[str, tuple[str | bytes, str]] = {
    "sops/brand/bomb.md": (f"---\n{BOMB}---\n", "quotes"),
    "sops/brand/deep.md": (f"---\nid: {'[' * 5000}\n---\n", ""),
    "sops/brand/types.md": ("---\nid: [1, 2]\ntitle: {a: b}\nversion: true\nstatus: 7\ntags: 3\n---\n", "id"),
    "sops/brand/no-id.md": ("---\ntitle: x\nversion: 1.0.0\nstatus: active\n---\n", "id"),
    "sops/brand/one.md": (f"{HEAD.format('sop-twice')}---\n", "id"),
    "sops/brand/two.md": (f"{HEAD.format('sop-twice')}---\n", "id"),
    "sops/brand/no-end.md": (HEAD.format("sop-no-end"), ""),
    "sops/brand/empty.md": ("", "front matter"),
    "sops/brand/twice.md": ("---\nid: a\nid: b\n---\n", "id"),
    "sops/brand/tag.md": ("---\nid: !!python/object/apply:os.system ['true']\n---\n", "quotes"),
    "sops/brand/binary.md": (b"---\nid: x\n\x00\x01\xff\xfe\x80\x81\n---\n", "text"),
    "sops/brand/nowhere.md": (f"{HEAD.format('sop-nowhere')}function: func-nowhere\n---\n", "function"),
    "skills/brand/list.yml": ("- a\n- b\n", ""),
    "org/roles/snake.yml": ("id: role-snake\nname: snake\nreports_to: role-tail\n", "circle"),
    "org/roles/tail.yml": ("id: role-tail\nname: tail\nreports_to: role-snake\n", "circle"),
}
BOOK = "sop://brand/book"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = maison_haru(tmp_path_factory.mktemp("faulty"))
    for path, (body, _) in FAULTY.items():
        (place.root / path).write_bytes(body.encode() if isinstance(body, str) else body)
    line = "가나다라 마바사 아자차카 타파하\n" * 1000
    head = f"{HEAD.format('sop-book')}---\n"
    (place.root / "sops/brand/book.md").write_text(head + line * (MEGABYTES * 1_000_000 // len(line.encode())), "utf-8")
    return place


@pytest.fixture(scope="module")
def doors(place: Place) -> Iterator[Doors]:
    yield from opened(place)


@pytest.fixture(params=["stdio legacy", "stdio modern", "http modern"])
def door(request: pytest.FixtureRequest, doors: Doors) -> Door:
    return doors(request.param, ORCHESTRATOR)


def address(path: str) -> str:
    folder, _, rest = path.rpartition(".")[0].partition("/")
    scheme = {"sops": "sop", "skills": "skill", "org": "org"}[folder]
    return f"{scheme}://{rest.replace('roles/', 'role/')}"


# Wrong only together with others, which may be hidden: two files with one id, a circle.
TOGETHER = (
    "sops/brand/one.md", "sops/brand/two.md", "org/roles/snake.yml", "org/roles/tail.yml",
)  # fmt: skip


def test_the_list_has_every_file_and_says_what_is_wrong_with_it(door: Door) -> None:
    listed = {entry["uri"]: entry for entry in door.listed()}
    assert "problems" not in listed[GOOD]["_meta"][METADATA]
    assert listed[BOOK]["size"] > MEGABYTES * 900_000
    for path in TOGETHER:
        assert "problems" not in listed[address(path)]["_meta"][METADATA], "the other file may be hidden: check tells"
    for path, (_, word) in FAULTY.items():
        if path in TOGETHER:
            continue
        problems = listed[address(path)]["_meta"][METADATA]["problems"]
        assert all(one.startswith("line ") for one in problems)
        assert word in " ".join(problems), (path, problems)


def test_the_tools_say_it_too(door: Door) -> None:
    result = door.tool("list", target="sop://brand", limit=1000)
    line = next(line for line in result["content"][0]["text"].splitlines() if line.startswith("no-id"))
    assert "[problem: line " in line
    (entry,) = [one for one in result["structuredContent"]["entries"] if one["uri"] == "sop://brand/no-id"]
    assert entry["metadata"]["problems"]


def test_every_file_is_read_as_it_is_or_refused_with_a_reason(door: Door, place: Place) -> None:
    for path, (body, _) in FAULTY.items():
        content = door.read(address(path))
        assert content.get("text") == body or isinstance(body, bytes)
        parsed = door.send("resources/read", uri=f"{address(path)}?view=parsed")
        assert "result" in parsed or parsed["error"]["data"]["reason"] in ("invalid_params", "too_large"), path
    assert door.read(GOOD)["text"] == (place.root / "sops/brand/campaign-brief.md").read_text(encoding="utf-8")


def test_a_document_of_50_megabytes_is_listed_refused_whole_and_read_in_parts(door: Door) -> None:
    refused = door.error("resources/read", uri=BOOK)
    assert (refused["code"], refused["data"]["reason"]) == (-31006, "too_large")
    assert refused["data"]["size"] > refused["data"]["limit"]
    part = door.tool("read", target=BOOK)["content"]
    assert part[0]["text"].startswith(HEAD.format("sop-book")) and len(str(part)) < 200_000
    parsed = door.told(f"{BOOK}?view=parsed")
    assert parsed["id"] == "sop-book"


def test_filters_matches_and_relations_work_beside_it(door: Door) -> None:
    assert GOOD in uris(door.listed(filter={"under": "sop://", "function": "brand", "status": "active"}))
    assert door.told("skill://?match=예산")["matches"][0]["uri"] == "skill://finance/budget-check"
    relations: Any = door.told("org://function/brand?view=relations")["relations"]
    assert GOOD in uris(relations["sops"])
    assert "org://role/tail" in uris(door.told("org://role/snake?view=relations")["relations"]["roles"])
