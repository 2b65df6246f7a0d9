"""From a parsed file to a template; everything that is wrong is said with its line."""

from __future__ import annotations

import base64
import binascii
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, cast

from octavo.core.errors import OctavoError
from octavo.core.languages import chosen, is_tag
from octavo.core.ref import Ref
from octavo.core.tools import Audio, Image, PromptInfo
from octavo.prompts.arguments import arguments_of, properties, with_further
from octavo.prompts.jsonc import JsonText, NotJson
from octavo.prompts.jsonc import Path as Where
from octavo.prompts.substitution import Address, Fill, NoTemplate, address, compiled
from octavo.prompts.template import (
    HISTORY,
    Check,
    Compile,
    Part,
    PastMessages,
    PromptTemplate,
    ResourcePart,
    Role,
    TemplateMessage,
    TextPart,
    Variant,
)

MAX_PAST: Final = 200
_MAX_ID: Final = 128
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")
_PARTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "resource": ("uri",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
}
_KEYS = ("$schema", "id", "locale", "title", "description", "inputSchema", "messages")
_OF_A_TRANSLATION = ("$schema", "id", "title", "description", "messages")


class Translation:
    """A file that says in another language what a prompt file says, and the text of the file."""

    def __init__(self, locale: str, document: JsonText, text: str) -> None:
        self.locale, self.document, self.text = locale, document, text


