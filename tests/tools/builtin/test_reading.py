"""`read` and `info`: parts, budgets, media, and what is too large."""

from __future__ import annotations

import re
from typing import Any

import pytest

from octavo.core.errors import Forbidden, InvalidParams, NotFound, TooLarge
from octavo.core.tools import Image, Link, Text

pytestmark = [pytest.mark.anyio, pytest.mark.seed("T2", "T4", "B5", "A5")]

GUIDE = "# Guide\n\n## Install\n\n### Linux\nfirst\n\n### Windows\nsecond\n\n## Use\nthird\n"


async def test_a_text_is_given_as_it_is(serve: Any) -> None:
    tools = await serve(files={"docs/안내.md": GUIDE})
    result = await tools("read", target="docs/안내.md")
    (block,) = result.content
    assert block.text == GUIDE
    assert block.meta["dev.octavo/tokens"] > 10
    assert block.meta["dev.octavo/etag"] == (await tools.data("info", target="docs/안내.md"))["etag"]
    assert result.structured is None


@pytest.mark.parametrize("target", ["docs/a.md", "./docs/a.md", "file://docs/a.md", "docs//a.md", "file://docs/%61.md"])
async def test_a_target_is_a_path_or_a_uri(serve: Any, target: str) -> None:
    tools = await serve(files={"docs/a.md": "here"})
    assert await tools.text("read", target=target) == "here"


@pytest.mark.parametrize("name", ["100% sure?.md", "a#b.md", "localhost/x.md", "a b.md"])
async def test_what_means_something_in_a_uri_is_a_name_in_a_path(serve: Any, name: str) -> None:
    tools = await serve(files={name: "here"})
    assert await tools.text("read", target=name) == "here"


async def test_a_target_does_not_climb(serve: Any) -> None:
    tools = await serve()
    for name in ("read", "info", "list", "search", "delete"):
        with pytest.raises(Forbidden):
            await tools(name, target="../secret.md", **({"query": "x"} if name == "search" else {}))
    with pytest.raises(Forbidden):
        await tools("write", target="docs/../../x.md", content="")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({"lines": [5, 6]}, "### Linux\nfirst\n"),
        ({"lines": [-2, -1]}, "## Use\nthird\n"),
        ({"head": 1}, "# Guide\n"),
        ({"tail": 1}, "third\n"),
        ({"bytes": [2, 7]}, "Guide"),
        ({"section": "Linux"}, "### Linux\nfirst\n\n"),
        ({"section": "Install > Windows", "line_numbers": True}, " 8\t### Windows\n 9\tsecond\n10\t\n"),
        ({"head": 2, "line_numbers": True}, "1\t# Guide\n2\t\n"),
    ],
)
async def test_a_part_is_lines_bytes_or_a_section(serve: Any, asked: dict[str, Any], given: str) -> None:
    tools = await serve(files={"guide.md": GUIDE})
    assert await tools.text("read", target="guide.md", **asked) == given


async def test_an_outline_names_sections_with_their_lines(serve: Any) -> None:
    tools = await serve(files={"guide.md": GUIDE, "plain.txt": "x"})
    lines = (await tools.text("read", target="guide.md", outline=True)).splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1-12", "3-10", "5-7", "8-10", "11-12"]
    assert "Linux" in lines[2]
    assert "No outline" in await tools.text("read", target="plain.txt", outline=True)


async def test_two_parts_at_once_are_refused(serve: Any) -> None:
    tools = await serve(files={"guide.md": GUIDE})
    with pytest.raises(InvalidParams, match="lines and head"):
        await tools("read", target="guide.md", lines=[1, 2], head=3)
    with pytest.raises(InvalidParams, match="target"):
        await tools("read")


async def test_a_long_text_is_cut_and_says_how_to_go_on(serve: Any) -> None:
    """Following what the marks say gives the whole text, each answer inside of the budget."""
    text = "".join(f"line {number} {{'x': [1, 2, 3]}} 한글\n" for number in range(1, 9001))
    tools = await serve(files={"long.txt": text})
    got, asked = "", dict[str, Any]()
    for _ in range(40):
        result = await tools("read", target="long.txt", **asked)
        block = result.content[0]
        assert len(block.text.encode()) <= 64_000
        assert block.meta["dev.octavo/tokens"] <= 20_000
        mark = re.search(r"\[cut here: read on with lines: \[(\d+), (\d+)\]\]\Z", block.text)
        if mark is None:
            got += block.text
            assert len(result.content) == 1
            break
        assert isinstance(result.content[1], Link)
        got += block.text[: mark.start()]
        asked = {"lines": [int(mark[1]), int(mark[2])]}
    assert got == text


