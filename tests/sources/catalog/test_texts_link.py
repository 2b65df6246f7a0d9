"""Documents refer to each other by relative links, and a site's pages by links from its root."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sources.catalog.test_layouts import Served, served

from octavo.core.ref import Ref
from octavo.sources.catalog import CatalogSource

__all__ = ["served"]

pytestmark = [pytest.mark.anyio, pytest.mark.seed("O18")]


async def relations(catalog: CatalogSource, uri: str) -> dict[str, list[str]]:
    told: Any = json.loads((await catalog.read(Ref.parse(f"{uri}?view=relations"), max_bytes=1 << 20)).body)
    return {key: [one["uri"] for one in told[key]] for key in ("links_to", "linked_from")}


@pytest.mark.parametrize(
    "link",
    [
        "[b](../other/b.md)", "[b](../other/b.md#part)", "[b](<../other/b.md>)", "[b](../other/b)", "[b](../other/b/)",
        "[b](/other/b)", "[b](/other/b/#part)", "[b](/other/b.html)", "[b]: ../other/b.md",
        "<a class='x' href=\"/other/b/\">b</a>",
        "[b [c]](../other/b.md)", "[b](../../other/b/)",
    ],
)  # fmt: skip
async def test_a_link_is_a_relation_there_and_back(served: Served, link: str) -> None:
    catalog = await served("doc", {"site/team/a.md": f"# A\n\n{link}\n", "site/other/b.md": "# B\n"})
    assert await relations(catalog, "doc://site/team/a") == {"links_to": ["doc://site/other/b"], "linked_from": []}
    assert await relations(catalog, "doc://site/other/b") == {"links_to": [], "linked_from": ["doc://site/team/a"]}


@pytest.mark.parametrize(
    "text",
    ["`[b](b.md)`", "```\n[b](b.md)\n```", "![b](b.md)", "[b](https://x.test/b.md)", "[b](#b)", "[b](mailto:b.md)"],
)
async def test_code_pictures_and_other_sites_are_no_links(served: Served, text: str) -> None:
    catalog = await served("doc", {"a.md": f"# A\n\n{text}\n", "b.md": "# B\n"})
    assert (await relations(catalog, "doc://a"))["links_to"] == []
    assert await catalog.problems() == []


@pytest.mark.parametrize(
    "text",
    [
        "<!-- Refined by [none](none.md) -->", "<!--\n[none](none.md)\n```\n-->", "<!-- a --> x <!-- [n](none.md)\n-->",
    ],
)  # fmt: skip
async def test_what_stands_in_a_comment_is_no_link_and_what_stands_behind_it_is(served: Served, text: str) -> None:
    catalog = await served("doc", {"a.md": f"# A\n\n{text} [b](b.md)\n\n[c](c.md)\n", "b.md": "b", "c.md": "c"})
    assert (await relations(catalog, "doc://a"))["links_to"] == ["doc://b", "doc://c"]
    assert await catalog.problems() == []


@pytest.mark.parametrize("text", ["`<!--` [b](b.md)\n\n-->", "<!-- [b](b.md)", "```\n<!--\n```\n[b](b.md) -->"])
async def test_what_is_no_comment_hides_no_link(served: Served, text: str) -> None:
    catalog = await served("doc", {"a.md": f"# A\n\n{text}\n", "b.md": "b"})
    assert (await relations(catalog, "doc://a"))["links_to"] == ["doc://b"]


async def test_a_text_that_two_names_have_is_complained_about_once(served: Served, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/README.md").symlink_to("index.md")
    catalog = await served("doc", {"index.md": "[none](none.md)\n"})
    assert [str(one) for one in await catalog.problems()] == ["index.md:1: none.md leads nowhere"]


async def test_a_link_to_a_folder_leads_to_its_page(served: Served) -> None:
    files = {"a.md": "[team](team/) [other](./other)\n", "team/index.md": "x", "other/README.md": "x"}
    catalog = await served("doc", files)
    assert (await relations(catalog, "doc://a"))["links_to"] == ["doc://team/index", "doc://other/README"]


@pytest.mark.parametrize("link", ["/guide/b.html", "/guide/b.html#part", "../guide/b.html", "/guide/b", "/guide/", "b"])
async def test_a_link_to_a_page_as_it_is_built_leads_to_its_text(served: Served, link: str) -> None:
    files = {
        "source/guide/a.html.md": f"[b]({link})\n",
        "source/guide/b.html.md": "b",
        "source/guide/index.html.md": "x",
    }
    leads_to = "doc://source/guide/index.html" if link.endswith("/") else "doc://source/guide/b.html"
    catalog = await served("doc", files)
    assert (await relations(catalog, "doc://source/guide/a.html"))["links_to"] == [leads_to]


async def test_a_page_is_meant_before_another_of_its_name_without_html(served: Served) -> None:
    catalog = await served("doc", {"a.md": "[b](b.html) [c](b)\n", "b.md": "1", "b.html.md": "2"})
    assert (await relations(catalog, "doc://a"))["links_to"] == ["doc://b.html", "doc://b"]


async def test_paths_in_front_matter_and_links_of_other_formats_are_links(served: Served) -> None:
    files = {
        "a.md": "---\nrelated: [b.md, ../c.md, none.md]\n---\n",
        "b.md": "b",
        "d.rst": "See :doc:`b` and :doc:`the a <a>`.\n",
        "f.txt": "See :doc:`the b </b>`.\n",
        "e.adoc": "See xref:b.adoc[b] and link:a.md[a].\n",
    }
    catalog = await served("doc", files)
    assert (await relations(catalog, "doc://a"))["links_to"] == ["doc://b"]
    assert (await relations(catalog, "doc://b"))["linked_from"] == ["doc://a", "doc://d", "doc://e", "doc://f"]


async def test_a_change_of_a_text_changes_the_relations(served: Served, tmp_path: Any) -> None:
    catalog = await served("doc", {"a.md": "[b](b.md)", "b.md": "b", "c.md": "c"})
    assert (await relations(catalog, "doc://b"))["linked_from"] == ["doc://a"]
    (tmp_path / "store/a.md").write_text("[c](c.md) now\n", "utf-8")
    assert (await relations(catalog, "doc://b"))["linked_from"] == []
    assert (await relations(catalog, "doc://c"))["linked_from"] == ["doc://a"]


async def test_an_address_as_a_link_writes_it_is_a_spelling_of_the_entry(served: Served) -> None:
    catalog = await served("doc", {"team/a.md": "# A\n", "team/b.md.md": "# B\n", "team/b.md": "# Other\n"})
    for uri, name in (
        ("doc://team/a.md", "doc://team/a"),
        ("doc://team/a.md?view=parsed", "doc://team/a?view=parsed"),
        ("doc://team/b.md", "doc://team/b.md"),  # an address of its own
        ("doc://team/none.md", None),
    ):
        first = next(iter(await catalog.meanings(Ref.parse(uri))), None)
        assert (first and [str(one) for one in first]) == (name and [name])
