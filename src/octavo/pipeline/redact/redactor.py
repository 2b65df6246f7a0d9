"""Applies one set of redaction rules to every kind of value that leaves the server.

The rules are loaded and compiled with the first text: who only lists, or starts, does not wait for them.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from octavo.core.errors import InvalidParams
from octavo.core.tools import Block, Embedded, Link, PromptInfo, PromptMessage, PromptResult, Text, ToolResult
from octavo.core.values import Change, Content, EncoderMemo, Entry, News, Page, Suggestion
from octavo.pipeline.redact.marks import numbered
from octavo.pipeline.redact.readings import Cut, others, reading
from octavo.pipeline.redact.spans import HiddenSpan, carried, merged, occurrences, without

if TYPE_CHECKING:
    from octavo.pipeline.redact.rules.engine import RuleEngine
    from octavo.pipeline.redact.rules.rule import PatternRule

MAX_DEPTH = 16
_NUMBER = 10**8  # an integer below it is neither a card nor anybody's number

# Whatever a rule describes has one of these: letters of an assignment or of a login, a long word, parts of a number.
_WORTH_A_LOOK = re.compile(r"[@=;&%?<\"'\s]|:.*:|[A-Za-z0-9_+-]{20,}|\d-\d{4}|[^\x00-\x7f]")


# A notebook keeps a text as a list of its lines, and puts them together to show it. A seam has a string on both sides.
_CELL = '"cell_type"'
_SEAM = re.compile(r'"[ \t]*,[ \t]*\r?\n[ \t]*"(?=(?:[^"\\]|\\.)*+"[ \t]*\r?\n?[ \t]*[,\]])')


class Redactor:
    """Replaces what rules find by `[redacted:rule:hmac8]`. Everything gives the same object back where there is
    nothing to hide."""

    def __init__(
        self,
        key: bytes,
        *,
        secrets: bool = True,
        personal: Collection[str] = (),
        extra: Sequence[Mapping[str, str]] = (),
        skip: Iterable[str] = (),
        allow: Iterable[str] = (),
        invisible: bool = True,
    ) -> None:
        """`invisible`: characters that nobody sees are shown. Raises InvalidParams for a pattern that RE2 refuses."""
        self._key, self._secrets, self._personal = key, secrets, frozenset(personal)
        self._skip, self._allow = frozenset(skip), tuple(allow)
        self._extra = [(rule["name"], rule["pattern"]) for rule in extra]
        self._invisible = invisible
        self._hides = secrets or bool(self._personal or self._extra)
        self._numbered = False
        self._origin: Redactor | None = None
        self._engine: RuleEngine | None = None
        self._building = threading.Lock()
        if self._extra or self._allow:
            self._checked()

    @property
    def idle(self) -> bool:
        return not (self._hides or self._invisible)

    @property
    def hides(self) -> bool:
        """Whether there is anything for which it puts marks."""
        return self._hides

    @property
    def ready(self) -> bool:
        """Whether the rules are compiled, so that a look costs only itself."""
        return (self._origin or self)._engine is not None or not self._hides

    @cached_property
    def numbered(self) -> Redactor:
        """The same with numbers in marks, not digests: for texts that a caller may have chosen."""
        twin = copy(self)
        twin._numbered, twin._origin = True, self
        return twin

    @property
    def engine(self) -> RuleEngine:
        if self._origin is not None:
            return self._origin.engine
        if self._engine is None:
            with self._building:
                if self._engine is None:
                    self._engine = self._made()
        return self._engine

    def text(self, text: str, mime_type: str = "text/plain") -> str:
        """In JSON and YAML marks are put so that they stay such."""
        if not self._hides or not text:
            return self._shown(text)
        shape = None
        if mime_type != "text/plain":
            from octavo.pipeline.redact.rules.shapes import shape_of

            shape = shape_of(mime_type)
        bare = self._bare(text)
        if bare is not text:
            found = self._found(text, bare)
            text = self._shown(self.engine.put(text, found, shape))
            if found and self._numbered:
                text = numbered(text)
        redacted = self.engine.redact(text, shape)
        return numbered(redacted) if self._numbered and redacted is not text else redacted

    def hidden(self, text: str) -> list[HiddenSpan]:
        """What `text` puts marks for, in order and apart from each other."""
        return self._found(text, self._bare(text)) if self._hides and text else []

    def reading(self, body: str | bytes, mime_type: str) -> tuple[str, list[HiddenSpan]]:
        """The text as which a body is looked at, and what is hidden in it."""
        if isinstance(body, str):
            return body, self.hidden(body)
        (_, text, _), hidden = self._read(b"", body, b"", mime_type)
        return text, hidden

    def address(self, text: str) -> str:
        """Of an address, most of which can be told to be harmless without any rule."""
        return self.text(text) if _WORTH_A_LOOK.search(text) else text

    def sightings(self, body: str | bytes, mime_type: str) -> list[tuple[int, str]]:
        """What would be hidden or shown in another way: the line, from 1, and the rule."""
        from octavo.pipeline.redact.rules.invisible import places

        text, hidden = self.reading(body, mime_type)
        found = [(span.start, span.rule) for span in hidden]
        if self._invisible and isinstance(body, str):
            found += [(place, "invisible") for place in places(text)]
        return [(text.count("\n", 0, place) + 1, rule) for place, rule in sorted(found)]

    def content(self, content: Content) -> Content:
        entry = self.entry(content.entry)
        if "otherwise" in content.memo:
            # Read in another encoding a secret is other letters, which whoever chose it can turn back.
            if self.reading(content.memo["otherwise"], content.entry.mime_type)[1]:
                raise InvalidParams("The file has something in it that is not shown: leave the encoding out")
            content = replace(content, memo=EncoderMemo())
        mime_type = content.entry.mime_type
        if "around" in content.memo:
            before, after = content.memo["around"]
            body = self.part(before, content.body, after, mime_type)
            return replace(content, entry=entry, body=body, memo=EncoderMemo())
        body = content.body
        body = self.text(body, mime_type) if isinstance(body, str) else self.part(b"", body, b"", mime_type)
        if entry is content.entry and body is content.body:
            return content
        return replace(content, entry=entry, body=body, memo=EncoderMemo())

    def entry(self, entry: Entry) -> Entry:
        name = self.text(entry.name) if _is_a_text(entry) else entry.name
        title = None if entry.title is None else self.text(entry.title)
        description = None if entry.description is None else self.text(entry.description)
        metadata = self.value(entry.metadata) if entry.metadata else entry.metadata
        parts = (entry.name, entry.title, entry.description, entry.metadata)
        if all(map(operator.is_, (name, title, description, metadata), parts)):
            return entry
        return replace(entry, name=name, title=title, description=description, metadata=metadata)

    def change(self, change: Change) -> Change:
        old, new = change.old and self.entry(change.old), change.new and self.entry(change.new)
        if old is change.old and new is change.new:
            return change
        return replace(change, old=old, new=new)

    def news(self, news: News) -> News:
        return replace(news, changes=tuple(map(self.change, news.changes)))

    def page(self, page: Page[Any]) -> Page[Any]:
        words: list[str] = []
        for item in page.items:
            if isinstance(item, Entry):
                words += filter(None, (item.name if _is_a_text(item) else None, item.title, item.description))
                _collect(item.metadata, words)
        if not words or not self._suspects("\n".join(words)):  # one look for the page is nearly always enough
            return page
        items = tuple(self.entry(item) if isinstance(item, Entry) else item for item in page.items)
        if all(new is old for new, old in zip(items, page.items, strict=True)):
            return page
        return Page(items, page.cursor, page.unavailable)

    def result(self, result: ToolResult) -> ToolResult:
        """What a tool made up itself."""
        structured = None if result.structured is None else self.value(result.structured)
        return replace(result, content=tuple(map(self._block, result.content)), structured=structured)

    def prompt(self, result: PromptResult) -> PromptResult:
        messages = tuple(PromptMessage(one.role, self._block(one.content)) for one in result.messages)
        description = None if result.description is None else self.text(result.description)
        return replace(result, messages=messages, description=description)

    def prompt_info(self, info: PromptInfo) -> PromptInfo:
        """What a list tells of a prompt. Its name and those of its arguments stay: clients send them back."""
        arguments = tuple(
            replace(one, description=None if one.description is None else self.text(one.description))
            for one in info.arguments
        )
        return replace(
            info,
            description=self.text(info.description),
            title=None if info.title is None else self.text(info.title),
            arguments=arguments,
            input_schema=None if info.input_schema is None else self.value(info.input_schema),
            titles=self.value(info.titles),
            metadata=self.value(info.metadata),
        )

    def offers(self, completions: Iterable[str | Suggestion]) -> Sequence[str | Suggestion]:
        """Completions. One with a secret in it is left out: with a mark it would complete to nothing."""
        offered = completions if _is_sequence(completions) else [*completions]
        values = [one if isinstance(one, str) else one.value for one in offered]
        if not values or not self._suspects("\n".join(values)):
            return offered
        return [one for one, value in zip(offered, values, strict=True) if self.text(value) is value]

    def value(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """Through lists and mappings. A value is also hidden for the name it has: `api_key: …`."""
        if isinstance(value, str):
            return self._named(name, value)
        if isinstance(value, int):
            if abs(value) < _NUMBER:
                return value
            shown = self.text(str(value))
            return value if shown == str(value) else shown
        if depth >= MAX_DEPTH:
            return value
        if _is_mapping(value):
            named = {k: self.value(v, str(k), depth + 1) for k, v in value.items()}
            return named if any(named[k] is not v for k, v in value.items()) else value
        if _is_sequence(value):
            items = [self.value(item, name, depth + 1) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _named(self, name: str, value: str) -> str:
        shown = self.text(value)
        if shown is value and name and self._secrets and "password" not in self._skip:
            from octavo.pipeline.redact.rules.checks import is_password
            from octavo.pipeline.redact.rules.secrets import is_sensitive

            if is_sensitive(name) and is_password(value):
                mark = self.engine.mark("password", value)
                return numbered(mark) if self._numbered else mark
        return shown

    def _block(self, block: Block) -> Block:
        match block:
            case Text(text, meta):
                return Text(self.text(text, "application/json" if text[:1] in ("{", "[") else "text/plain"), meta)
            case Embedded(content, uri):
                return Embedded(self.content(content), uri)
            case Link(entry, uri):
                return Link(self.entry(entry), uri)
            case _:
                return block

    def _suspects(self, text: str) -> bool:
        from octavo.pipeline.redact.rules.invisible import suspicious

        if self._invisible and suspicious(text):
            return True
        return self._hides and self.engine.suspects(text)

    def _shown(self, text: str) -> str:
        from octavo.pipeline.redact.rules.invisible import shown

        return shown(text) if self._invisible else text

    def _bare(self, text: str) -> str:
        """Without what nobody sees, what is no character, and the seams of a notebook's lines: a secret with one of
        those inside is none to a rule, and one to whoever reads it."""
        from octavo.pipeline.redact.rules.invisible import shown, suspicious

        bare = _SEAM.sub("", text) if _CELL in text else text
        if suspicious(bare) or (bare.isascii() and "\0" in bare):
            bare = shown(bare, removed=True) if self._invisible else bare
            bare = bare.replace("\0", "").replace("\ufffd", "")
        return text if bare == text else bare

    def _found(self, text: str, bare: str) -> list[HiddenSpan]:
        found = self.engine.spans(text)
        return found if bare is text else merged([*found, *carried(self.engine.spans(bare), bare, text)])

    def part(self, before: str | bytes, part: str | bytes, after: str | bytes, mime_type: str) -> str | bytes:
        """A part of a longer text: a secret that its border cuts in two must not pass in halves, so what is to be
        hidden is found in the whole, and a mark that reaches over a border belongs to the part. Bytes in which
        something is hidden are shown as text."""
        from octavo.pipeline.redact.rules.invisible import shown

        if isinstance(part, bytes):
            if not self._hides:
                return part
            (before, text, after), hidden = self._read(_raw(before), part, _raw(after), mime_type)
            if not any(span.start < len(before) + len(text) and span.end > len(before) for span in hidden):
                return part
        else:
            before, text, after = _text(before), part, _text(after)
            hidden = self.hidden(before + text + after)
        text = without(before + text + after, hidden, len(before), len(before) + len(text))
        text = numbered(text) if self._numbered and hidden else text
        return shown(text, before=before, after=after) if self._invisible else text

    def _read(self, before: bytes, part: bytes, after: bytes, mime_type: str) -> tuple[Cut, list[HiddenSpan]]:
        """What is a secret in one reading is one in the reading that is shown."""
        cut = reading(before, part, after, mime_type) if self._hides else None
        if cut is None:
            return ("", "", ""), []
        whole = "".join(cut)
        hidden = self.hidden(whole)
        for text in others(b"".join((before, part, after))):
            for start, end, mark in self.hidden(text):
                hidden += occurrences(whole, text[start:end], mark)
        return cut, merged(hidden)

    def _made(self) -> RuleEngine:
        from octavo.pipeline.redact.rules.engine import RuleEngine

        return RuleEngine(self._rules(), self._key, allow=self._allow)

    def _rules(self) -> list[PatternRule]:
        from octavo.pipeline.redact.rules.book import rules_for
        from octavo.pipeline.redact.rules.rule import PatternRule

        known = rules_for(self._personal, secrets=self._secrets)
        return [rule for rule in known if rule.name not in self._skip] + [PatternRule(*extra) for extra in self._extra]

    def _checked(self) -> None:
        from octavo.pipeline.redact.rules.engine import RuleEngine, compiled
        from octavo.pipeline.redact.rules.rule import PatternRule

        for name, pattern in self._extra:
            compiled(name, pattern)
        RuleEngine([PatternRule(*extra) for extra in self._extra], self._key, allow=self._allow)


def _raw(piece: str | bytes) -> bytes:
    return piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece


def _text(piece: str | bytes) -> str:
    return piece if isinstance(piece, str) else piece.decode("utf-8", "replace")


def _collect(value: Any, words: list[str], name: str = "", depth: int = 0) -> None:
    """Every text in the value, each behind its name, as the rules that look at surroundings want it."""
    if isinstance(value, str) or (isinstance(value, int) and abs(value) >= _NUMBER):
        words.append(f"{name}: {value}")
    elif depth < MAX_DEPTH and _is_mapping(value):
        for key, item in value.items():
            _collect(item, words, str(key), depth + 1)
    elif depth < MAX_DEPTH and _is_sequence(value):
        for item in value:
            _collect(item, words, name, depth + 1)


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_a_text(entry: Entry) -> bool:
    """Whether its name is what somebody wrote of it. One that is a part of its address is as readable there, and has
    to be: whoever reads it back sends it."""
    return entry.name not in entry.ref.segments


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)
