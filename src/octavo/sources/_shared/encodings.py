"""Encodings that the operator can name, for texts that are not in UTF-8."""

from __future__ import annotations

from typing import Literal, TypeAlias

Encoding: TypeAlias = Literal[
    "cp949", "euc-kr", "shift_jis", "cp932", "euc-jp", "gb18030", "gbk", "gb2312", "big5", "cp950", "cp1250", "cp1251",
    "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "koi8-r", "koi8-u", "latin-1",
    "iso-8859-2", "iso-8859-15",
]  # fmt: skip
