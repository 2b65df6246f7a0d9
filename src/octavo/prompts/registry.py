"""The registry of prompts: the source of `prompt://` and the end of every `render`.

Without prompts nothing else of this room is imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from octavo.core.arguments import CompleteArguments, OwnArguments
from octavo.core.definitions import Shelf
from octavo.core.errors import Conflict, InternalError, InvalidParams
from octavo.core.fair import in_thread
from octavo.core.foundation import Changeable, nothing_changes
from octavo.core.near_names import meant
from octavo.core.ports.chain import Ask, Reply
from octavo.core.sizes import KIB
from octavo.core.tools import Conversations, PromptInfo, PromptResult, Said, unknown_prompt
from octavo.core.values import Call

if TYPE_CHECKING:
    from octavo.prompts.loader import Fingerprint, PromptProblem
    from octavo.prompts.render_cache import Renderings
    from octavo.prompts.substitution import Address
    from octavo.prompts.template import Check, Compile, PromptTemplate

    _Found: TypeAlias = tuple[Fingerprint, list[PromptTemplate], list[PromptProblem]]

# A prompt of a plugin. `call.values` are checked; what it asks with `ask` are child calls.
# Anything but a PromptResult goes to the wire as it is.
Rendering: TypeAlias = Callable[[Call, Ask], Awaitable[PromptResult | Any]]

EMBED = 256 * KIB  # bytes of a resource that is shown and not only linked


class _RegisteredPrompt(Struct, frozen=True):
    info: PromptInfo
    schema: Mapping[str, Any]
    check: Check
    rendering: Rendering
    template: PromptTemplate | None = None  # of a file


class PromptRegistry(Shelf):
    """Prompts by name: those of files, which can be loaded again, and those of plugins, which stay."""

    def __init__(
        self,
        compile_schema: Compile,
        *,
        locales: Sequence[str] = (),
        embed: int = EMBED,
        conversations: Conversations | None = None,
        changeable: Changeable = nothing_changes,
    ) -> None:
        """`locales` are the languages for whoever asks for none, the most wanted first."""
        super().__init__("prompt")
        self._compile, self._locales, self._embed = compile_schema, tuple(locales), embed
        self._conversations, self._changeable = conversations, changeable
        self._prompts: dict[str, _RegisteredPrompt] = {}
        self._directories: tuple[Path, ...] = ()
        self._seen: Fingerprint = {}
        self._renderings: Renderings | None = None
        self._ask: Ask = _unbound

    def bind(self, ask: Ask) -> None:
        """`ask` is the folded pipeline: what prompts read on behalf of their callers goes there."""
        self._ask = ask

    def register(self, info: PromptInfo, rendering: Rendering) -> None:
        """A prompt of a plugin. Raises Conflict for a name that is taken, InvalidParams for a bad definition."""
        from octavo.prompts.arguments import schema_of

        if info.name in self._prompts:
            raise Conflict(f"Prompt {info.name} already registered.", promptName=info.name)
        if not info.name or not info.description.strip():
            raise InvalidParams(f"The prompt {info.name!r} needs a name and a description", promptName=info.name)
        schema = schema_of(info)
        self._add(_RegisteredPrompt(info, schema, self._compile(schema), rendering), _definition(info, schema))
        self.list_changed()

    def load(self, directories: Iterable[Path]) -> list[PromptProblem]:
        """Takes what the directories hold now instead of what they held before; gives what is broken.

        Of a file that was good before and is broken now the earlier prompt stays, until it is mended or gone.
        """
        self._directories = tuple(directories)
        if not self._directories and not self._seen:
            return []
        from octavo.prompts.loader import fingerprint

        return self._take(self._found(fingerprint(self._directories)))

    async def refresh(self) -> list[PromptProblem] | None:
        """Loads again what has changed in the directories. None where nothing has. Files are read in a thread: there
        may be very many."""
        found = await in_thread(self._changed) if self._directories else None
        return None if found is None else self._take(found)

    def _changed(self) -> _Found | None:
        from octavo.prompts.loader import fingerprint

        now = fingerprint(self._directories)
        return None if now == self._seen else self._found(now)

    def _found(self, seen: Fingerprint) -> _Found:
        """`seen` was taken before: a change meanwhile is loaded the next time."""
        from octavo.prompts.loader import load

        return seen, *load(self._directories, self._compile, self._locales, self._changeable)

    def _take(self, found: _Found) -> list[PromptProblem]:
        from octavo.prompts.loader import PromptProblem
        from octavo.prompts.render_cache import Renderings

        self._seen, templates, problems = found
        earlier = {one.template.origin: one.template for one in self._prompts.values() if one.template is not None}
        names = {template.info.name for template in templates}
        for problem in problems:
            if (stays := earlier.get(problem.path)) is not None and stays.info.name not in names:
                templates.append(stays)
        before = {name: self._contents[name].etag for name in self._names}
        for template in earlier.values():
            del self._prompts[template.info.name]
            self._drop(template.info.name)
        self._renderings = self._renderings or Renderings()
        for template in templates:
            name = template.info.name
            if name in self._prompts:
                problems.append(
                    PromptProblem(template.origin, 1, f"the id {name!r} is already that of a plugin's prompt")
                )
                continue
            registered = _RegisteredPrompt(
                template.info, template.schema, template.check, self._of_file(template, self._renderings), template
            )
            self._add(registered, template.definition)
        if before != {name: self._contents[name].etag for name in self._names}:
            self._renderings.clear()
            self.list_changed()
        return problems

    def prompt(self, name: str) -> PromptInfo | None:
        registered = self._prompts.get(name)
        return None if registered is None else registered.info

    async def render(self, call: Call) -> PromptResult | Any:
        """Raises InvalidParams for an unknown prompt and for wrong arguments (data `promptName`,
        `validationErrors`), and whatever the reading of a resource part raises."""
        registered = self._known(call.ref.path)
        from octavo.prompts.arguments import checked

        values = checked(registered.info.name, registered.schema, registered.check, call.values)
        return await registered.rendering(call._replace(arguments=OwnArguments(values)), self._ask)

    async def complete_argument(self, call: Call) -> Sequence[str]:
        """Raises InvalidParams for an unknown prompt."""
        registered = self._known(call.ref.path)
        asked = call.given(CompleteArguments)
        argument, known = asked.argument, [one.name for one in registered.info.arguments]
        if argument not in known:
            raise InvalidParams(
                f"Unknown argument of the prompt {call.ref.path}: {argument[:80]!r}; {meant(argument, known)}",
                promptName=call.ref.path,
            )
        from octavo.prompts.completion import complete

        addresses: Sequence[Address] = () if registered.template is None else registered.template.addresses()
        return await complete(registered.schema, addresses, asked, call, self._ask)

    def _of_file(self, template: PromptTemplate, kept: Renderings) -> Rendering:
        from octavo.core.languages import chosen
        from octavo.prompts import render
        from octavo.prompts.template import CONTEXT, LANGUAGE

        async def rendering(call: Call, ask: Ask) -> PromptResult:
            values = dict(call.values)
            said, handle = values.get(LANGUAGE), values.get(CONTEXT) if template.remembers else None
            wanted = ([said] if isinstance(said, str) else []) + _spoken(call)
            locale = chosen(tuple(template.variants), wanted, self._locales)
            past: Sequence[Said] = ()
            if self._conversations is not None and isinstance(handle, str) and handle:
                past = await self._conversations.past(call.principal.id, handle)
            one = render.Rendering(template, locale, values, past)
            return await render.render(one, call, ask, embed=self._embed, kept=kept)

        return rendering

    def _known(self, name: str) -> _RegisteredPrompt:
        registered = self._prompts.get(name)
        if registered is None:
            raise unknown_prompt(name)
        return registered

    def _add(self, registered: _RegisteredPrompt, definition: Mapping[str, Any]) -> None:
        info = registered.info
        self._put(info.name, definition, title=info.title, description=info.description)
        self._prompts[info.name] = registered


def _spoken(call: Call) -> list[str]:
    """The languages of the client that waits, also where a tool asks on its behalf."""
    asked: Call | None = call
    while asked is not None:
        if asked.channel is not None:
            return list(asked.channel.locales)
        asked = asked.parent
    return []


def _definition(info: PromptInfo, schema: Mapping[str, Any]) -> dict[str, Any]:
    known = {"id": info.name, "title": info.title, "description": info.description, "inputSchema": schema}
    return {key: value for key, value in known.items() if value is not None}


async def _unbound(call: Call) -> Reply:
    raise InternalError("The prompts are not bound to a pipeline yet")
