"""What a corpus says of one text."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

# `published`: the issuer gave it a form of its own, which tells it from any other text. `named`: so many letters or
# digits, which mean something only beside the name of the service. `generic`: passwords and keys of no form at all.
# Beside these: what is marked as an example, public by design, or personal data of some sort.
Kind = str

_MARKED = re.compile(
    r"(?i)example|sample|dummy|fake|placeholder|changeme|redacted|your[_-]|x{4}|(.)\1{5}|0?12345678|abcdefgh|\.\.\.|\*\*\*"
    r"|qwerty|9876543|abcdef|abcd1234|abc123|1a2b3c4d|random|hello_?world|555\)?[ -]?01\d\d|deadbeef|foobar"
    r"|(.{4,8})\2\2"
)


class Case(NamedTuple):
    """`hidden`: what must not be readable; empty for a near miss. `family`: the rule of theirs that it is for."""

    kind: Kind
    family: str
    text: str
    hidden: tuple[str, ...] = ()
    whole: bool = False  # this is no value but the text around one: it must change
    split: str = ""  # what decides on which side it is held; the family where it is empty

    @property
    def held_out(self) -> bool:
        """A third by chance, which nobody looks at while rules are written. By family where there are families: a
        rule that was written for one case of a form finds all others."""
        return hashlib.sha256((self.split or self.family).encode()).digest()[0] % 3 == 0


def is_marked(secret: str) -> bool:
    """Whether somebody would see that this is no credential but shows how one looks."""
    return _MARKED.search(secret.removeprefix("A" * 21)) is not None  # which Twitter's all begin with


# Keys that go to every browser, and the numbers of who has one: by what the rule is called, and by the issuer's prefix.
_PUBLIC = re.compile(
    r"(?i)pub(?:lic|lish(?:able)?)?[-_ ]?(?:api[-_]?)?key|access[-_]id|client[-_ ]id|app[-_ ]id|browserkey"
    r"|(?<!bit)bucket|domain|(?<!webhook)(?<!sensitive)[- ](?:url|host)(?:\.\d)?$"
)
_PUBLIC_VALUE = re.compile(
    r"pk_(?:live|test)_|pk\.|pub-c-|phc_|NRBR-|00D\w{12,15}\Z|[\w-]+\.apps\.googleusercontent\.com|oa2-client-id_"
)


def is_public(secret: str) -> bool:
    """Whether its form says that it is no secret but the name of who has one."""
    return _PUBLIC_VALUE.match(secret) is not None


def judged(kind: Kind, family: str, text: str, hidden: tuple[str, ...]) -> Case:
    """With the examples set apart, and what does not stand in the text judged by whether the text changes."""
    if _PUBLIC.search(family) or any(map(is_public, hidden)):
        kind = "public by design"
    elif any(is_marked(one) for one in hidden):
        kind = "marked as example"
    if all(one and one in text for one in hidden):
        return Case(kind, family, text, hidden)
    return Case(kind, family, text, (text,), whole=True)
