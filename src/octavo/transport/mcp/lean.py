"""The SDK without the parts that a server never uses: a good part of the time until the first answer.

`import mcp` imports the SDK's client, and `mcp.server` its decorator framework. Both packages are put in place
without being executed. Their modules can be imported as usual, and the first name that somebody asks of the
package itself executes it.

The SDK describes every message of two protocol versions as a model. Most are never used in one process, so
they are left unbuilt until they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, cast

from pydantic._internal import _config

_PACKAGES = ("mcp", "mcp.server")


class _Unexecuted(ModuleType):
    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if spec is None or spec.loader is None or (name.startswith("__") and name != "__all__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on an ordinary module
        spec.loader.exec_module(self)
        return getattr(self, name)


def spare() -> None:
    """Before the first import of the SDK; packages that are there already stay as they are."""
    for package in _PACKAGES:
        spec = None if package in sys.modules else find_spec(package)
        if spec is not None:
            module = module_from_spec(spec)
            module.__class__ = _Unexecuted
            sys.modules[package] = module
            parent, _, name = package.rpartition(".")
            if parent:
                setattr(sys.modules[parent], name, module)


@contextmanager
def unbuilt() -> Iterator[None]:
    """Models that are declared meanwhile are built when they are first used."""
    before = _config.config_defaults["defer_build"]
    _config.config_defaults["defer_build"] = True
    try:
        yield
    finally:
        _config.config_defaults["defer_build"] = before


@contextmanager
def without(package: str) -> Iterator[None]:
    """What is imported meanwhile finds no such package, unless it is there already. For those that can do without:
    the SDK's event streams import uvicorn to be told of its shutdown, and on stdio there is no uvicorn."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = cast("ModuleType", None)
    try:
        yield
    finally:
        del sys.modules[package]
