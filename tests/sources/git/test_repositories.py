"""What a hostile repository brings along has no effect: nothing runs, nothing leads out, nothing is unbounded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.sources.git.clones import Clone

from octavo.core.errors import InvalidParams, NotFound, OctavoError, SourceUnavailable, TooLarge
from octavo.core.ref import Ref
from octavo.sources._shared.git.refs import is_branch
from octavo.sources.git import GitSource

pytestmark = pytest.mark.anyio
FILE, FOLDER, LINK, MODULE = "100644", "40000", "120000", "160000"


async def listed(source: GitSource, scope: str = "git://") -> list[str]:
    page = await source.list(Ref.parse(scope), cursor=None, limit=1000)
    return [entry.ref.path for entry in page.items]


async def body(source: GitSource, uri: str) -> str | bytes:
    return (await source.read(Ref.parse(uri), max_bytes=1 << 20)).body


@pytest.mark.seed("O15")
@pytest.mark.parametrize("bare", [False, True])
async def test_a_clone_and_a_bare_repository_are_served_as_they_are_committed(
    clone: Clone, tmp_path: Path, bare: bool
) -> None:
    clone.commit({"a.md": "committed\n", "폴더/나.md": "둘\n"})
    clone.write({"a.md": "only in the work tree\n", "b.md": "not committed\n"})
    path = clone.path
    if bare:
        path = tmp_path / "bare.git"
        clone.git("clone", "--quiet", "--bare", "--no-local", ".", str(path))
    async with GitSource(path, secret=b"") as source:
        assert await listed(source) == ["a.md", "폴더/나.md"]
        assert await body(source, "git://a.md") == "committed\n"
        assert await listed(source, "git://폴더") == ["폴더/나.md"]
        assert await listed(source, "git://폴더/나.md") == ["폴더/나.md"]


async def test_loose_and_packed_objects_and_references_are_the_same(clone: Clone) -> None:
    clone.commit({f"{n}.md": f"text {n}\n" * 50 for n in range(20)})
    async with clone.source() as source:
        before = [await source.stat(Ref.parse(f"git://{n}.md")) for n in range(20)]
        clone.git("gc", "--quiet", "--prune=now")
        assert not (clone.git_dir / "refs/heads/main").exists(), "git has packed the branch"
        assert [await source.stat(Ref.parse(f"git://{n}.md")) for n in range(20)] == before
        clone.commit({"new.md": "new"})
        assert await body(source, "git://new.md") == "new"
    async with clone.source() as source:
        assert await body(source, "git://3.md") == "text 3\n" * 50


async def test_hooks_filters_and_configuration_of_a_repository_never_run(clone: Clone, tmp_path: Path) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch '{sprung}'\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    clone.commit({"a.md": "text $Id$\n"})
    clone.write({".gitattributes": "a.md filter=trap diff=trap ident working-tree-encoding=UTF-16 eol=crlf\n"})
    clone.git("add", ".gitattributes")
    clone.git("commit", "--quiet", "--message", "attributes")
    hooks = clone.git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        shutil.copy(trap, hooks / name)
    with (clone.git_dir / "config").open("a", encoding="utf-8") as config:
        config.write(
            f"[core]\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n\tpager = {trap}\n\thooksPath = {hooks}\n"
            f"\tworktree = /\n\talternateRefsCommand = {trap}\n"
            f'[filter "trap"]\n\tsmudge = {trap}\n\tclean = {trap}\n\tprocess = {trap}\n\trequired = true\n'
            f'[diff "trap"]\n\ttextconv = {trap}\n\tcommand = {trap}\n[include]\n\tpath = /dev/zero\n'
            "[extensions]\n\tpartialClone = origin\n\tworktreeConfig = true\n"
            f'[remote "origin"]\n\turl = ext::{trap}\n\tuploadpack = {trap}\n'
        )
    async with clone.source(extensions=["*"]) as source:
        assert await body(source, "git://a.md") == "text $Id$\n"
        assert await source.past(Ref.parse("git://a.md"), limit=10)
        with pytest.raises(NotFound):
            await source.stat(Ref.parse("git://missing.md"))
    assert not sprung.exists()


async def test_a_configuration_that_is_no_configuration_does_no_harm(clone: Clone) -> None:
    clone.commit({"a.md": "a"})
    (clone.git_dir / "config").unlink()
    os.mkfifo(clone.git_dir / "config")
    with anyio.fail_after(30):
        async with clone.source() as source:
            assert await body(source, "git://a.md") == "a"


async def test_links_submodules_and_odd_names_of_a_tree_are_not_there(clone: Clone) -> None:
    blob, secret = clone.put("blob", b"text"), clone.put("blob", b"/etc/passwd")
    inner = clone.tree((FILE, b"x.md", blob))
    odd = [
        b"..",
        b".",
        b".git",
        b".GIT",
        b"a/b.md",
        b"back\\slash.md",
        b"\xff.md",
        b"nul\x01.md",
        b"",
        b"x" * 256 + b".md",
    ]
    tree = clone.tree(
        (FILE, b"good.md", blob), (LINK, b"link.md", secret), (MODULE, b"module.md", "1" * 40),
        ("100600", b"mode.md", blob),
        (FILE, b".env", blob), *((FILE, name, blob) for name in odd), *((FOLDER, name, inner) for name in odd),
        (FILE, "가.md".encode(), blob), (FILE, "\u1100\u1161.md".encode(), secret),
    )  # fmt: skip
    clone.commit_tree(tree)
    async with clone.source(extensions=["*"]) as source:
        assert await listed(source) == ["good.md", "가.md"]
        assert await body(source, "git://가.md") == "text", "of two forms of one name the normal one is served"
        for path in ("link.md", "module.md", "mode.md", ".git/x.md", ".env", "a/b.md", "link.md/x"):
            for ask in (source.stat(Ref.parse(f"git://{path}")), source.read(Ref.parse(f"git://{path}"), max_bytes=9)):
                with pytest.raises(NotFound):
                    await ask


async def test_trees_that_hold_each_other_are_bounded(clone: Clone) -> None:
    """Ten small trees, ten thousand million files."""
    tree = clone.tree(*((FILE, b"%d.md" % n, clone.put("blob", b"x")) for n in range(10)))
    empty = clone.tree()
    for _ in range(9):
        tree = clone.tree(*((FOLDER, b"%d" % n, tree) for n in range(10)))
        empty = clone.tree(*((FOLDER, b"%d" % n, empty) for n in range(10)))
    clone.commit_tree(
        clone.tree(
            (FOLDER, b"bomb", tree),
            (FOLDER, b"good", clone.tree((FILE, b"a.md", clone.put("blob", b"a")))),
            (FOLDER, b"nothing", empty),
        )
    )
    with anyio.fail_after(30):
        async with clone.source() as source:
            with pytest.raises(SourceUnavailable, match="more than 1000000 files"):
                await listed(source)
            assert await listed(source, "git://good") == ["good/a.md"]
            assert await listed(source, "git://nothing") == []
            assert await body(source, "git://bomb/1/2/3/4/5/6/7/8/9/0.md") == "x"


async def test_a_tree_deeper_than_any_address_ends(clone: Clone) -> None:
    tree = clone.tree((FILE, b"deep.md", clone.put("blob", b"x")))
    for _ in range(300):
        tree = clone.tree((FOLDER, b"d", tree))
    clone.commit_tree(clone.tree((FOLDER, b"d", tree), (FILE, b"a.md", clone.put("blob", b"x"))))
    async with clone.source() as source:
        assert await listed(source) == ["a.md"]


async def test_a_large_folder_is_listed_page_by_page(clone: Clone) -> None:
    blob = clone.put("blob", b"x")
    clone.commit_tree(clone.tree(*((FILE, b"%06d.md" % n, blob) for n in range(5_000))))
    async with clone.source() as source:
        found, cursor = list[str](), None
        while True:
            page = await source.list(Ref("git"), cursor=cursor, limit=1_700)
            found += [entry.ref.name for entry in page.items]
            cursor = page.cursor
            if cursor is None:
                break
    assert found == [f"{n:06d}.md" for n in range(5_000)]


@pytest.mark.parametrize("data", [b"100644 a.md", b"100644 a.md\0short", b"\0" * 50, b"no space\0" + b"1" * 20])
async def test_a_damaged_tree_is_told_and_is_no_crash(clone: Clone, data: bytes) -> None:
    clone.commit({"a.md": "a"})
    async with clone.source() as source:
        clone.commit_tree_of_anything(clone.put("tree", data))
        try:
            assert await listed(source) == []
        except SourceUnavailable as error:
            assert "damaged" in error.message


async def test_objects_that_are_missing_or_of_another_kind_are_told(clone: Clone) -> None:
    clone.commit({"a.md": "here"})
    blob = clone.put("blob", b"gone soon")
    tree = clone.tree((FILE, b"a.md", blob), (FILE, b"b.md", clone.put("blob", b"b")), (FILE, b"c.md", clone.tree()))
    clone.commit_tree(tree)
    (clone.git_dir / "objects" / blob[:2] / blob[2:]).unlink()
    async with clone.source() as source:
        assert await listed(source) == ["a.md", "b.md", "c.md"], "as in a partial clone"
        assert await body(source, "git://b.md") == "b"
        for path in ("a.md", "c.md"):
            with pytest.raises(SourceUnavailable, match="missing or damaged"):
                await body(source, f"git://{path}")


async def test_an_object_that_is_not_what_its_id_says_is_refused(clone: Clone) -> None:
    clone.commit({"a.md": "a"})
    blob, other = clone.put("blob", b"wanted"), clone.put("blob", b"forged")
    clone.commit_tree(clone.tree((FILE, b"a.md", blob)))
    place = clone.git_dir / "objects" / blob[:2] / blob[2:]
    place.write_bytes((clone.git_dir / "objects" / other[:2] / other[2:]).read_bytes())
    async with clone.source() as source:
        with pytest.raises(SourceUnavailable):
            await body(source, "git://a.md")


async def test_a_blob_over_the_limit_is_refused_before_it_is_read(clone: Clone) -> None:
    clone.commit({"a.md": "x" * 5_000})
    async with clone.source() as source:
        with pytest.raises(TooLarge) as refused:
            await source.read(Ref.parse("git://a.md"), max_bytes=4_999)
        assert refused.value.data == {"uri": "git://a.md", "size": 5_000, "limit": 4_999}
        part = await source.read(Ref.parse("git://a.md?range=10-19"), max_bytes=100)
        assert part.body == "x" * 10


@pytest.mark.parametrize("made", ["link to an object", "fifo", "link to a pack"])
async def test_objects_of_other_repositories_are_not_reached_by_links(
    clone: Clone, cloned: Callable[..., Clone], made: str
) -> None:
    other = cloned("other")
    other.commit({"secret.md": "the other's secret"})
    secret = other.git("rev-parse", "HEAD:secret.md")
    clone.commit({"a.md": "a"})
    clone.commit_tree(clone.tree((FILE, b"a.md", secret)))
    place = clone.git_dir / "objects" / secret[:2] / secret[2:]
    place.parent.mkdir(exist_ok=True)
    if made == "fifo":
        os.mkfifo(place)
    elif made == "link to an object":
        place.symlink_to(other.git_dir / "objects" / secret[:2] / secret[2:])
    else:
        other.git("gc", "--quiet", "--prune=now")
        for pack in (other.git_dir / "objects/pack").iterdir():
            (clone.git_dir / "objects/pack").mkdir(exist_ok=True)
            (clone.git_dir / "objects/pack" / pack.name).symlink_to(pack)
    with anyio.fail_after(30), pytest.raises(SourceUnavailable):
        async with clone.source() as source:
            await body(source, "git://a.md")


async def _alternates(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "objects/info").mkdir(exist_ok=True)
    (clone.git_dir / "objects/info/alternates").write_text(f"{other.git_dir}/objects\n", encoding="utf-8")


async def _worktree(clone: Clone, other: Clone) -> None:
    shutil.rmtree(clone.git_dir)
    (clone.path / ".git").write_text(f"gitdir: {other.git_dir}\n", encoding="utf-8")


async def _common(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "commondir").write_text(f"{other.git_dir}\n", encoding="utf-8")


async def _linked(clone: Clone, other: Clone) -> None:
    shutil.rmtree(clone.git_dir)
    (clone.path / ".git").symlink_to(other.git_dir)


async def _linked_objects(clone: Clone, other: Clone) -> None:
    shutil.rmtree(clone.git_dir / "objects")
    (clone.git_dir / "objects").symlink_to(other.git_dir / "objects")


async def _linked_head(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "HEAD").unlink()
    (clone.git_dir / "HEAD").symlink_to(other.git_dir / "HEAD")


async def _linked_branch(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "refs/heads/main").unlink()
    (clone.git_dir / "refs/heads/main").symlink_to(other.git_dir / "refs/heads/main")


async def _climbing_head(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "HEAD").write_text("ref: refs/heads/../../../other/.git/refs/heads/main\n", encoding="utf-8")


async def _circle(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "refs/heads/main").write_text("ref: refs/heads/main\n", encoding="utf-8")


async def _sha256(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "refs/heads/main").write_text("1" * 64 + "\n", encoding="utf-8")


async def _reftable(clone: Clone, other: Clone) -> None:
    (clone.git_dir / "HEAD").write_text("ref: refs/heads/.invalid\n", encoding="utf-8")


async def _nothing(clone: Clone, other: Clone) -> None:
    shutil.rmtree(clone.git_dir)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_alternates, "borrows objects"), (_worktree, "name that repository"), (_common, "leads elsewhere"),
        (_linked, "leads elsewhere"), (_linked_objects, "leads elsewhere"), (_linked_head, "leads elsewhere"),
        (_linked_branch, "cannot be read"), (_climbing_head, "damaged"), (_circle, "damaged"), (_sha256, "SHA-256"),
        (_reftable, "git refs migrate"), (_nothing, "no git repository"),
    ],
)  # fmt: skip
async def test_a_repository_that_leads_elsewhere_is_refused_with_a_reason(
    clone: Clone, cloned: Callable[..., Clone], tmp_path: Path, make: Callable[..., object], says: str
) -> None:
    other = cloned("other")
    other.commit({"secret.md": "the other's secret"})
    clone.commit({"a.md": "a"})
    await make(clone, other)  # type: ignore[misc]
    with pytest.raises(SourceUnavailable, match=says) as refused:
        async with clone.source(name="handbook"):
            pass
    assert str(refused.value).startswith("The git repository of handbook: ")
    assert str(tmp_path) not in str(refused.value)


async def test_a_repository_of_another_user_is_refused_unless_the_operator_trusts_it(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.commit({"a.md": "a"})
    real = os.fstat

    def of_somebody(fd: int) -> os.stat_result:
        found = real(fd)
        return os.stat_result(
            [*found[:4], 54_321, *found[5:]], {key: getattr(found, key) for key in ("st_mtime_ns", "st_ctime_ns")}
        )

    monkeypatch.setattr("octavo.sources._shared.fs.confine.os.fstat", of_somebody)
    with pytest.raises(SourceUnavailable, match=r"another user, .*; owner: any trusts them"):
        async with clone.source():
            pass
    async with clone.source(owner="any") as source:
        assert await listed(source) == ["a.md"]


async def test_without_the_library_the_error_says_what_to_install(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.commit({"a.md": "a"})
    monkeypatch.setitem(__import__("sys").modules, "pygit2", None)
    with pytest.raises(SourceUnavailable, match="install Octavo with its extra git"):
        async with clone.source():
            pass


async def test_a_source_that_is_not_open_says_so(clone: Clone) -> None:
    clone.commit({"a.md": "a"})
    source = clone.source()
    async with source:
        pass
    for work in (source.stat(Ref.parse("git://a.md")), source.list(Ref("git"), cursor=None, limit=1)):
        with pytest.raises(SourceUnavailable):
            await work
    assert source.stamp(Ref("git"), "list") is None


@pytest.mark.parametrize("commit", ["", "HEAD", "main", "1" * 39, "z" * 40, "../../x", "1" * 40, "-1"])
async def test_a_commit_is_named_by_its_whole_id_and_nothing_else(clone: Clone, commit: str) -> None:
    clone.commit({"a.md": "a"})
    async with clone.source() as source:
        with pytest.raises(OctavoError) as refused:
            await source.read(Ref("git", ("a.md",), (("commit", commit),)), max_bytes=100)
        assert isinstance(refused.value, InvalidParams | SourceUnavailable)


@pytest.mark.parametrize("name", ["main", "feature/가나", "release-1.0", "a.b", "user@host"])
def test_branches_may_have_these_names(name: str) -> None:
    assert is_branch(name)


@pytest.mark.parametrize(
    "name",
    ["", "/", "a//b", "/a", "a/", "..", "a..b", ".a", "a/.b", "a.lock", "a.", "@", "a@{1}", "-a", "a b", "a~1", "a^",
     "a:b", "a?", "a*", "a[", "a\\b", "a\0b", "x" * 501],
)  # fmt: skip
def test_branches_may_not_have_these_names(name: str) -> None:
    assert not is_branch(name)
