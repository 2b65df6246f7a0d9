"""What a text says of its own encoding counts before any guess, as long as it can be so."""

from pathlib import Path

import pytest

from octavo.core.errors import InvalidParams
from octavo.core.query import ContentQuery
from octavo.core.ref import Ref
from octavo.sources._shared.text import cut_at_characters, declared, decode, encode
from octavo.sources.file import FileRoot
from octavo.sources.file.writable import WritableFileSource

SHORT = "請求書"  # in EUC-JP, the bytes of Korean syllables too
RUSSIAN = "Заявки"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<?xml version='1.0' encoding='EUC-JP'?><a>{}</a>", "euc_jp"),
        ('<?xml version="1.0" encoding = "x-euc-jp" standalone="yes"?>\n<a>{}</a>', "euc_jp"),
        ("<!doctype html><title>{}</title><meta charset=euc-jp>", "euc_jp"),
        (
            "\r\n <HTML><!-- <meta charset=big5> --><META HTTP-EQUIV='Content-Type' CONTENT='x; charset=EUC-JP'>{}",
            "euc_jp",
        ),
        ("#!/usr/bin/python\n# -*- coding: euc-jp -*-\nx = '{}'\n", "euc_jp"),
        ("# vim: set fileencoding=euc_jp :\nx = '{}'\n", "euc_jp"),
        ("<?xml version='1.0' encoding='iso-8859-2'?><a>Zażółć gęślą jaźń, šťastný</a>", "iso8859_2"),
        ("# encoding: EUC-JP\nputs '{}'\n", "euc_jp"),
        (";; -*- mode: lisp; coding: euc-jp-unix -*-\n({})\n", "euc_jp"),
        ("// {}\n// vim: ts=4 fenc=euc-jp\n", "euc_jp"),
        ("// {}\n" + "// more\n" * 500 + "/* vim: set ts=4 fenc=euc-jp: */\n", "euc_jp"),
    ],
)
def test_what_a_text_says_is_its_encoding(text: str, name: str) -> None:
    raw = text.replace("{}", SHORT).encode(name)
    found = decode(raw, "text/plain")
    assert found is not None
    assert (found.text, found.encoding) == (raw.decode(name), name)
    assert encode(found.text, found.encoding, bom=found.bom) == raw
    assert cut_at_characters(raw, 0, len(raw), "text/plain", head=raw)[1] == found.text or "more" in text


@pytest.mark.parametrize(
    ("text", "name", "is_read_as"),
    [
        ("<?xml version='1.0' encoding='utf-8'?><a>안녕하세요 여러분</a>", "cp949", "cp949"),
        ("<?xml version='1.0' encoding='euc-kr'?><a>안녕하세요 여러분</a>", "utf-8", "utf-8"),
        ("<meta charset=iso-8859-1><p>안녕하세요 여러분, 반갑습니다</p>", "cp949", "cp949"),
        ("<meta charset=iso-8859-1><p>“café” – déjà vu</p>", "cp1252", "cp1252"),
        ("<meta charset=euc-kr><p>café déjà vu, à bientôt</p>", "cp1252", "cp1252"),
        ("# -*- coding: rot13 -*-\n# 안녕하세요 여러분\n", "cp949", "cp949"),
        ("# 안녕하세요 여러분\n\n# coding: shift_jis\n", "cp949", "cp949"),
        ("한국어 문서: <meta charset=shift_jis> 라고 쓰면\n", "cp949", "cp949"),
        ("<meta charset=utf-16><p>안녕하세요 여러분</p>", "cp949", "cp949"),
    ],
)
def test_what_cannot_be_so_or_is_said_elsewhere_counts_nothing(text: str, name: str, is_read_as: str) -> None:
    found = decode(text.encode(name), "text/html")
    assert found is not None
    assert (found.encoding, found.text) == (is_read_as, text)


def test_a_byte_order_mark_counts_more_than_what_is_said() -> None:
    raw = encode("<?xml version='1.0' encoding='euc-kr'?><a>안녕</a>", "utf-8", bom=True)
    found = decode(raw, "application/xml")
    assert found is not None and (found.encoding, found.bom) == ("utf-8", True)


def test_syllables_that_are_letters_of_utf_8_by_chance_are_what_the_text_says() -> None:
    raw = "# coding: euc-kr\n# 카타\n".encode("cp949")
    assert raw.decode("utf-8") == "# coding: euc-kr\n# īŸ\n"
    found = decode(raw, "text/x-python")
    assert found is not None and found.encoding == "cp949"


def test_nothing_is_believed_under_a_name_that_promises_no_text() -> None:
    raw = f"# coding: euc-jp\n{SHORT}".encode("euc_jp")
    assert declared(raw) == "euc_jp"
    assert decode(raw, "application/octet-stream") is None


@pytest.mark.parametrize("begin", range(4))
def test_a_part_is_in_the_encoding_that_the_file_says(begin: int) -> None:
    whole = f"<?xml version='1.0' encoding='koi8-r'?>\n{RUSSIAN}\n".encode("koi8_r") * 100
    part = cut_at_characters(whole[4000:], begin, 60, "application/xml", head=whole[:1024])
    assert "".join(map(str, part)) == whole[4000:].decode("koi8_r")
    assert cut_at_characters(whole[4000:], begin, 60, "application/xml", head=b"")[1] != part[1]


@pytest.mark.anyio
async def test_such_files_are_read_searched_and_written_in_their_encoding(root: Path, tmp_path: Path) -> None:
    raw = f"<?xml version='1.0' encoding='koi8-r'?>\n<a>{RUSSIAN}</a>\n".encode("koi8_r")
    (root / "a.xml").write_bytes(raw)
    ref = Ref.parse("file://a.xml")
    async with WritableFileSource([FileRoot(root)], secret=b"", journal=tmp_path / "journal") as source:
        content = await source.read(ref, max_bytes=1000)
        assert RUSSIAN in content.body and content.encoding == "koi8_r"
        found = await source.search(Ref("file"), ContentQuery(text=RUSSIAN), cursor=None, limit=9)
        assert [entry.ref for entry in found.items] == [ref]
        await source.write(ref, str(content.body).replace("</a>", "!</a>"), if_match=content.etag)
        assert (root / "a.xml").read_bytes() == raw.replace(b"</a>", b"!</a>")
        with pytest.raises(InvalidParams, match="koi8_r"):
            await source.write(ref, "안녕", if_match=None)
