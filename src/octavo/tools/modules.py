"""Imports Python files of the operator as modules of their own."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from octavo.core.errors import InternalError
from octavo.core.foreign import described, passed_on, sound
from octavo.core.foundation import Changeable, nothing_changes


class CodeError(InternalError):
    """A file could not be run. The message is for the operator."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


def run_file(path: Path) -> ModuleType:
    """Raises CodeError for whatever the code does wrong."""
    try:
        return execute(path)
    except ModuleNotFoundError as error:
        message = f"imports {error.name}, which is not installed: install it beside octavo"
        raise CodeError(message, line_of(error, str(path))) from error
    except SyntaxError as error:
        raise CodeError(f"is no Python: {error.msg}", error.lineno) from error
    except BaseException as error:  # foreign code runs here
        if passed_on(error):
            raise
        raise CodeError(f"failed: {described(error)}", line_of(error, str(path))) from error


def execute(path: Path) -> ModuleType:
    """Raises FileNotFoundError where there is none, and whatever the code raises."""
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise FileNotFoundError(2, "No such file", str(path))
    # Two files may have the same name, so that of the module comes from the whole path.
    name = f"octavo_plugin_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    inside = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(
        name, file, loader=_Fresh(name, str(file)), submodule_search_locations=inside
    )
    assert spec is not None and spec.loader is not None  # a loader was given
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look themselves up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextmanager
def beside(directories: Sequence[Path], changeable: Changeable = nothing_changes) -> Iterator[None]:
    """Files of these folders can import each other, as they are now and not as they were when they were last run."""
    folders = [str(directory) for directory in directories]
    for name, module in [*sys.modules.items()]:
        if os.path.dirname(getattr(module, "__file__", None) or "") in folders:
            del sys.modules[name]
    importlib.invalidate_caches()
    finder = _Beside(folders, changeable)
    sys.meta_path.append(finder)  # behind all others: a helper takes the place of no package
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def line_of(error: BaseException, file: str) -> int | None:
    """The last line of the file that had a part in it."""
    error = sound(error)
    if isinstance(error, SyntaxError):
        return error.lineno
    number, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith(file):
            number = at.tb_lineno
        at = at.tb_next
    return number


class _Fresh(SourceFileLoader):
    """Always from the source: kept bytecode is told apart by seconds, and a file can change twice in one."""

    def get_code(self, fullname: str) -> CodeType | None:
        return self.source_to_code(self.get_data(self.path), self.path)


class _Beside:
    def __init__(self, folders: Sequence[str], changeable: Changeable) -> None:
        self._folders, self._changeable = folders, changeable

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for folder in self._folders if path is None else ():
            file = os.path.join(folder, f"{fullname}.py")
            if os.path.isfile(file) and not self._changeable(Path(file)):
                return importlib.util.spec_from_file_location(fullname, file, loader=_Fresh(fullname, file))
        return None
