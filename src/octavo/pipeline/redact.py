"""The seventh fold: what holds for everybody. It stands inside the cache, so that a secret never rests
there and each version of a content is looked at once.

Text bodies, and the titles, descriptions and metadata of entries, are covered. Bytes are not looked at:
a binary body passes as it is. Etag and version belong to the raw content and stay.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeGuard

from octavo.core.errors import InvalidParams, OctavoError
from octavo.core.model import Call, Change, Content, Edited, Entry, News, Page
from octavo.core.ports import Next, Reply
from octavo.pipeline.rules.checks import is_password
from octavo.pipeline.rules.engine import Engine, Rule
from octavo.pipeline.rules.personal import PERSONAL
from octavo.pipeline.rules.secrets import BY_LOOK, BY_SURROUNDINGS, SENSITIVE_NAME

DEFAULT_RULES: tuple[Rule, ...] = (*BY_LOOK, *PERSONAL, *BY_SURROUNDINGS)
# RE2 frees the interpreter lock while it searches (two threads on two cores: 1.9 times one), so a long text
# does not hold up the loop; for a short one the hop to a thread costs more than the search.
OFF_LOOP = 32 << 10
MAX_DEPTH = 16

_SENSITIVE = re.compile(SENSITIVE_NAME)
_MARK = re.compile(r"\[redacted:[a-z0-9_-]+:[0-9a-f]{8}\]")


class Redact:
    """Replaces secrets by `[redacted:rule:hmac8]`.

    `key` makes marks that say nothing about a secret but whether two are equal. `rules="off"` leaves only
    `extra`. `extra` are `{"name", "pattern"}` in RE2 syntax, the first group or the whole match is replaced;
    `skip` names rules to leave out; what one of the `allow` patterns is found in stays.

    `version` changes with rules and settings and belongs into every cache key.
    """

    def __init__(
        self,
        key: bytes,
        *,
        rules: Literal["default", "off"] = "default",
        extra: Sequence[Mapping[str, str]] = (),
        skip: Iterable[str] = (),
        allow: Iterable[str] = (),
    ) -> None:
        """Raises InvalidParams for a pattern that RE2 does not take."""
        left_out = frozenset(skip)
        chosen = [rule for rule in DEFAULT_RULES if rule.name not in left_out] if rules == "default" else []
        chosen += [Rule(rule["name"], rule["pattern"]) for rule in extra]
        self._engine = Engine(chosen, key, allow=allow) if chosen else None
        self._by_name = any(rule.name == "password" for rule in chosen)
        self.version = self._engine.version if self._engine is not None else "off"

    async def __call__(self, call: Call, call_next: Next) -> Reply:
        if self._engine is None:
            return await call_next(call)
        if call.op == "write":
            _refuse_marks(call.arguments["body"])
        if call.op == "edit":
            return await self._edit(call, call_next)
        reply = await call_next(call)
        if isinstance(reply, Content):
            if isinstance(reply.body, str) and len(reply.body) > OFF_LOOP:
                return await asyncio.to_thread(self.content, reply)
            return self.content(reply)
        if isinstance(reply, Entry):
            return self.entry(reply)
        if _is_page(reply):
            return self._page(reply)
        if isinstance(reply, News):
            return dataclasses.replace(reply, changes=tuple(map(self.change, reply.changes)))
        return reply

    async def _edit(self, call: Call, call_next: Next) -> Edited:
        """An edit sees the text as it is. What it reports of it, also in an error, is for the caller to read."""
        try:
            edited: Edited = await call_next(call)
        except OctavoError as raised:
            message = self.text(raised.message)
            raise raised if message is raised.message else type(raised)(message, **raised.data) from None
        return dataclasses.replace(edited, report=self.text(edited.report))

    def text(self, text: str) -> str:
        """The same object where there is nothing to hide."""
        return text if self._engine is None else self._engine.redact(text)

    def content(self, content: Content) -> Content:
        entry = self.entry(content.entry)
        if "otherwise" in content.memo:
            # Read in another encoding a secret is other letters, which whoever chose it can turn back.
            otherwise: str = content.memo["otherwise"]
            if self.text(otherwise) != otherwise:
                raise InvalidParams("The file has something in it that is not shown: leave the encoding out")
            content = dataclasses.replace(content, memo={})
        if "around" in content.memo and isinstance(content.body, str) and self._engine is not None:
            # A part of a text: a secret that its border cuts in two must not pass in halves.
            before, after = content.memo["around"]
            return dataclasses.replace(
                content, entry=entry, body=self._engine.redact_part(before, content.body, after), memo={}
            )
        body = self.text(content.body) if isinstance(content.body, str) else content.body
        if entry is content.entry and body is content.body:
            return content
        return dataclasses.replace(content, entry=entry, body=body, memo={})

    def entry(self, entry: Entry) -> Entry:
        title = None if entry.title is None else self.text(entry.title)
        description = None if entry.description is None else self.text(entry.description)
        metadata = self._value("", entry.metadata) if entry.metadata else entry.metadata
        if title is entry.title and description is entry.description and metadata is entry.metadata:
            return entry
        return dataclasses.replace(entry, title=title, description=description, metadata=metadata)

    def change(self, change: Change) -> Change:
        old, new = change.old and self.entry(change.old), change.new and self.entry(change.new)
        if old is change.old and new is change.new:
            return change
        return dataclasses.replace(change, old=old, new=new)

    def _page(self, page: Page[Any]) -> Page[Any]:
        assert self._engine is not None
        words: list[str] = []
        for item in page.items:
            if isinstance(item, Entry):
                words += (item.title or "", item.description or "")
                _collect(item.metadata, words)
        if not self._engine.suspects("\n".join(words)):  # one look for the page, which is nearly always enough
            return page
        items = tuple(self.entry(item) if isinstance(item, Entry) else item for item in page.items)
        if all(new is old for new, old in zip(items, page.items, strict=True)):
            return page
        return Page(items, page.cursor, page.unavailable)

    def _value(self, name: str, value: Any, depth: int = 0) -> Any:
        """Through lists and mappings. A value is also hidden for the name it has: `api_key: …`."""
        if isinstance(value, str):
            if self._by_name and _SENSITIVE.search(name) and is_password(value):
                assert self._engine is not None
                return self._engine.mark("password", value)
            return self.text(value)
        if depth >= MAX_DEPTH:
            return value
        if _is_mapping(value):
            named = {k: self._value(str(k), v, depth + 1) for k, v in value.items()}
            return named if any(named[k] is not v for k, v in value.items()) else value
        if _is_sequence(value):
            items = [self._value(name, item, depth + 1) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value


def _collect(value: Any, words: list[str], name: str = "", depth: int = 0) -> None:
    """Every text in the value, each behind its name, as the rules that look at surroundings want it."""
    if isinstance(value, str):
        words.append(f"{name}: {value}")
    elif depth < MAX_DEPTH and _is_mapping(value):
        for key, item in value.items():
            _collect(item, words, str(key), depth + 1)
    elif depth < MAX_DEPTH and _is_sequence(value):
        for item in value:
            _collect(item, words, name, depth + 1)


def _is_page(value: object) -> TypeGuard[Page[Any]]:
    return isinstance(value, Page)


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)


def _refuse_marks(body: str | bytes) -> None:
    """Whoever writes back what it read would put the mark where the secret was, and lose the secret."""
    mark = _MARK.search(body) if isinstance(body, str) else None
    if mark is not None:
        raise InvalidParams(
            f"The text contains {mark.group()}, which stands for a secret that you cannot see. Writing it would "
            "lose the secret: change only other parts of the file, with the tool edit"
        )
