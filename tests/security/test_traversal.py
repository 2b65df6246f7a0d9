"""No address reaches outside a root: thousands of hostile ones, on a tree full of links that lead out."""

from pathlib import Path
from typing import Literal

import anyio
import pytest
from tests.security.corpus import CANARY, hostile_uris, leaks_to_a_naive_reader, plant

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource

pytestmark = pytest.mark.anyio


def shown(error: OctavoError, uri: str, ref: Ref | None) -> str:
    """All of an error that its caller did not send itself."""
    text = f"{error.message} {dict(error.data)}"
    for sent in (uri, "" if ref is None else str(ref)):
        text = text.replace(sent, "") if sent else text
    return text


@pytest.mark.seed("F3", "F8")
@pytest.mark.parametrize("symlinks", ["inside", "refuse"])
@pytest.mark.parametrize("confinement", ["openat2", "walk"])
async def test_no_hostile_address_gets_a_byte_from_outside_or_a_path_of_the_server(
    tmp_path: Path, confinement: Literal["openat2", "walk"], symlinks: Literal["inside", "refuse"]
) -> None:
    """Demand S1 of the security notes: 0 bytes from outside, 0 crashes, 0 server paths in errors."""
    root, outside = plant(tmp_path)
    uris = hostile_uris(root, outside)
    assert len(uris) >= 5_000
    options = {"extensions": ["*"], "hidden": (), "confinement": confinement, "symlinks": symlinks}
    async with FileSource([FileRoot(root)], secret=b"s", **options) as source:  # type: ignore[arg-type]
        for uri in uris:
            try:
                ref = Ref.parse(uri)
            except OctavoError as error:
                assert str(tmp_path) not in shown(error, uri, None)
                continue
            for call in (
                lambda ref=ref: source.stat(ref),
                lambda ref=ref: source.read(ref, max_bytes=1 << 20),
                lambda ref=ref: source.list(ref, cursor=None, limit=100),
                lambda ref=ref: source.complete("path", ref.path, {}),
            ):
                with anyio.fail_after(30):
                    try:
                        answer = await call()
                    except OctavoError as error:
                        assert str(tmp_path) not in shown(error, uri, ref), uri
                    else:
                        assert CANARY not in repr(answer), uri
                        assert "canary.md" not in repr(answer), uri


@pytest.mark.seed("F3")
def test_the_corpus_would_open_a_reader_that_joins_paths(tmp_path: Path) -> None:
    """A corpus that nothing falls for would prove nothing."""
    root, outside = plant(tmp_path)
    uris = hostile_uris(root, outside)
    assert uris == hostile_uris(root, outside), "the same ones every time"
    assert sum(leaks_to_a_naive_reader(root, uri) for uri in uris) > 100


@pytest.mark.seed("F3")
@pytest.mark.parametrize("confinement", ["openat2", "walk"])
async def test_what_a_hostile_tree_lists_is_inside_and_can_be_read(
    tmp_path: Path, confinement: Literal["openat2", "walk"]
) -> None:
    """The same tree is of use to honest callers: links inside the root work, and say where they lead."""
    root, _ = plant(tmp_path)
    async with FileSource([FileRoot(root)], secret=b"s", confinement=confinement) as source:
        page = await source.list(Ref("file"), cursor=None, limit=1000)
        assert [(str(e.ref), e.target and str(e.target)) for e in page.items] == [
            ("file://docs/a.md", None),
            ("file://docs/deep/a.md", None),
            ("file://docs/deep/deeper/a.md", None),
            ("file://docs/deep/deeper/deepest/a.md", None),
            ("file://inside.md", "file://docs/a.md"),
        ]
        for uri, target in (
            ("file://inside-dir/a.md", "file://docs/deep/a.md"),
            ("file://docs/self/self/a.md", "file://docs/a.md"),
        ):
            content = await source.read(Ref.parse(uri), max_bytes=100)
            assert (content.body, str(content.entry.ref), str(content.entry.target)) == ("inside\n", uri, target)
