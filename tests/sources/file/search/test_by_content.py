"""Searching by content: exactly the files whose text matches, whether they are scanned or an index answers."""

import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.core.errors import InvalidParams
from octavo.core.ref import Ref
from octavo.sources.file import FileRoot, FileSource
from octavo.sources.file.search import ContentQuery, matches
from octavo.sources.file.search.needle import Needle
from octavo.sources.file.search.signatures import Known, Signatures

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["scanned", "remembered"])
async def ready(opened: Any, request: pytest.FixtureRequest) -> Any:
    """Opens a source that has not looked into any file, or into all of them."""

    async def ready(*roots: Any, **options: Any) -> FileSource:
        source: FileSource = await opened(*roots, **options)
        if request.param == "remembered":
            await source.learned()
        return source

    return ready


async def test_a_text_is_found_in_order_page_by_page(write: Any, ready: Any, containing: Any) -> None:
    for path in ("b/x.md", "a.md", "b.md", "b/a/z.md", "c.txt"):
        write(path, f"one\nthe needle is in {path}\n")
    write("none.md", "hay\n"), write("empty.md", "")
    source = await ready()
    assert await containing(source, "needle", limit=2) == ["a.md", "b/a/z.md", "b/x.md", "b.md", "c.txt"]
    assert await containing(source, "needle", "file://b") == ["b/a/z.md", "b/x.md"]
    assert await containing(source, "needle", "file://b/x.md") == ["b/x.md"]
    assert await containing(source, "needle is in c") == ["c.txt"]
    assert await containing(source, "needles") == []


async def test_case_matters_when_the_query_has_a_capital_letter(write: Any, ready: Any, containing: Any) -> None:
    write("a.md", "Straße ÉCOLE Needle"), write("b.md", "needle école"), write("c.md", "x nEEDLE \u212aelvin")
    source = await ready()
    assert await containing(source, "needle") == ["a.md", "b.md", "c.md"]
    assert await containing(source, "Needle") == ["a.md"]
    assert await containing(source, "needle", case=True) == ["b.md"]
    assert await containing(source, "NEEDLE", case=False) == ["a.md", "b.md", "c.md"]
    assert await containing(source, "école") == ["a.md", "b.md"]
    assert await containing(source, r"\w+LE\b", regex=True) == ["a.md", "c.md"]
    assert await containing(source, r"\Skel", regex=True) == []
    assert await containing(source, "kelvin") == []


