"""From what a caller gives by name to the words of a command: each value is one word, and never more."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from octavo.core.errors import InvalidParams
from octavo.core.external import Program

MANY: Final = 100  # values of one argument


class CommandArgument(Struct, frozen=True, kw_only=True):
    name: str
    type: Literal["text", "integer", "choice", "path", "switch"] = "text"
    description: str = ""
    flag: str | None = None
    required: bool = False
    many: bool = False
    pattern: str | None = None
    longest: int = 1000
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    dashes: bool = False

    def told(self) -> str:
        """For a model: `count: integer 1..100`."""
        kind = "|".join(self.choices) if self.type == "choice" else "true" if self.type == "switch" else self.type
        if self.type == "integer" and (self.least, self.most) != (None, None):
            kind += f" {'' if self.least is None else self.least}..{'' if self.most is None else self.most}"
        more = "".join((" list" if self.many else "", " required" if self.required else ""))
        return f"{self.name}: {kind}{more}" + (f" ({self.description})" if self.description else "")


class Command(Struct, frozen=True, kw_only=True):
    """A program of the configuration with its fixed words, and what may be added."""

    name: str
    program: Program
    words: tuple[str, ...] = ()  # that always come first
    description: str = ""
    args: tuple[CommandArgument, ...] = ()
    input: bool = False
    write: bool = False

    def told(self) -> str:
        args = "; ".join(argument.told() for argument in self.args)
        stdin = " Takes input." if self.input else ""
        return f"{self.name}: {self.description or 'no description.'}{f' Args: {args}.' if args else ''}{stdin}"

    def paths(self, given: Mapping[str, Any]) -> Iterator[str]:
        """The values that name files, once `arguments` has found them sound."""
        for argument in self.args:
            if argument.type == "path" and argument.name in given:
                yield from _values(argument, given[argument.name])

    def arguments(self, given: Mapping[str, Any]) -> list[str]:
        """Raises InvalidParams, with everything that is wrong."""
        faults = [*_unknown(self, given)]
        words = list(self.words)
        for argument in self.args:
            if argument.name not in given:
                if argument.required:
                    faults.append(_fault(argument.name, "is required"))
                continue
            try:
                for value in _values(argument, given[argument.name]):
                    words += _written(argument, _checked(argument, value))
            except ValueError as error:
                faults.append(_fault(argument.name, str(error)))
        if faults:
            first = f"args.{faults[0]['path'].removeprefix('/args/')} {faults[0]['message']}"
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise InvalidParams(f"{self.name}: {first}{more}", program=self.name, validationErrors=faults)
        return words


def _unknown(command: Command, given: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    names = [argument.name for argument in command.args]
    for name in given:
        if name not in names:
            yield _fault(name[:80], f"is not known; there is {', '.join(names)}" if names else "is not known")


def _values(argument: CommandArgument, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        return (value,)
    if not argument.many:
        raise ValueError("must be a single value")
    if len(value) > MANY:
        raise ValueError(f"may have {MANY} values at most")
    return value


def _written(argument: CommandArgument, word: str | None) -> list[str]:
    if word is None:
        return []
    if argument.type == "switch" or argument.flag is None:
        return [word]
    return [f"{argument.flag}{word}"] if argument.flag.endswith("=") else [argument.flag, word]


def _checked(argument: CommandArgument, value: Any) -> str | None:
    """The word. Raises ValueError with what is wrong."""
    if argument.type == "switch":
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return argument.flag if value else None
    if argument.type == "integer":
        return _integer(argument, value)
    if not isinstance(value, str):
        raise ValueError("must be a text")
    if argument.type == "choice":
        if value not in argument.choices:
            raise ValueError(f"must be one of {', '.join(argument.choices)}")
        return value
    if len(value) > argument.longest:
        raise ValueError(f"may have {argument.longest} characters at most")
    if any(ord(c) < 32 and c not in "\t\n" for c in value) or not _is_utf8(value):
        raise ValueError("has characters that no program should be given")
    return path_word(value) if argument.type == "path" else _text(argument, value)


def _integer(argument: CommandArgument, value: Any) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be an integer")
    if argument.least is not None and value < argument.least:
        raise ValueError(f"must be at least {argument.least}")
    if argument.most is not None and value > argument.most:
        raise ValueError(f"must be at most {argument.most}")
    if value < 0 and argument.least is None:
        raise ValueError("must not be negative")
    if abs(value) > 1 << 63:
        raise ValueError("is too large")
    return str(value)


def _text(argument: CommandArgument, value: str) -> str:
    joined = argument.flag is not None and argument.flag.endswith("=")
    if value.startswith("-") and not argument.dashes and not joined:
        raise ValueError("must not begin with a dash: the program would take it for an option")
    if argument.pattern is not None:
        re2: Any = importlib.import_module("re2")  # untyped
        if re2.fullmatch(argument.pattern, value) is None:
            raise ValueError(f"must match {argument.pattern}")
    return value


def path_word(value: str) -> str:
    """Below the working folder, and no option whatever its name is. Raises ValueError."""
    names = [name for name in value.split("/") if name not in ("", ".")]
    if value.startswith("/") or "://" in value or ".." in names or "\n" in value:
        raise ValueError("must be a path below the working folder, without ..")
    return "/".join((".", *names))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault(name: str, message: str) -> dict[str, str]:
    return {"path": f"/args/{name}", "message": message}
