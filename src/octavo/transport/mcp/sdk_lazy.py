"""Imports the SDK without the parts that a server never uses, so that it starts faster.

`import mcp` imports the SDK's client, and `mcp.server` its decorator framework. Both packages are put in place
without being executed. Their modules can be imported as usual, and the first name that somebody asks of the
package itself executes it.

The SDK describes every message as a model, once for itself and once for each of two protocol versions. Most are
never used in one process: they are left unbuilt until they are, down to the fields of each, and those of a version are
not even declared before somebody speaks it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from inspect import get_annotations
from threading import RLock
from types import ModuleType
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic import main as _main
from pydantic._internal import _config, _model_construction
from pydantic.errors import PydanticUndefinedAnnotation

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


# Not one of our own where pydantic has one: two locks, taken in either order, could wait for each other.
_LOCK = getattr(_main, "_rebuild_lock", None) or RLock()
_FIELDS = "__pydantic_fields__"
_REBUILD: Any = BaseModel.__dict__["model_rebuild"]
_COLLECT: Any = _model_construction.set_model_fields


class _Uncollected(dict[str, Any]):
    """Stands for the fields of a model until somebody asks the model for them. Empty for who finds it unasked: the
    model itself, while its fields are collected, has none yet."""

    def __init__(self, model: type[BaseModel], collect: Callable[[], None]) -> None:
        super().__init__()
        self._model, self._collect, self._collecting = model, collect, False

    def __get__(self, instance: BaseModel | None, owner: type[BaseModel] | None = None) -> Any:
        model = self._model
        with _LOCK:
            if model.__dict__[_FIELDS] is self:
                if self._collecting:  # an annotation that needs the very model whose annotations are read
                    said = f"Class {model.__name__!r} is not defined"
                    raise PydanticUndefinedAnnotation(name=model.__name__, message=said)
                self._collecting = True
                try:
                    self._collect()  # sets them
                finally:
                    self._collecting = False
        return model.__dict__[_FIELDS]


@contextmanager
def unbuilt() -> Iterator[None]:
    """Models and adapters that are declared meanwhile are built, and their fields collected, when they are first used.
    By then all is there that their annotations refer to."""

    def model_rebuild(model: type[Any], /, **options: Any) -> bool | None:
        # With options it is pydantic itself that asks, because somebody uses the model now.
        built: bool | None = _REBUILD.__get__(None, model)(**options) if options else None
        return built

    def set_model_fields(model: type[BaseModel], *args: Any, **options: Any) -> None:
        if _is_plain(model, options.get("namespace_info")):
            setattr(model, _FIELDS, _Uncollected(model, lambda: _COLLECT(model, *args, **options)))
        else:
            _COLLECT(model, *args, **options)

    with (
        _instead(TypeAdapter, "_defer_build", property(lambda _: True)),
        _instead(BaseModel, "model_rebuild", classmethod(model_rebuild)),
        _instead(_model_construction, "set_model_fields", set_model_fields),
    ):
        before = _config.config_defaults["defer_build"]
        _config.config_defaults["defer_build"] = True
        try:
            yield
        finally:
            _config.config_defaults["defer_build"] = before


def _is_plain(model: type[BaseModel], found: Any) -> bool:
    """Of others pydantic needs the fields before the model is declared: for private attributes, and for a hash."""
    private = (*get_annotations(model), *getattr(found, "private_candidates", ()))
    if model.__private_attributes__ or model.model_config.get("frozen"):
        return False
    return not any(name.startswith("_") for name in private)


@contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
