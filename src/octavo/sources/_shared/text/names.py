"""The encodings we speak, each under one name."""

from __future__ import annotations

import codecs
from typing import Final

from octavo.core.errors import InvalidParams

MARKS: Final = {
    "utf-8": codecs.BOM_UTF8,
    "utf-32-le": codecs.BOM_UTF32_LE,  # before UTF-16, whose mark is its beginning
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}

# Only character sets: Python's own table also has codecs that compress, escape or run away from their input.
_ALIASES: Final = {
    "utf-8": "utf8 utf-8-sig",
    "utf-16-le": "utf-16 utf16 utf-16le utf16-le ucs-2 unicode",
    "utf-16-be": "utf-16be utf16-be",
    "utf-32-le": "utf-32 utf32 utf-32le utf32-le",
    "utf-32-be": "utf-32be utf32-be",
    "cp949": (
        "euc-kr euckr uhc ks-c-5601-1987 ks-c-5601 ksc-5601 ksc5601 ms949 windows-949 x-windows-949 korean "
        "korean-iso-8bit"
    ),
    "cp932": "shift-jis sjis x-sjis shiftjis ms-kanji ms932 windows-31j japanese-shift-jis",
    "euc_jp": "euc-jp eucjp x-euc-jp japanese-iso-8bit",
    "gb18030": "gbk x-gbk gb2312 cp936 euc-cn windows-936 chinese-iso-8bit",
    "big5": "big5-tw cn-big5 x-x-big5",
    "cp950": "windows-950 ms950",
    "cp1252": "windows-1252 ansi",
    "latin-1": "latin1 iso-8859-1 iso8859-1 l1",
    "ascii": "us-ascii",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "cp874": "tis-620 windows-874",
    "koi8_r": "koi8-r",
    "koi8_u": "koi8-u",
    "iso8859_2": "iso-8859-2 latin2 latin-2",
    "iso8859_15": "iso-8859-15 latin9 latin-9",
}
_BY_NAME: Final = {
    spelled: name for name, aliases in _ALIASES.items() for spelled in (name, name.replace("_", "-"), *aliases.split())
}


def canonical(name: str) -> str:
    """Our name of an encoding, however it is spelled; InvalidParams with what there is for any other."""
    found = known(name)
    if found is None:
        raise InvalidParams(f"Unknown encoding. Use one of: {', '.join(sorted(_ALIASES))}")
    return found


def known(name: str) -> str | None:
    """As `canonical`; None for any other."""
    return _BY_NAME.get(name.strip().casefold().replace("_", "-")) or _BY_NAME.get(name.strip().casefold())