async def test_a_line_that_is_too_long_is_continued_by_bytes(serve: Any) -> None:
    text = "head\n" + "가나다라" * 10_000 + "\ntail\n"
    tools = await serve(files={"long.txt": text})
    got, asked = "", dict[str, Any]({"lines": [2, 3]})
    for _ in range(40):
        block = (await tools("read", target="long.txt", **asked)).content[0]
        mark = re.search(r"\n\[cut here: read on with bytes: \[(\d+), (\d+)\]\]\Z", block.text)
        if mark is None:
            got += block.text
            break
        got += block.text[: mark.start()]
        asked = {"bytes": [int(mark[1]), int(mark[2])]}
    assert "head\n" + got == text


LARGE = 'sources: {work: {kind: file, roots: [./work], extensions: ["*"]}}\nlimits: {read: 10KB}'


async def test_of_a_file_over_the_limit_parts_can_be_read(serve: Any) -> None:
    lines = [f"{number:06d} 가나다\n" for number in range(1, 5001)]
    text = "".join(lines)
    tools = await serve(LARGE, {"big.log": text})
    first = (await tools("read", target="big.log")).content
    assert text.startswith(first[0].text.partition("[cut here")[0].rstrip("\n"))
    assert "read on with bytes: [" in first[0].text
    assert isinstance(first[1], Link)
    assert await tools.text("read", target="big.log", head=3) == "".join(lines[:3])
    assert await tools.text("read", target="big.log", tail=2) == "".join(lines[-2:])
    assert await tools.text("read", target="big.log", lines=[3000, 3002]) == "".join(lines[2999:3002])
    cut = await tools.text("read", target="big.log", lines=[1000, 4000])
    assert re.search(r"read on with lines: \[\d+, 4000\]\]\Z", cut)
    with pytest.raises(InvalidParams, match="not there"):
        await tools("read", target="big.log", lines=[6000, 6001])
    with pytest.raises(TooLarge):
        await tools("read", target="big.log", section="x")


async def test_bytes_of_a_large_file_meet(serve: Any) -> None:
    text = "a" + "가나다라마바사" * 4000  # so that pieces end inside of characters
    tools = await serve(LARGE, {"big.txt": text})
    got, asked = "", dict[str, Any]()
    for _ in range(40):
        said = await tools.text("read", target="big.txt", **asked)
        mark = re.search(r"\n\[cut here: read on with bytes: \[(\d+), (\d+)\] \(of \d+\)\]\Z", said)
        if mark is None:
            got += said
            break
        got += said[: mark.start()]
        asked = {"bytes": [int(mark[1]), len(text.encode())]}
    assert got == text


async def test_an_image_is_an_image_and_other_bytes_are_a_link(serve: Any) -> None:
    tools = await serve(files={"a.png": b"\x89PNG\r\n\x1a\n\0\0", "a.zip": b"PK\3\4\0\0\xff\xfe"})
    (image,) = (await tools("read", target="a.png")).content
    assert image == Image(b"\x89PNG\r\n\x1a\n\0\0", "image/png")
    sentence, link = (await tools("read", target="a.zip")).content
    assert "application/zip, 8 bytes" in sentence.text
    assert link.uri == "file://a.zip"


async def test_of_many_one_that_fails_does_not_fail_the_others(serve: Any) -> None:
    tools = await serve(files={"a.md": "one", "b.md": "two"})
    result = await tools("read", targets=["a.md", "missing.md", "b.md"])
    assert [block.text for block in result.content][::2] == ["==> a.md <==\none", "==> b.md <==\ntwo"]
    assert "NotFound" in result.content[1].text
    assert not result.is_error
    assert (await tools("read", targets=["x", "y"])).is_error
    with pytest.raises(NotFound):
        await tools("read", target="x")


async def test_many_share_one_budget(serve: Any) -> None:
    tools = await serve(files={f"{n}.txt": "word " * 20_000 for n in range(4)})
    result = await tools("read", targets=[f"{n}.txt" for n in range(4)])
    assert sum(len(block.text.encode()) for block in result.content if isinstance(block, Text)) <= 64_000


