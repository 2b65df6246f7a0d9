"""Prompt files of other programs, as they are: `.prompt.md`, `.prompt.yml`, `.agent.md`, slash commands in Markdown.

Their text is text: of all that looks like a template in it only the places that these programs fill in are variables,
and what is put there is data. A place of a Markdown file for which nothing was given stays as it is written, since it
may be an example; `$ARGUMENTS` is then empty. What else their front matter says is kept as metadata.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from octavo.core.tools import PromptInfo
from octavo.prompts.arguments import arguments_of
from octavo.prompts.jsonc import NotJson
from octavo.prompts.substitution import Fill, Plain, bounded, written
from octavo.prompts.template import Compile, PromptTemplate, Role, TemplateMessage, TextPart, Variant
from octavo.text.frontmatter import FrontMatter, of_markdown, of_yaml
from octavo.text.handwritten import handwritten
from octavo.text.titles import title_of

LISTED: Final = (".prompt.yml", ".prompt.yaml")
_AGENTS: Final = (".agent.md", ".chatmode.md")
_NAMING: Final = (*LISTED, ".prompt.md", *_AGENTS, ".md")  # endings that are no part of the name
ARGUMENTS: Final = "arguments"
MAX_VARIABLES: Final = 64
_MAX_DESCRIPTION: Final = 1000
_MAX_METADATA: Final = 4000  # characters as JSON
_ROLES: tuple[Role, ...] = ("system", "user", "assistant")
_NAME = r"[^\W\d][\w-]{0,63}"
_PLACE: Final = re.compile(
    rf"(?P<all>\$ARGUMENTS\b)|\$\{{input:(?P<asked>{_NAME})(?::(?P<hint>[^}}\n]{{0,200}}))?\}}"
    rf"|(?<!\$)\{{\{{\s*(?P<named>{_NAME})\s*\}}\}}"
)
_FENCE: Final = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)", re.MULTILINE | re.DOTALL)


class AsWritten(Struct, frozen=True):
    """Pieces as in `Plain`; a variable without a value is what stands in the file, if it says so."""

    pieces: tuple[str, ...]
    otherwise: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.pieces[1::2])

    def __call__(self, values: Mapping[str, Any]) -> str:
        pieces = list(self.pieces)
        given = (values.get(name) for name in pieces[1::2])
        pieces[1::2] = [
            stands if value is None else written(value) for value, stands in zip(given, self.otherwise, strict=True)
        ]
        bounded(sum(map(len, pieces)))
        return "".join(pieces)


def of_world(path: Path, text: str, compile_schema: Compile) -> PromptTemplate:
    """Raises NotJson."""
    if path.name.lower().endswith(LISTED):
        return _of_messages(path, text, compile_schema)
    front = of_markdown(text)
    if front.faults and front.body:
        front = handwritten(text).matter  # a slip costs a key at most
    body = text[front.body :].strip()
    if not body:
        raise NotJson(1, "the file has no text to give")
    agent = path.name.lower().endswith(_AGENTS)
    places = _Places(braces=not agent)
    said: tuple[Role, str] = ("system" if agent else "user", body)
    messages = _messages([said], places)
    hint = front.data.get("argument-hint")
    if ARGUMENTS in places.found and hint:
        places.found[ARGUMENTS] = _hint(hint)
    return _template(path, front.data, title_of(text, (path.name,)), [said], messages, places.schema(), compile_schema)


def _hint(said: Any) -> str:
    """`[file]` is a list in YAML, and a hint in brackets to who wrote it."""
    words: list[Any] = said if isinstance(said, list) else []
    return f"[{', '.join(map(str, words))}]" if words else said if isinstance(said, str) else written(said)


def _of_messages(path: Path, text: str, compile_schema: Compile) -> PromptTemplate:
    front = of_yaml(text)
    if front.faults:
        line, message = front.faults[0]
        raise NotJson(line, message)
    listed = front.data.get("messages")
    if not isinstance(listed, list) or not listed:
        raise NotJson(front.line(("messages",)), "messages must be a list with at least one message")
    said = [_said(one, front, number) for number, one in enumerate(listed)]
    places = _Places(braces=True, required=True)
    return _template(path, front.data, None, said, _messages(said, places), places.schema(), compile_schema)


def _said(one: Any, front: FrontMatter, number: int) -> tuple[Role, str]:
    message: Mapping[str, Any] = cast("Mapping[str, Any]", one) if isinstance(one, Mapping) else {}
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES or not isinstance(content, str) or not content.strip():
        where = front.line(("messages", number))
        raise NotJson(where, f"a message has a role, one of {', '.join(_ROLES)}, and a text as its content")
    return role, content


def _messages(said: Sequence[tuple[Role, str]], places: _Places) -> tuple[TemplateMessage, ...]:
    return tuple(TemplateMessage(role, (TextPart(places.filled(text)),)) for role, text in said)


class _Places:
    """The variables of a file, with what is said of each."""

    def __init__(self, *, braces: bool, required: bool = False) -> None:
        self._braces, self._required = braces, required
        self.found: dict[str, str] = {}

    def filled(self, text: str) -> Fill:
        pieces, otherwise, end = list[str](), list[str](), 0
        for match in self._variables(text):
            name = ARGUMENTS if match["all"] else match["asked"] or match["named"]
            if name not in self.found and len(self.found) >= MAX_VARIABLES:
                continue
            if not self.found.get(name):
                self.found[name] = match["hint"] or ""
            pieces += (text[end : match.start()], name)
            otherwise.append("" if match["all"] else match[0])
            end = match.end()
        pieces.append(text[end:])
        return Plain(tuple(pieces)) if self._required else AsWritten(tuple(pieces), tuple(otherwise))

    def _variables(self, text: str) -> Iterator[re.Match[str]]:
        """Without braces in fenced code, which are mostly those of another language."""
        fenced = [] if self._required else [match.span() for match in _FENCE.finditer(text)]
        for match in _PLACE.finditer(text):
            braced = match["named"] is not None
            if not braced or (self._braces and not any(begin < match.start() < end for begin, end in fenced)):
                yield match

    def schema(self) -> dict[str, Any]:
        told = {
            name: {"type": "string", **({"description": hint} if hint else {})} for name, hint in self.found.items()
        }
        schema: dict[str, Any] = {"type": "object", "properties": told}
        return {**schema, "required": [*told]} if self._required and told else schema


def _template(
    path: Path,
    data: Mapping[str, Any],
    heading: str | None,
    said: Sequence[tuple[Role, str]],
    messages: tuple[TemplateMessage, ...],
    schema: Mapping[str, Any],
    compile_schema: Compile,
) -> PromptTemplate:
    given, about = data.get("name") or data.get("title"), data.get("description")
    title = given.strip() if isinstance(given, str) and given.strip() else heading
    name = _id(path)
    description = about.strip() if isinstance(about, str) and about.strip() else title or name
    metadata = _kept(data)
    info = PromptInfo(
        name=name,
        description=description[:_MAX_DESCRIPTION],
        title=title,
        arguments=arguments_of(schema),
        input_schema=schema,
        metadata=metadata,
    )
    told = Variant(title=title, description=info.description, messages=messages)
    return PromptTemplate(
        info=info,
        schema=schema,
        check=compile_schema(schema),
        variants={"": told},
        remembers=False,
        definition={
            **metadata,
            "id": name,
            "description": info.description,
            "inputSchema": schema,
            "messages": [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in said],
        },
        origin=str(path),
    )


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says beside what is told of it anyway, as far as a list has room for it."""
    left, kept = _MAX_METADATA, dict[str, Any]()
    for key, value in data.items():
        size = len(json.dumps({key: value}, ensure_ascii=False, default=str))
        if key not in ("description", "messages", "title", "testData", "evaluators") and size <= left:
            kept[key], left = value, left - size
    return kept


def _id(path: Path) -> str:
    ending = next((one for one in _NAMING if path.name.lower().endswith(one)), "")
    plain = unicodedata.normalize("NFC", path.name[: len(path.name) - len(ending)])
    return "".join(c if c.isalnum() or c in "_.-" else "-" for c in plain)[:128].strip(".") or "prompt"
