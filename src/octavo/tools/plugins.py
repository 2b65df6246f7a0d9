"""Plugins: Python code that the configuration names. It runs in this process, with its rights.

A plugin has one function, called once at start-up:

    def register(octavo: Plugin) -> None:
        @octavo.tool("greet", description="Says hello.", input_schema={...}, hints=Hints(...))
        async def greet(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
            return f"Hello, {arguments['name']}!"
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from octavo.core.errors import InternalError, OctavoError
from octavo.core.foreign import described, own_fault, passed_on
from octavo.core.foundation import LINKED, Changeable, nothing_changes
from octavo.core.kinds import SourceKind
from octavo.core.ports.chain import Ask
from octavo.core.ports.source import Source
from octavo.core.tools import Hints, PromptInfo, PromptResult, ToolInfo
from octavo.core.values import Call
from octavo.tools.context import ToolContext
from octavo.tools.modules import execute, line_of
from octavo.tools.registry import Handler, Tool

PromptHandler: TypeAlias = Callable[[ToolContext, Mapping[str, Any]], Awaitable[PromptResult | Any]]
# How a prompt of a plugin reaches the prompts room, which knows calls and no contexts.
Rendering: TypeAlias = Callable[[Call, Ask], Awaitable[PromptResult | Any]]


class PluginError(InternalError):
    """A plugin could not be loaded. The message is for the operator: it names the file and the remedy."""


class Plugin:
    """What a plugin registers with. The composition root takes `tools`, `prompts` and `sources` from it."""

    def __init__(self, name: str, *, protocol: bool = False) -> None:
        self.name = name
        self.protocol = protocol
        self.tools: list[Tool] = []
        self.prompts: list[tuple[PromptInfo, Rendering]] = []
        self.sources: list[Source] = []
        self.kinds: list[SourceKind[Any]] = []

    @overload
    def tool(
        self,
        name: str,
        handler: Handler,
        *,
        description: str,
        hints: Hints,
        input_schema: Mapping[str, Any] | None = ...,
        title: str | None = ...,
        output_schema: Mapping[str, Any] | None = ...,
        permissions: tuple[str, ...] = ...,
        timeout: float = ...,
        cache: float = ...,
        lane_safe: bool = ...,
        task: Literal["never", "may", "must"] = ...,
        resumes: bool = ...,
    ) -> Handler: ...
    @overload
    def tool(
        self,
        name: str,
        handler: None = None,
        *,
        description: str,
        hints: Hints,
        input_schema: Mapping[str, Any] | None = ...,
        title: str | None = ...,
        output_schema: Mapping[str, Any] | None = ...,
        permissions: tuple[str, ...] = ...,
        timeout: float = ...,
        cache: float = ...,
        lane_safe: bool = ...,
        task: Literal["never", "may", "must"] = ...,
        resumes: bool = ...,
    ) -> Callable[[Handler], Handler]: ...
    def tool(
        self,
        name: str,
        handler: Handler | None = None,
        *,
        description: str,
        hints: Hints,
        input_schema: Mapping[str, Any] | None = None,
        title: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        permissions: tuple[str, ...] = (),
        timeout: float = 60.0,
        cache: float = 0.0,
        lane_safe: bool = False,
        task: Literal["never", "may", "must"] = "never",
        resumes: bool = False,
    ) -> Handler | Callable[[Handler], Handler]:
        """Registers a tool: with `handler` at once, without it as a decorator. No schema: no arguments.

        A call that lasts may become a task where the client knows tasks; `must`: other clients cannot call it.
        `resumes`: a task that a kill ended is done again from the start, which must do no harm.
        """
        asks = "a destructive tool of a plugin" if hints.destructive and not hints.read_only else ""
        info = ToolInfo(
            name=name,
            description=description,
            input_schema=_no_arguments() if input_schema is None else input_schema,
            hints=hints,
            title=title,
            output_schema=output_schema,
            permissions=permissions,
            timeout=timeout,
            cache=cache,
            lane_safe=lane_safe and not asks and task == "never",
            asks=asks,
            task=task,
            resumes=resumes,
        )

        def add(function: Handler) -> Handler:
            self.tools.append(Tool(info, function, protocol=self.protocol))
            return function

        return add if handler is None else add(handler)

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers a function with type hints and a docstring as a tool; see `octavo.tools.tool`."""
        from octavo.tools.functions import tool_of

        self.tools.append(tool_of(function))
        return function

    def prompt(self, info: PromptInfo, handler: PromptHandler) -> None:
        """The handler gets arguments that were checked, and coerced by `info.input_schema` if there is one."""
        protocol = self.protocol

        async def rendering(call: Call, ask: Ask) -> PromptResult | Any:
            try:
                return await handler(ToolContext(call, ask, protocol=protocol), call.values)
            except BaseException as end:  # of the prompt, and never of the server
                fault = own_fault(end, "the prompt")
                if fault is end:
                    raise
                raise fault from fault.__cause__

        self.prompts.append((info, rendering))

    def source(self, source: Source) -> None:
        """One that takes no options. For what the configuration says more of, see `kind`."""
        self.sources.append(source)

    def kind(self, kind: SourceKind[Any]) -> None:
        """A kind of source, for entries of `sources` as those of Octavo's own kinds."""
        self.kinds.append(kind)


