"""The registry of prompts: the source of `prompt://` and the end of every `render`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from octavo.core.errors import Conflict, InternalError, InvalidParams
from octavo.core.model import Call
from octavo.core.ports import Ask, Reply
from octavo.core.shelf import Shelf
from octavo.core.surface import PromptInfo, PromptResult
from octavo.prompts.arguments import checked, completions, schema_of
from octavo.prompts.loader import Problem, load
from octavo.prompts.render import render
from octavo.prompts.template import Check, Compile, Template

# A prompt of a plugin. `call.arguments` are checked values; what it asks with `ask` are child calls.
# Anything but a PromptResult goes to the wire as it is.
Rendering: TypeAlias = Callable[[Call, Ask], Awaitable[PromptResult | Any]]


class _Registered(Struct, frozen=True):
    info: PromptInfo
    schema: Mapping[str, Any]
    check: Check
    rendering: Rendering
    from_file: bool


class PromptRegistry(Shelf):
    """Prompts by name: those of files, which can be loaded again, and those of plugins, which stay."""

    def __init__(self, compile_schema: Compile) -> None:
        super().__init__("prompt")
        self._compile = compile_schema
        self._prompts: dict[str, _Registered] = {}
        self._ask: Ask = _unbound

    def bind(self, ask: Ask) -> None:
        """`ask` is the folded pipeline: what prompts read on behalf of their callers goes there."""
        self._ask = ask

    def register(self, info: PromptInfo, rendering: Rendering) -> None:
        """A prompt of a plugin. Raises Conflict for a name that is taken, InvalidParams for a bad definition."""
        if info.name in self._prompts:
            raise Conflict(f"Prompt {info.name} already registered.", promptName=info.name)
        if not info.name or not info.description.strip():
            raise InvalidParams(f"The prompt {info.name!r} needs a name and a description", promptName=info.name)
        schema = schema_of(info)
        self._add(_Registered(info, schema, self._compile(schema), rendering, from_file=False), _definition(info))
        self.list_changed()

    def load(self, directories: Iterable[Path]) -> list[Problem]:
        """Takes what the directories hold now instead of what they held before; gives what is broken."""
        templates, problems = load(directories, self._compile)
        before = {name: self._contents[name].etag for name in self._names}
        for name in [name for name, registered in self._prompts.items() if registered.from_file]:
            del self._prompts[name]
            self._drop(name)
        for template in templates:
            name = template.info.name
            if name in self._prompts:
                problems.append(Problem(template.origin, 1, f"the id {name!r} is already that of a plugin's prompt"))
                continue
            self._add(
                _Registered(template.info, template.schema, template.check, _of_file(template), from_file=True),
                template.definition,
            )
        if before != {name: self._contents[name].etag for name in self._names}:
            self.list_changed()
        return problems

    def prompt(self, name: str) -> PromptInfo | None:
        registered = self._prompts.get(name)
        return None if registered is None else registered.info

    async def render(self, call: Call) -> PromptResult | Any:
        """Raises InvalidParams for an unknown prompt and for wrong arguments (data `promptName`,
        `validationErrors`), and whatever the reading of a resource part raises."""
        registered = self._known(call.ref.path)
        values = checked(registered.info.name, registered.schema, registered.check, call.arguments)
        return await registered.rendering(call._replace(arguments=values), self._ask)

    async def complete(self, argument: str, prefix: str, given: Mapping[str, str]) -> Sequence[str]:
        """`argument` is `prompt name/argument name`. Raises InvalidParams for an unknown prompt."""
        name, _, wanted = argument.partition("/")
        return completions(self._known(name).schema, wanted, prefix)

    def _known(self, name: str) -> _Registered:
        registered = self._prompts.get(name)
        if registered is None:
            raise InvalidParams(f"Unknown prompt: {name}", promptName=name)
        return registered

    def _add(self, registered: _Registered, definition: Mapping[str, Any]) -> None:
        info = registered.info
        self._put(info.name, definition, title=info.title, description=info.description)
        self._prompts[info.name] = registered


def _of_file(template: Template) -> Rendering:
    async def rendering(call: Call, ask: Ask) -> PromptResult:
        return await render(template, call.arguments, call, ask)

    return rendering


def _definition(info: PromptInfo) -> dict[str, Any]:
    known = {
        "id": info.name,
        "title": info.title,
        "description": info.description,
        "inputSchema": info.input_schema if info.input_schema is not None else schema_of(info),
    }
    return {key: value for key, value in known.items() if value is not None}


async def _unbound(call: Call) -> Reply:
    raise InternalError("The prompts are not bound to a pipeline yet")
