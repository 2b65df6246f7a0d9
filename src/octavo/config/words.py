"""The small languages inside values: schemes, patterns, addresses and their templates, names."""

from __future__ import annotations

import importlib
import re
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from octavo.core.errors import OctavoError
from octavo.core.glob import Glob
from octavo.core.ref import Ref

RESERVED_SCHEMES = ("tool", "prompt", "permission", "changes", "server")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,63}\Z")
_VARIABLE = re.compile(r"\{\+?([A-Za-z_][A-Za-z0-9_]*)\}")  # of RFC 6570: {name}, and {+path} with slashes
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:; ?[A-Za-z0-9_-]+=[A-Za-z0-9_.-]+)*\Z")


def nfc(text: str) -> str:
    """In the form that addresses have. An editor, or a name that was copied from a disk, may write the other one: it
    looks the same, and would be compared in vain."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def variables(template: str) -> tuple[str, ...]:
    """The names between braces, in order."""
    return tuple(_VARIABLE.findall(template))


def check_template(template: str) -> str:
    """`scheme://path/{name}`, whose variables have different names."""
    names = variables(template)
    if not names:
        raise ValueError("has no variable: write {name} where a part of the address varies")
    if len(set(names)) != len(names):
        raise ValueError("uses a variable twice")
    check_uri(_VARIABLE.sub("x", template))
    return nfc(template)


def check_uri(uri: str) -> str:
    if "{" in uri or "}" in uri:
        raise ValueError("has braces that are no {name}")
    try:
        Ref.parse(uri)
    except OctavoError as error:
        raise ValueError(f"is no address: {error}") from None
    return nfc(uri)


def check_url(url: str) -> str:
    scheme, separator, host = url.partition("://")
    if scheme not in ("http", "https") or not separator or not host or not url.isprintable() or " " in url:
        raise ValueError("must be an http or https address")
    return url


def check_uri_or_template(uri: str) -> str:
    return check_template(uri) if "{" in uri else check_uri(uri)


def check_scheme(scheme: str) -> str:
    if scheme in RESERVED_SCHEMES:
        raise ValueError(f"{scheme}:// is Octavo's own; choose another scheme")
    if not _SCHEME.match(scheme):
        raise ValueError("must be a scheme: small letters, digits, + . -, beginning with a letter")
    return scheme


def check_pattern(pattern: str) -> str:
    try:
        Glob(pattern)
    except OctavoError as error:
        raise ValueError(str(error)) from None
    return nfc(pattern)


def check_expression(expression: str) -> str:
    re2: Any = importlib.import_module("re2")  # untyped, and only wanted where somebody writes an expression
    options = re2.Options()
    options.log_errors = False
    try:
        matches_nothing = re2.compile(expression, options).search("") is not None
    except re2.error:
        raise ValueError("is no regular expression of RE2 (no look-around, no back-references)") from None
    if matches_nothing:
        raise ValueError("matches the empty text, so it would match everywhere")
    return expression


def check_extension(extension: str) -> str:
    if not extension.strip(". ") or any(c in extension for c in "/\\\x00"):
        raise ValueError('must be a suffix such as .md, a whole name such as Makefile, or "*" for all')
    return nfc(extension)


def check_name_pattern(pattern: str) -> str:
    if not pattern or "/" in pattern:
        raise ValueError("is matched against the name of a file or folder, so it has no slash")
    return nfc(pattern)


def check_mime_type(mime_type: str) -> str:
    if not _MIME.match(mime_type):
        raise ValueError("must be a media type such as text/markdown")
    return mime_type


def check_agent(name: str) -> str:
    if name == "local" or name == "*" or name.startswith("role:"):
        raise ValueError(f"{name!r} has a meaning of its own; choose another id")
    return check_word(name)


def check_word(name: str) -> str:
    if not name or not name.isprintable() or " " in name:
        raise ValueError("must be a name without spaces")
    return nfc(name)


def check_who(who: str) -> str:
    check_word(who.removeprefix("role:"))
    return nfc(who)


def one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def verbs(value: object) -> object:
    """Raises ValueError for a verb that there was once: nobody has a right to what is hidden."""
    given = one_or_many(value)
    if isinstance(given, list | tuple) and "read_unredacted" in given:
        raise ValueError(
            "read_unredacted is no verb: no right shows what is hidden. What a source hides is set by redact.sources, "
            "such as redact: {sources: {handbook: off}}"
        )
    return given


Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=1)]
Name = Annotated[str, AfterValidator(check_word)]
AgentId = Annotated[str, AfterValidator(check_agent)]
Scheme = Annotated[str, AfterValidator(check_scheme)]
MimeType = Annotated[str, AfterValidator(check_mime_type)]
Extension = Annotated[str, AfterValidator(check_extension)]
NamePattern = Annotated[str, AfterValidator(check_name_pattern)]
Expression = Annotated[str, AfterValidator(check_expression)]
UriTemplate = Annotated[str, AfterValidator(check_template)]
UriOrTemplate = Annotated[str, AfterValidator(check_uri_or_template)]
Pattern = Annotated[str, AfterValidator(check_pattern)]
Who = Annotated[str, AfterValidator(check_who)]
Whos = Annotated[
    tuple[Who, ...], Field(min_length=1), BeforeValidator(one_or_many, json_schema_input_type=str | list[str])
]
Patterns = Annotated[
    tuple[Pattern, ...], Field(min_length=1), BeforeValidator(one_or_many, json_schema_input_type=str | list[str])
]
