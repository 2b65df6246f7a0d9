"""Prompt files: one JSON file a prompt, in the format of seed 002.

A broken file is reported with its line and the others load.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from octavo.core.errors import OctavoError
from octavo.core.ref import Ref
from octavo.core.surface import Audio, Image, PromptInfo
from octavo.prompts.arguments import arguments_of, properties
from octavo.prompts.jsonc import Broken, Document, parse
from octavo.prompts.jsonc import Path as Where
from octavo.prompts.template import Compile, Message, Part, ResourcePart, Role, Template, TextPart, variables

SUFFIXES = (".json", ".jsonc")
MAX_FILE_BYTES = 1 << 20
_MAX_ID = 128
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")
_KEYS: Mapping[str, tuple[str, ...]] = {"text": ("text",), "resource": ("uri",)}
_MEDIA_KEYS = ("data", "mimeType")


class Problem(NamedTuple):
    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def load(directories: Iterable[Path], compile_schema: Compile) -> tuple[list[Template], list[Problem]]:
    """Every prompt file directly in the directories, in the order of directories and then of names.

    Where two files have one id the first is served and the second is a problem.
    """
    templates: dict[str, Template] = {}
    problems: list[Problem] = []
    for directory in directories:
        try:
            files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES and path.is_file())
        except OSError as error:
            problems.append(Problem(str(directory), 1, f"the directory cannot be read: {error.strerror}"))
            continue
        for path in files:
            try:
                template = load_file(path, compile_schema)
            except Broken as broken:
                problems.append(Problem(str(path), broken.line, broken.reason))
                continue
            first = templates.setdefault(template.info.name, template)
            if first is not template:
                problems.append(
                    Problem(str(path), 1, f"the id {template.info.name!r} is already that of {first.origin}")
                )
    return list(templates.values()), problems


def load_file(path: Path, compile_schema: Compile) -> Template:
    """Raises Broken."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise Broken(1, f"the file is larger than {MAX_FILE_BYTES} bytes")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise Broken(1, f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Broken(error.object.count(b"\n", 0, error.start) + 1, "the file is not UTF-8") from None
    return _Builder(parse(text), compile_schema, str(path)).template()


class _Builder:
    """Turns a parsed file into a template; everything that is wrong is said with its line."""

    def __init__(self, document: Document, compile_schema: Compile, origin: str) -> None:
        self._document, self._compile, self._origin = document, compile_schema, origin
        self._declared: frozenset[str] = frozenset()

    def template(self) -> Template:
        top = self._object((), self._document.value)
        self._only((), top, ("id", "title", "description", "inputSchema", "messages", "$schema"))
        name = self._id(top)
        schema = self._object(("inputSchema",), top["inputSchema"]) if "inputSchema" in top else {"type": "object"}
        if schema.get("type") != "object":
            self._fail(("inputSchema",), 'inputSchema needs "type": "object"')
        try:
            check = self._compile(schema)
        except OctavoError as error:
            self._fail(("inputSchema",), str(error))
        self._declared = frozenset(properties(schema))
        info = PromptInfo(
            name=name,
            description=self._text((), top, "description"),
            title=self._text((), top, "title") if "title" in top else None,
            arguments=arguments_of(schema),
            input_schema=schema,
        )
        messages = tuple(self._message(("messages", i), m) for i, m in enumerate(self._array((), top, "messages")))
        return Template(info=info, schema=schema, check=check, messages=messages, definition=top, origin=self._origin)

    def _id(self, top: Mapping[str, Any]) -> str:
        name = unicodedata.normalize("NFC", self._text((), top, "id"))
        plain = all(c.isalnum() or c in "_.-" for c in name) and name.strip(".")
        if not plain or len(name) > _MAX_ID:
            self._fail(("id",), f"an id is 1 to {_MAX_ID} letters, digits, _ . or -")
        return name

    def _message(self, where: Where, value: Any) -> Message:
        message = self._object(where, value)
        self._only(where, message, ("role", "content"))
        role = self._text(where, message, "role")
        if role not in _ROLES:
            self._fail((*where, "role"), f"role is one of {', '.join(_ROLES)}, not {role!r}")
        parts = self._array(where, message, "content")
        return Message(role, tuple(self._part((*where, "content", i), part) for i, part in enumerate(parts)))

    def _part(self, where: Where, value: Any) -> Part:
        part = self._object(where, value)
        kind = self._text(where, part, "type")
        if kind not in ("text", "image", "audio", "resource"):
            self._fail((*where, "type"), f"type is one of text, image, audio, resource, not {kind!r}")
        self._only(where, part, ("type", *_KEYS.get(kind, _MEDIA_KEYS)))
        if kind == "text":
            return TextPart(self._template((*where, "text"), self._string(where, part, "text")))
        if kind == "resource":
            return ResourcePart(self._uri((*where, "uri"), self._text(where, part, "uri")))
        return self._media(where, part, kind)

    def _media(self, where: Where, part: Mapping[str, Any], kind: str) -> Image | Audio:
        mime_type = self._text(where, part, "mimeType")
        if not mime_type.startswith(f"{kind}/"):
            self._fail((*where, "mimeType"), f"the mimeType of an {kind} begins with {kind}/")
        try:
            data = base64.b64decode(self._text(where, part, "data"), validate=True)
        except (binascii.Error, ValueError):
            self._fail((*where, "data"), "data is not base64")
        return Image(data, mime_type) if kind == "image" else Audio(data, mime_type)

    def _uri(self, where: Where, uri: str) -> str:
        if next(iter(variables(self._template(where, uri))), None) is None:
            try:
                Ref.parse(uri)
            except OctavoError as error:
                self._fail(where, str(error))
        return uri

    def _template(self, where: Where, text: str) -> str:
        for name in variables(text):
            if name not in self._declared:
                self._fail(where, f"the variable {{{{{name}}}}} is not declared in inputSchema")
        return text

    def _object(self, where: Where, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._fail(where, f"{where[-1] if where else 'a prompt'} must be an object")
        return cast("dict[str, Any]", value)

    def _array(self, where: Where, holder: Mapping[str, Any], key: str) -> Sequence[Any]:
        value = holder.get(key)
        if not isinstance(value, list) or not value:
            self._fail((*where, key), f"{key} must be a list with at least one element")
        return cast("Sequence[Any]", value)

    def _text(self, where: Where, holder: Mapping[str, Any], key: str) -> str:
        text = self._string(where, holder, key)
        if not text.strip():
            self._fail((*where, key), f"{key} is empty")
        return text

    def _string(self, where: Where, holder: Mapping[str, Any], key: str) -> str:
        value = holder.get(key)
        if not isinstance(value, str):
            self._fail((*where, key), f"{key} must be text" if key in holder else f"{key} is missing")
        return value

    def _only(self, where: Where, holder: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in holder:
            if key not in known:
                self._fail((*where, key), f"unknown key {key!r}; known here: {', '.join(known)}")

    def _fail(self, where: Where, reason: str) -> NoReturn:
        raise Broken(self._document.line(where), reason)