GROUP = "octavo.tools"  # of entry points: what an installed package offers
KINDS = "octavo.kinds"  # the same, of kinds of sources alone: records


def load_plugin(
    where: Path | str,
    *,
    protocol: bool = False,
    entry_point: bool = False,
    changeable: Changeable = nothing_changes,
) -> Plugin:
    """Loads a Python file or a package folder (a Path, absolute), an importable module (a str, dotted), or what an
    installed package offers as an entry point of that name.

    Raises PluginError, also when the plugin's own code fails.
    """
    path = where if isinstance(where, Path) else None
    label = str(where)
    try:
        if path is not None:
            _refuse_linked(path, changeable)
            module: Any = execute(path)
        else:
            module = _offered(label) if entry_point else importlib.import_module(label)
        if isinstance(module, SourceKind):
            return _of_kind(label, module)
        register = getattr(module, "register", module if entry_point else None)
        if not callable(register):
            raise PluginError(
                f"The plugin {label} has no function `register(octavo)`: add one; it is called at start-up"
            )
        plugin = Plugin(path.stem if path is not None else label, protocol=protocol)
        register(plugin)
    except PluginError:
        raise
    except FileNotFoundError as error:
        if path is None or error.filename != str(path):
            raise _failed(label, error) from error
        raise PluginError(f"There is no plugin file {path}: mend the path in `plugins:`") from None
    except ModuleNotFoundError as error:
        if path is None and error.name is not None and (label == error.name or label.startswith(f"{error.name}.")):
            raise PluginError(
                f"There is no module {label}: install it beside octavo, or give `path:` instead of `module:`"
            ) from error
        raise PluginError(
            f"The plugin {label} imports {error.name}, which is not installed: install it beside octavo"
        ) from error
    except OctavoError as error:
        raise PluginError(f"The plugin {label} cannot be used: {error}") from error
    except BaseException as error:  # foreign code runs here: whatever it does wrong is said with its name
        if passed_on(error):
            raise
        raise _failed(label, error) from error
    return plugin


def _of_kind(label: str, kind: SourceKind[Any]) -> Plugin:
    plugin = Plugin(label)
    plugin.kind(kind)
    return plugin


def _refuse_linked(path: Path, changeable: Changeable) -> None:
    for file in (path, *path.rglob("*")):
        if changeable(file):
            raise PluginError(f"The plugin {path} cannot be used: {file} {LINKED}")


def _offered(name: str) -> Any:
    from importlib.metadata import entry_points

    found = [one for group in (GROUP, KINDS) for one in entry_points(group=group, name=name)]
    if not found:
        there = ", ".join(sorted({one.name for group in (GROUP, KINDS) for one in entry_points(group=group)})) or "none"
        raise PluginError(f"No installed package offers the entry point {name} in {GROUP}; there is: {there}")
    return found[0].load()


def _failed(label: str, error: BaseException) -> PluginError:
    line = line_of(error, label)
    where = f" (line {line})" if line else ""
    return PluginError(
        f"The plugin {label} failed at start-up{where}: {described(error)}. Mend the file, or take it out of `plugins:`"
    )


def _no_arguments() -> Mapping[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}
