"""The encoding that a text says it is in: XML, HTML, and the lines that Python, Emacs and Vim look for.

By the content alone, so that whoever writes a file back finds the same as whoever reads it, whatever it is called.
"""

from __future__ import annotations

import re
from typing import Final

from octavo.sources._shared.text.names import known

HEAD: Final = 1024  # bytes of the beginning that are looked at: what HTML allows
_FEW: Final = 2  # lines in which Python and Emacs look
_SOME: Final = 5  # lines in which Vim looks, at either end
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_XML: Final = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")
_META: Final = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_HASH: Final = re.compile(rb"\A[ \t\f]*#.*?coding[:=][ \t]*([\w.-]+)")
_EMACS: Final = re.compile(rb"-\*-(?:.*?[ \t;])?coding[ \t]*:[ \t]*([\w.-]+).*?-\*-")
_VIM: Final = re.compile(rb"(?:^|[ \t])(?:vim?|ex):.*?\b(?:fileencoding|fenc)=([\w.-]+)")
_ENDS: Final = re.compile(r"-(?:unix|dos|mac)\Z")  # of lines, behind a name of Emacs


def declared(raw: bytes | bytearray) -> str | None:
    """Our name of it; None where nothing is said, or nothing that we know. What is said need not be so."""
    head, tail = bytes(raw[:HEAD]), bytes(raw[-HEAD:])
    if not any(word in part for part in (head, tail) for word in (b"coding", b"harset", b"HARSET", b"fenc")):
        return None  # quickly: nearly every file
    found = _of_markup(head) if head.lstrip()[:1] == b"<" else None
    return found or _of_lines(head.split(b"\n"), tail.split(b"\n")[-_SOME:])


def _of_markup(head: bytes) -> str | None:
    found = _XML.match(head) or _META.search(_COMMENT.sub(b"", head))
    return None if found is None else _named(found[1])


def _of_lines(first: list[bytes], last: list[bytes]) -> str | None:
    for line in first[:_FEW]:
        for pattern in (_EMACS, _HASH):
            found = pattern.search(line)
            if found is not None and (name := _named(found[1])):
                return name
    for line in (*first[:_SOME], *last):
        found = _VIM.search(line)
        if found is not None and (name := _named(found[1])):
            return name
    return None


def _named(text: bytes) -> str | None:
    """What is read as ASCII to here is in none of the wide encodings, whatever it says."""
    name = known(_ENDS.sub("", text.decode("ascii", "replace")))
    return None if name is None or name.startswith(("utf-16", "utf-32")) else name