async def test_the_shape_resource_is_the_whole_object(serve: Any) -> None:
    tools = await serve(files={"a.md": "# A\n", "b.bin": b"\0\1"})
    result = await tools("read", target="a.md", shape="resource")
    assert result.structured == {
        "uri": "file://a.md",
        "name": "a.md",
        "mimeType": "text/markdown",
        "metadata": {},
        "contents": [{"uri": "file://a.md", "mimeType": "text/markdown", "text": "# A\n"}],
    }
    assert "# A" not in result.content[0].text
    assert (await tools.data("read", target="b.bin", shape="resource"))["contents"][0]["blob"] == "AAE="
    tools.put("c.txt", "x " * 50_000)
    with pytest.raises(TooLarge, match="read a part"):
        await tools("read", target="c.txt", shape="resource")


async def test_a_secret_is_not_shown(serve: Any) -> None:
    tools = await serve(files={"a.env.txt": "x = 1\nkey = AKIAQ3EGRJ5XTWMZPBR7\n"})
    assert "AKIAQ3EGRJ5XTWMZPBR7" not in await tools.text("read", target="a.env.txt")


async def test_info_tells_what_is_known(serve: Any) -> None:
    tools = await serve(files={"docs/a.md": b"# A\r\n\r\n## B\r\ntext", "p.png": b"\x89PNG\r\n\x1a\n"})
    known = await tools.data("info", target="docs/a.md")
    assert {key: known[key] for key in ("uri", "name", "type", "size", "mimeType", "lines", "symbols", "lineEnds")} == {
        "uri": "file://docs/a.md", "name": "a.md", "type": "file", "size": 17, "mimeType": "text/markdown", "lines": 4,
        "symbols": 2, "lineEnds": "CRLF",
    }  # fmt: skip
    assert known["version"] and known["etag"] and known["modified"].endswith("Z")
    assert "lines" not in await tools.data("info", target="p.png")
    assert (await tools.data("info", target="docs"))["type"] == "directory"
    with pytest.raises(NotFound):
        await tools("info", target="nothing.md")


KOREAN = "안녕하세요. 예산 보고서입니다.\n회의는 세 시입니다.\n"


async def test_the_encoding_is_detected_and_told_or_chosen(serve: Any) -> None:
    tools = await serve(files={"a.txt": KOREAN.encode("cp949"), "b.txt": KOREAN, "c.txt": "é".encode("latin-1")})
    text, note = (await tools("read", target="a.txt")).content
    assert (text.text, note.text) == (KOREAN, "[the file is in cp949]")
    assert text.meta["dev.octavo/encoding"] == "cp949"
    assert (await tools.data("info", target="a.txt"))["encoding"] == "cp949"
    (plain,) = (await tools("read", target="b.txt")).content
    assert "dev.octavo/encoding" not in plain.meta and plain.meta["dev.octavo/tokens"] > 0
    assert await tools.text("read", target="c.txt", encoding="latin-1") == "é"
    for wrong in ("utf-8", "no-such", "x&as=text", "rot13"):
        with pytest.raises(InvalidParams):
            await tools("read", target="a.txt", encoding=wrong)


async def test_configured_encodings_are_tried_first_by_reads_edits_and_searches(serve: Any) -> None:
    text = "テスト設定\n部長の承認\n"
    source = '{kind: file, roots: [./work], extensions: ["*"], write: true, encodings: [shift_jis, euc-kr]}'
    tools = await serve(f"sources: {{work: {source}}}", {"a.txt": text.encode("cp932")})
    assert await tools.text("read", target="a.txt") == text
    assert (await tools.data("search", query="承認"))["files"][0]["hits"][0]["line"] == 2
    await tools("edit", target="a.txt", edits=[{"old": "承認", "new": "確認"}])
    await tools("write", target="a.txt", content="部長\n", mode="append")
    assert (tools.root / "a.txt").read_bytes() == (text.replace("承認", "確認") + "部長\n").encode("cp932")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "big5", "cp932"])
async def test_another_encoding_is_no_way_around_the_redaction(serve: Any, encoding: str) -> None:
    secret = "AKIAQ3EGRJ5XTWMZPBR7"
    tools = await serve(files={"a.txt": f"키{secret} {secret}\n"})
    try:
        said = await tools.text("read", target="a.txt", encoding=encoding)
    except InvalidParams:
        return
    for other in ("utf-8", encoding):
        assert secret[1:].encode() not in said.encode(other, "ignore")


async def test_every_encoding_of_the_configuration_is_one_that_is_spoken() -> None:
    from typing import get_args

    from octavo.sources._shared.encodings import Encoding
    from octavo.sources._shared.text import preferring

    assert len(preferring(get_args(Encoding))) > 15
