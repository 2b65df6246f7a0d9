"""Plugins: Python files that the configuration names. They run in this process, with its rights.

A plugin has one function, called once at start-up:

    def register(octavo: Plugin) -> None:
        @octavo.tool("greet", description="Says hello.", input_schema={...}, hints=Hints(...))
        async def greet(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
            return f"Hello, {arguments['name']}!"
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, overload

from octavo.core.errors import InternalError, OctavoError
from octavo.core.model import Call
from octavo.core.ports import Ask, Source
from octavo.core.surface import Hints, PromptInfo, PromptResult, ToolInfo
from octavo.tools.context import ToolContext
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
            lane_safe=lane_safe and not asks and task == "never",
            asks=asks,
            task=task,
            resumes=resumes,
        )

        def add(function: Handler) -> Handler:
            self.tools.append(Tool(info, function, protocol=self.protocol))
            return function

        return add if handler is None else add(handler)

    def prompt(self, info: PromptInfo, handler: PromptHandler) -> None:
        """The handler gets arguments that were checked, and coerced by `info.input_schema` if there is one."""
        protocol = self.protocol

        async def rendering(call: Call, ask: Ask) -> PromptResult | Any:
            return await handler(ToolContext(call, ask, protocol=protocol), call.arguments)

        self.prompts.append((info, rendering))

    def source(self, source: Source) -> None:
        self.sources.append(source)


def load_plugin(where: Path | str, *, protocol: bool = False) -> Plugin:
    """Loads a Python file or a package folder (a Path, absolute), or an importable module (a str, dotted).

    Raises PluginError, also when the plugin's own code fails.
    """
    path = where if isinstance(where, Path) else None
    label = str(where)
    try:
        module = importlib.import_module(label) if path is None else _run(path)
        register = getattr(module, "register", None)
        if not callable(register):
            raise PluginError(
                f"The plugin {label} has no function `register(octavo)`: add one; it is called at start-up"
            )
        plugin = Plugin(path.stem if path is not None else label, protocol=protocol)
        register(plugin)
    except PluginError:
        raise
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
    except Exception as error:  # foreign code runs here: whatever it does wrong is said with its name
        raise PluginError(
            f"The plugin {label} failed at start-up{_line(error, label)}: {type(error).__name__}: {error}. "
            "Mend the file, or take it out of `plugins:`"
        ) from error
    return plugin


def _run(path: Path) -> ModuleType:
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise PluginError(f"There is no plugin file {file}: mend the path in `plugins:`")
    # Two plugins may have the same file name, so the name of the module comes from the whole path.
    name = f"octavo_plugin_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    inside = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise PluginError(f"{file} is no Python file: name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look themselves up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _line(error: Exception, file: str) -> str:
    if isinstance(error, SyntaxError):
        return f" (line {error.lineno})"
    number, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith(file):
            number = at.tb_lineno
        at = at.tb_next
    return f" (line {number})" if number else ""


def _no_arguments() -> Mapping[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}
