"""What a configuration only refers to: files beside it, and secrets that never stand in it.

Both are resolved while the configuration is read, with the context that `load` passes to pydantic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct, field
from pydantic import BeforeValidator, Field, PlainValidator, SecretStr, ValidationInfo

from octavo.core.sizes import KIB

if TYPE_CHECKING:
    from octavo.config.sections.source import Kinds

MAX_SECRET_BYTES = 64 * KIB
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
_HOW = "a secret is only referred to: write ${NAME} for an environment variable or file:PATH for a file"


class Context(Struct, frozen=True):
    """Where relative paths begin, which variables and which kinds of sources there are. Collects the files in which
    secrets were found."""

    base: Path
    environ: Mapping[str, str]
    kinds: Kinds | None = None
    secret_files: list[Path] = field(default_factory=list[Path])

    def absolute(self, text: str) -> Path:
        return self.base / Path(text).expanduser()


def _context(info: ValidationInfo) -> Context:
    given = info.context
    return given if isinstance(given, Context) else Context(Path.cwd(), os.environ)


def resolve_path(value: object, info: ValidationInfo) -> Path:
    """An absolute path. Relative ones begin at the folder of the configuration."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value or "\x00" in value:
        raise ValueError("must be a path")
    try:
        return _context(info).absolute(value)
    except RuntimeError:
        raise ValueError("begins with ~, but the home folder is not known") from None


def resolve_program(text: str, info: ValidationInfo) -> str:
    """The absolute path of a program: found now, and never again by its name."""
    if "/" in text:
        path = str(resolve_path(text, info))
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            raise ValueError("begins with a path at which there is no program that can be run")
        return path
    from shutil import which  # here: few configurations have a program

    found = which(text, path=_context(info).environ.get("PATH", os.defpath))
    if found is None:
        raise ValueError(f"there is no program {text} on this machine; name it by its path")
    return os.path.abspath(found)


def interpreters(program: str) -> tuple[str, ...]:
    """What the kernel starts for a script, and what that starts: of `#!/usr/bin/env python3` both."""
    try:
        with open(program, "rb") as file:
            first = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return ()
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if not words:
        return ()
    from shutil import which

    found = [words[0]]
    if os.path.basename(words[0]) == "env":
        found += filter(None, map(which, words[1:2]))
    return tuple(found)


def resolve_secret(value: object, info: ValidationInfo) -> SecretStr:
    """The secret that a reference leads to. No message ever repeats the value."""
    if isinstance(value, SecretStr):
        return value
    text = value if isinstance(value, str) else ""
    if found := _VARIABLE.match(text):
        name = found[1]
        secret = _context(info).environ.get(name)
        if secret is None:
            raise ValueError(f"the environment variable {name} is not set")
        if not secret.strip():
            raise ValueError(f"the environment variable {name} is empty")
        return SecretStr(secret.strip())
    if text.startswith("file:") and len(text) > len("file:"):
        context = _context(info)
        file = context.absolute(text.removeprefix("file:"))
        context.secret_files.append(file)
        return SecretStr(_read_secret(file))
    raise ValueError(_HOW)


def resolve_document(reference: str, info: ValidationInfo) -> str:
    """The text of the file in `file:PATH`, which is read with the configuration and no later."""
    context = _context(info)
    file = context.absolute(reference.removeprefix("file:"))
    context.secret_files.append(file)
    return _read_secret(file)


def _read_secret(path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        with path.open("rb") as file:
            raw = file.read(MAX_SECRET_BYTES + 1)
        secret = raw.decode("utf-8").strip()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} does not hold UTF-8 text") from None
    if not secret or len(raw) > MAX_SECRET_BYTES:
        raise ValueError(f"{path} is {'too large' if secret else 'empty'}")
    return secret


_ReferenceText = Annotated[str, Field(pattern=r"^(\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+)$")]

FilePath = Annotated[Path, PlainValidator(resolve_path, json_schema_input_type=str)]
Secret = Annotated[SecretStr, BeforeValidator(resolve_secret, json_schema_input_type=_ReferenceText)]
