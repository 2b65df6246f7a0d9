"""One set of redaction rules, laid over the values that leave the house.

The rules are loaded and compiled with the first text: who only lists, or starts, does not wait for them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec.structs import replace

from octavo.core.errors import InvalidParams
from octavo.core.model import Change, Content, Entry, Memo, News, Page, Suggestion
from octavo.core.surface import Block, Embedded, Link, PromptMessage, PromptResult, Text, ToolResult

if TYPE_CHECKING:
    from octavo.pipeline.rules.engine import Engine
    from octavo.pipeline.rules.rule import Rule

MAX_DEPTH = 16
_NUMBER = 10**8  # an integer below it is neither a card nor anybody's number

# Whatever a rule describes has one of these: letters of an assignment or of a login, a long word, parts of a number.
_WORTH_A_LOOK = re.compile(r"[@=;&%?<\"'\s]|:.*:|[A-Za-z0-9_+-]{20,}|\d-\d{4}|[^\x00-\x7f]")


class Veil:
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
        self._engine: Engine | None = None
        self._building = threading.Lock()
        if self._extra or self._allow:
            self._checked()

    @property
    def idle(self) -> bool:
        return not (self._hides or self._invisible)

    @property
    def ready(self) -> bool:
        """Whether the rules are compiled, so that a look costs only itself."""
        return self._engine is not None or not self._hides

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            with self._building:
                if self._engine is None:
                    self._engine = self._made()
        return self._engine

    def text(self, text: str, mime_type: str = "text/plain") -> str:
        """In JSON and YAML marks are put so that they stay such."""
        if self._invisible and not text.isascii():
            text = self._visible(text)
        if not self._hides or not text:
            return text
        if mime_type == "text/plain":
            return self.engine.redact(text)
        from octavo.pipeline.rules.shapes import shape_of

        return self.engine.redact(text, shape_of(mime_type))

    def address(self, text: str) -> str:
        """Of an address, most of which can be told to be harmless without any rule."""
        return self.text(text) if _WORTH_A_LOOK.search(text) else text

    def sightings(self, text: str) -> list[tuple[int, str]]:
        """What would be hidden or shown in another way: the line, from 1, and the rule."""
        from octavo.pipeline.rules.invisible import places

        found = [*self.engine.find(text)] if self._hides else []
        if self._invisible:
            found += [(place, "invisible") for place in places(text)]
        return [(text.count("\n", 0, place) + 1, rule) for place, rule in sorted(found)]

    def content(self, content: Content) -> Content:
        entry = self.entry(content.entry)
        if "otherwise" in content.memo:
            # Read in another encoding a secret is other letters, which whoever chose it can turn back.
            otherwise: str = content.memo["otherwise"]
            if self._hides and self.engine.redact(otherwise) is not otherwise:
                raise InvalidParams("The file has something in it that is not shown: leave the encoding out")
            content = replace(content, memo=Memo())
        if not isinstance(content.body, str):
            body: str | bytes = content.body
        elif "around" in content.memo:
            body = self._part(content.body, *content.memo["around"])
            return replace(content, entry=entry, body=body, memo=Memo())
        else:
            body = self.text(content.body, content.entry.mime_type)
        if entry is content.entry and body is content.body:
            return content
        return replace(content, entry=entry, body=body, memo=Memo())

    def entry(self, entry: Entry) -> Entry:
        title = None if entry.title is None else self.text(entry.title)
        description = None if entry.description is None else self.text(entry.description)
        metadata = self.value(entry.metadata) if entry.metadata else entry.metadata
        if title is entry.title and description is entry.description and metadata is entry.metadata:
            return entry
        return replace(entry, title=title, description=description, metadata=metadata)

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
                words += filter(None, (item.title, item.description))
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
        return replace(result, messages=messages)

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
            from octavo.pipeline.rules.checks import is_password
            from octavo.pipeline.rules.secrets import is_sensitive

            if is_sensitive(name) and is_password(value):
                return self.engine.mark("password", value)
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
        from octavo.pipeline.rules.invisible import suspicious

        if self._invisible and suspicious(text):
            return True
        return self._hides and self.engine.suspects(text)

    def _visible(self, text: str) -> str:
        from octavo.pipeline.rules.invisible import shown

        marked = shown(text)
        if marked is text or not self._hides:
            return marked
        # A secret with something invisible inside is none to a rule, and one to whoever reads it.
        removed = shown(text, removed=True)
        return removed if len(self.engine.find(removed)) > len(self.engine.find(marked)) else marked

    def _part(self, part: str, before: str, after: str) -> str:
        """A part of a text: a secret that its border cuts in two must not pass in halves."""
        from octavo.pipeline.rules.invisible import shown

        if self._hides:
            part = self.engine.redact_part(before, part, after)
        return shown(part, before=before, after=after) if self._invisible else part

    def _made(self) -> Engine:
        from octavo.pipeline.rules.engine import Engine

        return Engine(self._rules(), self._key, allow=self._allow)

    def _rules(self) -> list[Rule]:
        from octavo.pipeline.rules.book import rules_for
        from octavo.pipeline.rules.rule import Rule

        known = rules_for(self._personal, secrets=self._secrets)
        return [rule for rule in known if rule.name not in self._skip] + [Rule(*extra) for extra in self._extra]

    def _checked(self) -> None:
        from octavo.pipeline.rules.engine import Engine, compiled
        from octavo.pipeline.rules.rule import Rule

        for name, pattern in self._extra:
            compiled(name, pattern)
        Engine([Rule(*extra) for extra in self._extra], self._key, allow=self._allow)


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


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)
