"""The SDK without the parts that a server never uses: a good part of the time until the first answer.

`import mcp` imports the SDK's client, and `mcp.server` its decorator framework. Both packages are put in place
without being executed. Their modules can be imported as usual, and the first name that somebody asks of the
package itself executes it.

The SDK describes every message as a model, once for itself and once for each of two protocol versions. Most are
never used in one process: they are left unbuilt until they are, and those of a version are not even declared
before somebody speaks it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from pydantic._internal import _config

_PACKAGES = ("mcp", "mcp.server")
VERSIONS = ("mcp_types._v2025_11_25", "mcp_types._v2026_07_28")


class _Unexecuted(ModuleType):
    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if spec is None or spec.loader is None or (name.startswith("__") and name != "__all__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on an ordinary module
        with unbuilt():
            spec.loader.exec_module(self)
        return getattr(self, name)


class _Promised(ModuleType):
    """Answers with stand-ins for its models, so that a table of them can be made."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _stand_in(self, name)


def _stand_in(module: ModuleType, name: str) -> type:
    """Does for a model all that the SDK's tables are used for: validate, and be (a part of) what an adapter is for;
    and for a function, be called."""

    def call(_: type, *args: Any, **options: Any) -> Any:
        return getattr(module, name)(*args, **options)

    def validate(*args: Any, **options: Any) -> Any:
        return getattr(module, name).model_validate(*args, **options)

    def schema(_: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(getattr(module, name))

    does = {"__new__": call, "model_validate": validate, "__get_pydantic_core_schema__": schema}
    return type(name, (), {what: staticmethod(done) for what, done in does.items()})


def spare() -> None:
    """Before the first import of the SDK; packages that are there already stay as they are."""
    for package in _PACKAGES:
        _place(package, _Unexecuted)


@contextmanager
def promised(*modules: str) -> Iterator[None]:
    """Who imports names of these modules meanwhile gets stand-ins, which execute the module when one is used."""
    placed = [module for name in modules if (module := _place(name, _Promised)) is not None]
    try:
        yield
    finally:
        for module in placed:
            module.__class__ = _Unexecuted


def _place(package: str, kind: type[ModuleType]) -> ModuleType | None:
    """Puts a package in place without executing it, unless it is there already."""
    spec = None if package in sys.modules else find_spec(package)
    if spec is None:
        return None
    module = module_from_spec(spec)
    module.__class__ = kind
    sys.modules[package] = module
    parent, _, name = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)
    return module


@contextmanager
def unbuilt() -> Iterator[None]:
    """Models that are declared meanwhile are built when they are first used."""
    before = _config.config_defaults["defer_build"]
    _config.config_defaults["defer_build"] = True
    try:
        yield
    finally:
        _config.config_defaults["defer_build"] = before