class Definition:
    def __init__(self, document: JsonText, text: str, compile_schema: Compile, origin: str) -> None:
        """`text` is that of the file, to find lines within a text of several."""
        self._document, self._lines = document, text.splitlines()
        self._compile, self._origin = compile_schema, origin
        self._declared: frozenset[str] = frozenset()
        self._remembers = False

    def template(self, translations: Sequence[Translation], preferred: Sequence[str]) -> PromptTemplate:
        """`preferred` are languages, for what is told of a prompt where nobody chose one. Raises NotJson."""
        top = self._object((), self._document.value)
        self._only((), top, _KEYS)
        name = self._id(top)
        schema: Mapping[str, Any] = {"type": "object"}
        if "inputSchema" in top:
            schema = self._object(("inputSchema",), top["inputSchema"])
        if schema.get("type") != "object":
            self._fail(("inputSchema",), 'inputSchema needs "type": "object"')
        self._declared = frozenset((*properties(schema), HISTORY))
        variants = {**self._variants(top), **self._translated(name, translations)}
        schema = with_further(schema, [tag for tag in variants if tag], self._remembers)
        try:
            check = self._compile(schema)
        except OctavoError as error:
            self._fail(("inputSchema",), str(error))
        self._check_defaults(schema, check)
        told = variants[chosen(tuple(variants), (), preferred)]
        titles = {tag: variant.title for tag, variant in variants.items() if tag and variant.title}
        info = PromptInfo(
            name=name,
            description=told.description,
            title=told.title,
            arguments=arguments_of(schema),
            input_schema=schema,
            titles=titles if len(titles) > 1 else {},
            lane_safe=len(variants) == 1,  # else it depends on the languages of the client that waits
        )
        further = {one.locale: one.document.value for one in translations}
        return PromptTemplate(
            info=info,
            schema=schema,
            check=check,
            variants=variants,
            remembers=self._remembers,
            definition={**top, "translations": further} if further else top,
            origin=self._origin,
        )

    def _check_defaults(self, schema: Mapping[str, Any], check: Check) -> None:
        """Whoever leaves out an argument has done nothing wrong."""
        defaults = {key: part["default"] for key, part in properties(schema).items() if "default" in part}
        for problem in check(defaults):
            key = problem["path"].split("/")[1] if problem["path"] else ""  # what is missing is no fault of a default
            if key in defaults:
                self._fail(("inputSchema", "properties", key, "default"), f"the default of {key}: {problem['message']}")

    def _variants(self, top: Mapping[str, Any]) -> dict[str, Variant]:
        said = self._text((), top, "locale") if "locale" in top else ""
        if said and not is_tag(said):
            self._fail(("locale",), "locale is a language tag, such as ko or en-GB")
        messages = top.get("messages")
        if not isinstance(messages, dict):
            if isinstance(top.get("title"), dict) or isinstance(top.get("description"), dict):
                self._fail((), "title and description are by language only where messages are")
            return {said: self._variant(top, said, ("messages",))}
        if said:
            self._fail(("locale",), "locale is for messages that are in one language; here they say it themselves")
        tags = list(cast("dict[str, Any]", messages))
        if not tags:
            self._fail(("messages",), "messages must have at least one language")
        for tag in tags:
            if not is_tag(tag):
                self._fail(("messages", tag), f"{tag[:20]!r} is no language tag, such as ko or en-GB")
        return {tag: self._variant(top, tag, ("messages", tag)) for tag in tags}

    def _variant(self, top: Mapping[str, Any], tag: str, where: Where) -> Variant:
        title = self._worded(top, "title", tag) if "title" in top else None
        description = self._worded(top, "description", tag)
        holder: Any = top
        for key in where[:-1]:
            holder = holder[key]
        said = enumerate(self._array(where[:-1], holder, str(where[-1])))
        messages = tuple(self._message((*where, index), one) for index, one in said)
        return Variant(title=title, description=description, messages=messages)

    def _worded(self, top: Mapping[str, Any], key: str, tag: str) -> str:
        """A text, or one of several by language."""
        words = top.get(key)
        if not isinstance(words, dict):
            return self._text((), top, key)
        known = cast("dict[str, Any]", words)
        for said in known:
            if said not in top["messages"]:
                self._fail((key, said), f"{key} is in {said[:20]}, messages are not")
        if not known:
            self._fail((key,), f"{key} is empty")
        return self._text((key,), known, chosen(tuple(known), (tag,), ()))

    def _translated(self, name: str, translations: Sequence[Translation]) -> dict[str, Variant]:
        """In the places of the translations' own files."""
        variants: dict[str, Variant] = {}
        base = self._document, self._lines
        for one in translations:
            self._document, self._lines = one.document, one.text.splitlines()
            try:
                top = self._object((), one.document.value)
                self._only((), top, _OF_A_TRANSLATION)
                if "id" in top and self._id(top) != name:
                    self._fail(("id",), f"a translation has the id of its prompt, {name}, or none")
                variants[one.locale] = self._variant(top, one.locale, ("messages",))
            except NotJson as broken:
                raise OfTranslation(one.locale, broken) from None
        self._document, self._lines = base
        return variants

    def _id(self, top: Mapping[str, Any]) -> str:
        name = unicodedata.normalize("NFC", self._text((), top, "id"))
        plain = all(c.isalnum() or c in "_.-" for c in name) and name.strip(".")
        if not plain or len(name) > _MAX_ID:
            self._fail(("id",), f"an id is 1 to {_MAX_ID} letters, digits, _ . or -")
        return name

    def _message(self, where: Where, value: Any) -> TemplateMessage | PastMessages:
        message = self._object(where, value)
        if "history" in message:
            self._only(where, message, ("history",))
            most = message["history"]
            if type(most) is not int or not 1 <= most <= MAX_PAST:
                self._fail((*where, "history"), f"history is the number of messages to show, 1 to {MAX_PAST}")
            self._remembers = True
            return PastMessages(most)
        self._only(where, message, ("role", "content"))
        role = self._text(where, message, "role")
        if role not in _ROLES:
            self._fail((*where, "role"), f"role is one of {', '.join(_ROLES)}, not {role!r}")
        parts = self._array(where, message, "content")
        return TemplateMessage(role, tuple(self._part((*where, "content", i), part) for i, part in enumerate(parts)))

    def _part(self, where: Where, value: Any) -> Part:
        part = self._object(where, value)
        kind = self._text(where, part, "type")
        if kind not in _PARTS:
            self._fail((*where, "type"), f"type is one of {', '.join(_PARTS)}, not {kind!r}")
        self._only(where, part, ("type", *_PARTS[kind]))
        if kind == "text":
            return TextPart(self._filled((*where, "text"), self._string(where, part, "text")))
        if kind == "resource":
            return ResourcePart(self._address((*where, "uri"), self._text(where, part, "uri")))
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

    def _address(self, where: Where, uri: str) -> Address:
        try:
            made = address(uri, self._declared - {HISTORY})
        except NoTemplate as wrong:
            self._fail(where, wrong.reason)
        if len(made.pieces) == 1:
            try:
                Ref.parse(uri)
            except OctavoError as error:
                self._fail(where, str(error))
        return made

    def _filled(self, where: Where, text: str) -> Fill:
        try:
            made = compiled(text, self._declared)
        except NoTemplate as wrong:
            raise NotJson(self._line_within(where, text, wrong.line), wrong.reason) from None
        self._remembers = self._remembers or HISTORY in made.names
        return made

    def _line_within(self, where: Where, text: str, line: int) -> int:
        """Of a line of a text: where it stands in the file, if the file writes the text in lines."""
        begins = self._document.line(where)
        wanted = text.splitlines()[line - 1].strip() if line <= len(text.splitlines()) else ""
        for place in (begins + line, begins + line - 1):
            if place <= len(self._lines) and wanted and self._lines[place - 1].strip() == wanted:
                return place
        return begins

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
        raise NotJson(self._document.line(where), reason)


class OfTranslation(Exception):
    """What is broken is the file of a translation."""

    def __init__(self, locale: str, broken: NotJson) -> None:
        super().__init__(broken.reason)
        self.locale, self.broken = locale, broken
