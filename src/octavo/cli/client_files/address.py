"""What may be written into a client's file as an address: a plain one, and nothing in it that could be a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from octavo.cli._logs import hidden
from octavo.core.errors import InvalidParams
from octavo.net.urls import parse_url

_PLAIN: Final = re.compile(r"""(?i:https?)://[^\x00-\x20"<>\\^`|#\x7f-\U0010ffff]+""")
_SECRETS: Final = re.compile(
    r"(?:key|token|secret|pass|password|passwd|passphrase|pwd|auth|authorization|bearer|jwt|credentials?|sig|signature"
    r"|session|sessionid|sid|code|pat)\Z"
)
_SHORTEST: Final = 20  # of what is long
_LEFT: Final = 10  # characters of it that are no words
_WORD: Final = re.compile(r"[A-Z]?[a-z]{3,}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?![0-9])|[^A-Za-z0-9]")
_NUMBER: Final = re.compile(r"[0-9]+")
_RUN: Final = re.compile(r"[A-Za-z0-9]{24,}")


def is_address(url: str) -> bool:
    try:
        parse_url(_without_user(url))
    except (InvalidParams, ValueError):
        return False
    return _PLAIN.fullmatch(url) is not None


def holds_secret(url: str) -> bool:
    """Of an address. What is long and random is taken for one, wherever it stands."""
    parts = urlsplit(url)
    given = [(name, value) for name, value in parse_qsl(parts.query.replace(";", "&")) if value]
    return (
        "@" in parts.netloc
        or hidden(url) != url
        or any(_SECRETS.search(re.sub(r"[\W_]", "", name).lower()) for name, _ in given)
        or any(map(_is_random, (*_pieces(parts.path), *_pieces(parts.query))))
    )


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def _pieces(text: str) -> Iterator[str]:
    return (piece for piece in re.split(r"[/&;=:,]", unquote(text)) if len(piece) >= _SHORTEST)


def _is_random(text: str) -> bool:
    """Letters and digits that are neither words with a number or two, nor a date."""
    rest = _WORD.sub("", text)
    digits = sum(map(str.isdigit, rest))
    cased = rest.lower() != rest and rest.upper() != rest
    mixed = len(rest) >= _LEFT and len(rest) - digits >= 3 and (digits >= 2 or cased)
    return mixed or any(len(_NUMBER.findall(run)) >= 3 for run in _RUN.findall(text))
