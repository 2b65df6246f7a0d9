"""The call `skills`: the skills of the catalogs as the protocol's extension wants them, each with all its files.

It is made of child calls, so who may not list a skill does not learn of it, and what a digest is of is exactly what a
read gives to this caller, after redaction. A file that the caller may not read is not a part of its skill.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from octavo.core.cursor import joined, parts_of
from octavo.core.errors import Forbidden, InvalidParams, NotFound, TooLarge
from octavo.core.ports.chain import Ask
from octavo.core.ref import Ref
from octavo.core.skill import MANIFEST, MAX_BYTES, MAX_FILES, Skill, SkillFile, is_skill_name
from octavo.core.values import Call, Content, Entry, Op, Page
from octavo.text.handwritten import handwritten

_WITHHELD = (NotFound, Forbidden, TooLarge, InvalidParams)
_FOREIGN: Final = "The cursor is not one of this list; list again from the start"


class Skills:
    """Of the catalogs with these schemes, in their order."""

    def __init__(self, schemes: Sequence[str]) -> None:
        self.schemes = tuple(schemes)
        self._ask: Ask | None = None

    def bind(self, ask: Ask) -> None:
        self._ask = ask

    async def answer(self, call: Call) -> Page[Skill]:
        """A page of all of them, or the one whose SKILL.md has the address of the call. Raises NotFound."""
        if call.ref.scheme == "*":
            return await self._page(call)
        ref = call.ref
        skill = await self._skill(call, ref._replace(segments=ref.segments[:-1])) if self._is_manifest(ref) else None
        if skill is None:
            raise NotFound(f"Resource not found: {call.uri}", uri=call.uri)
        return Page((skill,))

    def _is_manifest(self, ref: Ref) -> bool:
        return ref.scheme in self.schemes and ref.name == MANIFEST and not ref.params

    async def _page(self, call: Call) -> Page[Skill]:
        """As many as stand in a page of the list below, which also holds their files: so the work of a page is
        bounded. Only the last page can be empty."""
        at, cursor = (0, None) if call.cursor is None else parts_of(call.cursor, int, str, refusal=_FOREIGN)
        skills: list[Skill] = []
        for number, scheme in enumerate(self.schemes[at:], at):
            while True:
                page: Page[Entry] = await self._asked(call, "list", Ref(scheme), cursor)
                own = [entry.ref for entry in page.items if entry.target is None]  # the target of a file is its skill
                skills += [skill for ref in own if (skill := await self._skill(call, ref)) is not None]
                cursor = page.cursor
                if cursor is None:
                    break
                if skills:
                    return Page(tuple(skills), joined(number, cursor))
        return Page(tuple(skills))

    async def _skill(self, call: Call, ref: Ref) -> Skill | None:
        """None for what is no skill of the extension, and for what the caller may not have."""
        if not is_skill_name(ref.name):
            return None
        manifest = ref.child(MANIFEST)
        files = await self._files(call, ref)
        if files is None or (content := await self._read(call, manifest)) is None:
            return None
        matter = handwritten(content.body).matter if isinstance(content.body, str) else None
        if matter is None or matter.faults or matter.data.get("name") != ref.name:
            return None
        described = matter.data.get("description")
        if not isinstance(described, str) or not described.strip():
            return None
        found = [_file(manifest, content)]
        for file in files:
            if file != manifest and (content := await self._read(call, file)) is not None:
                found.append(_file(file, content))
        if len(found) > MAX_FILES or sum(file.size for file in found) > MAX_BYTES:
            return None
        return Skill(manifest, matter.data, tuple(found))

    async def _files(self, call: Call, ref: Ref) -> list[Ref] | None:
        """What stands below a skill; None where the skill is not there, or has too much in it."""
        found: list[Ref] = []
        cursor: str | None = None
        while True:
            page: Page[Entry] = await self._asked(call, "list", ref, cursor)
            found += [entry.ref for entry in page.items]
            cursor = page.cursor
            if len(found) > MAX_FILES + 1:
                return None
            if cursor is None:
                return found[1:] if found[:1] == [ref] else None

    async def _read(self, call: Call, ref: Ref) -> Content | None:
        try:
            content: Content = await self._asked(call, "read", ref)
            return content
        except _WITHHELD:
            return None

    async def _asked(self, call: Call, op: Op, ref: Ref, cursor: str | None = None) -> Any:
        if self._ask is None:
            raise RuntimeError("Skills are asked for through a pipeline")
        child = call.child(op, ref)._replace(limit=call.limit, max_bytes=call.max_bytes, timeout=call.timeout)
        return await self._ask(child._replace(cursor=cursor))


def _file(ref: Ref, content: Content) -> SkillFile:
    digest: str | None = content.memo.get("sha256")
    if digest is None:  # kept with the content: a list asks for all of them again and again
        body = content.body if isinstance(content.body, bytes) else content.body.encode("utf-8")
        digest = content.memo["sha256"] = f"sha256:{hashlib.sha256(body).hexdigest()}"
    return SkillFile(ref, digest, content.size)