async def test_korean_is_found_whatever_the_encoding(write: Any, ready: Any, containing: Any, root: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "cp949", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        (root / f"{encoding}.txt").write_bytes("2026년 예산안, 회의록과 Plan".encode(encoding))
    (root / "nfd.txt").write_text(unicodedata.normalize("NFD", "예산"), encoding="utf-8")
    (root / "latin.txt").write_bytes("une école".encode("latin-1"))
    everything = [
        "cp949.txt",
        "utf-16-be.txt",
        "utf-16-le.txt",
        "utf-16.txt",
        "utf-32.txt",
        "utf-8-sig.txt",
        "utf-8.txt",
    ]
    source = await ready()
    for query in ("예산", "회의록과 plan", "안,", "2026년", "년"):
        assert await containing(source, query) == everything
    assert await containing(source, "회의.과", regex=True) == everything
    assert await containing(source, "예산안", word=True) == everything
    assert await containing(source, "예산", word=True) == []


async def test_words_and_expressions_stay_on_a_line(write: Any, ready: Any, containing: Any) -> None:
    write("a.md", "foo bar\nbaz\n"), write("b.md", "foobar\r\nbaz_\r\n"), write("c.md", "\nbaz\n\n")
    source = await ready()
    assert await containing(source, "foo", word=True) == ["a.md"]
    assert await containing(source, "baz", word=True) == ["a.md", "c.md"]
    assert await containing(source, "^baz$", regex=True) == ["a.md", "c.md"]
    assert await containing(source, "bar$", regex=True) == ["a.md", "b.md"]
    assert await containing(source, "r[^x]baz", regex=True) == []
    assert await containing(source, "^$", regex=True) == ["c.md"]
    assert await containing(source, "bar|baz_", regex=True, word=True) == ["a.md", "b.md"]


@pytest.mark.parametrize("text", ["(", "a)(b", r"(a)\1", "(?=x)", "x{1001}{1001}"])
async def test_what_is_no_linear_expression_is_refused(opened: Any, containing: Any, text: str) -> None:
    for word in (False, True):
        with pytest.raises(InvalidParams):
            await containing(await opened(), text, regex=True, word=word)


async def test_what_is_no_text_is_not_searched(write: Any, ready: Any, containing: Any, root: Path) -> None:
    (root / "nul.txt").write_bytes(b"needle \0")
    (root / "late.txt").write_bytes(b"needle " + b"x" * 20_000 + b"\0")
    (root / "image.png").write_bytes(b"needle")
    (root / "odd.txt").write_bytes(b"needle \xff\xff")
    os.mkfifo(root / "pipe.txt")
    write("large.txt", "needle" + " " * 50_000), write("small.txt", "needle")
    source = await ready()
    assert await containing(source, "needle") == ["large.txt", "small.txt"]
    assert await containing(source, "needle", max_file_bytes=100) == ["small.txt"]


async def test_what_is_hidden_is_never_found(write: Any, ready: Any, containing: Any) -> None:
    for path in (".env", ".git/a.md", "k.pem", "a/.ssh/b.md", "program.exe", "kept.md"):
        write(path, "needle")
    assert await containing(await ready(), "needle") == ["kept.md"]


async def test_links_are_not_followed(write: Any, ready: Any, containing: Any, root: Path, tmp_path: Path) -> None:
    write("real.md", "needle"), write("out/secret.md", "needle", below=tmp_path)
    (root / "inside.md").symlink_to("real.md")
    (root / "outside.md").symlink_to(tmp_path / "out" / "secret.md")
    (root / "folder").symlink_to(tmp_path / "out", target_is_directory=True)
    assert await containing(await ready(), "needle") == ["real.md"]


async def test_include_and_exclude_are_patterns(write: Any, ready: Any, containing: Any) -> None:
    for path in ("a.md", "a.py", "docs/b.md", "docs/old/c.md", "src/d.py"):
        write(path, "needle")
    source = await ready()
    assert await containing(source, "needle", include=("*.md",)) == ["a.md", "docs/b.md", "docs/old/c.md"]
    assert await containing(source, "needle", include=("docs/*", "*.py"), exclude=("docs/old/*",)) == [
        "a.py", "docs/b.md", "src/d.py",
    ]  # fmt: skip


async def test_gitignore_files_hold_for_their_folder_and_below(write: Any, ready: Any, containing: Any) -> None:
    write(".gitignore", "# build\nbuild/\n*.log\n!keep.log\n/top.md\n**/cache/*\nsub/only.md\n")
    write("sub/.gitignore", "!again.log\nlocal.md\n")
    write("build/.gitignore", "!*\n")
    kept = ["keep.log", "sub/again.log", "sub/build.md", "sub/top.md", "x/local.md"]
    gone = ["a.log", "build/a.md", "cache/a.md", "sub/build/a.md", "sub/local.md", "sub/only.md", "top.md", "x/a.log"]
    for path in (*kept, *gone):
        write(path, "needle")
    source = await ready()
    assert await containing(source, "needle") == kept
    assert await containing(source, "needle", "file://sub") == ["sub/again.log", "sub/build.md", "sub/top.md"]
    everything = sorted((*kept, *gone), key=lambda path: path.split("/"))
    assert await containing(source, "needle", gitignore=False) == everything
    write(".gitignore", "sub\n")
    assert await containing(source, "needle") == [path for path in everything if not path.startswith("sub/")]


GITIGNORES = [
    ("a*\n!ab.md\n/b/\n[cd].md\n\\!x.md\nfoo/**/bar.md\n \ntrail.md   \nd?.md\n", "!a.md\n*\n!*.txt\n!*/\n"),
    ("*\n!*/\n!*.md\n/k/**\n!k/b/\n", "f\n"),
    ("**/b\r\ne/f/\r\nk/*\r\n!k/b\r\n", "/t.txt\n[!a].md\n"),
    ("foo/**\n!foo/1/\n[a-c]b.md\n[]x].md\n[bad\nbad\\\nk/**/y.md\n", "**/*.txt\n!f/t.txt\n"),
    ("\\a.md\nb/x.md\naa/\n*b.md\n!/ab.md\nsp\\ \n#c.md\n\\#c.md\n", "[[:alpha:]].txt\n[^[:alpha:]].md\n"),
    ("***.txt\nfoo/1/**/bar.md\n**/1/**\nk**\n", "*.m?\n!?.md\n"),
]
PATHS = [
    "a.md", "ab.md", "b/x.md",
    "e/b/x.md", "c.md", "cc.md", "!x.md", "foo/bar.md", "foo/1/2/bar.md", "trail.md", "dd.md",
    "e/a.md", "e/t.txt", "e/f/t.txt", "e/f/u.md", "k/ab.md", "k/b/y.md", "aa/z.md", "x.md", "].md", "bad/x.md", "#c.md",
    "foo/1/z.md",
]  # fmt: skip


@pytest.mark.parametrize("above, below", GITIGNORES)
async def test_gitignore_agrees_with_git(
    write: Any, opened: Any, containing: Any, root: Path, above: str, below: str
) -> None:
    for path in PATHS:
        write(path, "needle")
    (root / ".gitignore").write_bytes(above.encode())
    (root / "e/.gitignore").write_bytes(below.encode())
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    await anyio.run_process(["git", "init", "-q", str(root)])
    told = await anyio.run_process(["git", "-C", str(root), "ls-files", "-z", "-o", "--exclude-standard"])
    expected = [path for path in told.stdout.decode().split("\0") if path and not path.endswith(".gitignore")]
    assert sorted(await containing(await opened(extensions=["*"]), "needle", limit=50)) == sorted(expected)


async def test_a_page_that_runs_out_of_time_says_where_to_go_on(write: Any, ready: Any, containing: Any) -> None:
    for number in range(400):
        write(f"{number:03}.md", "needle" if number % 100 == 0 else "hay")
    source = await ready()
    query = ContentQuery(text="[n]eedle", regex=True)
    first = await source.search(Ref("file"), query, cursor=None, limit=100, deadline=0)
    assert first.cursor is not None and len(first.items) < 4
    assert await containing(source, "[n]eedle", regex=True, deadline=0) == ["000.md", "100.md", "200.md", "300.md"]


TEXTS = st.lists(
    st.sampled_from(["ab", "Ab", "b ", "예", "산", "é", "É", "\n", "x_", "1", "k", "\u212a", " "]), max_size=12
)
QUERIES = st.lists(st.sampled_from(["a", "ab", "B", "예", "산 ", "é", "k", "_", " "]), min_size=1, max_size=4).map(
    "".join
)


@given(
    TEXTS.map("".join), QUERIES, st.booleans(), st.sampled_from([True, False, "smart"]), st.booleans(), st.booleans()
)
def test_a_file_contains_what_its_lines_do(
    text: str, sought: str, regex: bool, case: Any, word: bool, windows: bool
) -> None:
    """The file, the lines and a naive reading agree; and what is remembered of the file never denies it."""
    query = ContentQuery(text=sought, regex=regex, case=case, word=word)
    raw = text.replace("\n", "\r\n" if windows else "\n")
    needle = Needle(query)
    is_in = needle.is_in(raw.encode(), b"a.txt")
    assert is_in == bool(matches(raw, query))
    sensitive = case is True or (case == "smart" and sought != sought.lower())
    letters = "".join(c if sensitive or not c.isalpha() else f"[{c.lower()}{c.upper()}]" for c in sought)
    around = rf"(?<!\w){letters}(?!\w)" if word else letters
    if not regex or "\u212a" not in text:  # RE2 and re fold the Kelvin sign in their own ways
        assert is_in == any(re.search(around, line) for line in text.split("\n"))
    signatures = Signatures(1, 1 << 20)
    signatures.sign(0, text.encode())
    if is_in:
        assert signatures.candidates(needle.pieces) in (None, [0])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["a", "b/c", "b/d", "회의"]), st.text("ab예 ", max_size=9)), max_size=8))
async def test_a_random_tree_gives_what_reading_everything_gives(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for number, (folder, text) in enumerate(files):
        place = root / folder / f"{number % 4}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    async with FileSource([FileRoot(root)], secret=b"secret") as source:
        listed = (await source.list(Ref("file"), cursor=None, limit=100)).items
        bodies = {entry.ref: (await source.read(entry.ref, max_bytes=100)).body for entry in listed}
        for remembered in (False, True):
            if remembered:
                await source.learned()
            for sought in ("ab", "a예", "예 ", "b", "aba"):
                page = await source.search(Ref("file"), ContentQuery(text=sought), cursor=None, limit=100)
                assert [entry.ref for entry in page.items] == [ref for ref, body in bodies.items() if sought in body]


def test_what_is_remembered_is_bounded() -> None:
    signatures = Signatures(5000, 100_000)
    for number in range(5000):
        signatures.sign(number, b"some text %d" % number)
    assert signatures.size <= 100_000
    assert 4321 in (signatures.candidates([b"text 4321"]) or [])
    for number in range(5000):
        signatures.sign(number, Known.IS_NO_TEXT)
    assert signatures.candidates([b"text 4321"]) == []


def test_a_word_is_sought_in_few_of_many_texts() -> None:
    signatures = Signatures(2000, 1 << 24)
    for number in range(2000):
        signatures.sign(number, b"number %d of many, %s" % (number, b"x" * (number % 2000)))
    assert signatures.next_unknown(0) is None
    assert 777 in (found := signatures.candidates([b"number 777 of"]) or []) and len(found) < 200
    signatures.forget(777)
    assert 777 in (signatures.candidates([b"something else"]) or []) and signatures.next_unknown(0) == 777
    signatures.sign(777, b"quite another text")
    assert 777 not in (signatures.candidates([b"number 777 of"]) or [])


async def test_a_large_file_is_looked_at_piece_by_piece(root: Path, ready: Any, containing: Any) -> None:
    filler = "일반 줄 plain line\n" * 60_000  # 1.5 MB
    for name, text in (("begin.txt", "needle\n" + filler), ("end.txt", filler + "needle 바늘"), ("none.txt", filler)):
        (root / name).write_text(text, encoding="utf-8")
    seam = filler.encode()[: (1 << 20) - 3].rsplit(b"\n", 1)[0]
    padding = b"x" * ((1 << 20) - 3 - len(seam) - 1)
    (root / "seam.txt").write_bytes(seam + b"\n" + padding + b"needle\n" + filler.encode())
    source = await ready()
    assert await containing(source, "needle") == ["begin.txt", "end.txt", "seam.txt"]
    assert await containing(source, "바늘") == ["end.txt"]
    assert await containing(source, "ne+dle$", regex=True) == ["begin.txt", "seam.txt"]
