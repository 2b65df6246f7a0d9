"""The shape of `commands`: programs that may be run, each with what its callers may add to its arguments."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from octavo.config.reference import FilePath, resolve_program
from octavo.config.strict import Strict, written
from octavo.config.units import Size, Timeout, parse_size, parse_timeout
from octavo.config.words import Count, Expression, Flag, one_or_many

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _check_name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError("must be a name of letters, digits, _ and -, beginning with a letter")
    return name


CommandName = Annotated[str, AfterValidator(_check_name)]


def _check_word(word: str) -> str:
    if not word or "\x00" in word:
        raise ValueError("must be a text that a program can be given")
    return word


Word = Annotated[str, AfterValidator(_check_word)]


class Argument(Strict):
    name: CommandName = Field(description="By which a caller gives it.")
    type: Literal["text", "integer", "choice", "path", "switch"] = Field(
        default="text",
        description="text; integer; choice: one of choices; path: a file or folder below the working folder that the "
        "caller may see; switch: true puts the flag there.",
    )
    description: str = Field(default="", description="What it is for.")
    flag: Word | None = Field(
        default=None,
        description="Stands before the value, as an argument of its own; one that ends with = is joined with it.",
    )
    required: Flag = Field(default=False, description="Whether it must be given.")
    many: Flag = Field(default=False, description="Whether it may be a list, of up to 100 values.")
    pattern: Expression | None = Field(
        default=None, description="Of a text: a regular expression (RE2) that the whole value must match."
    )
    longest: Count = Field(default=1000, le=100_000, description="Of a text: how many characters it may have.")
    least: int | None = Field(default=None, alias="min", description="Of an integer: the smallest.")
    most: int | None = Field(default=None, alias="max", description="Of an integer: the largest.")
    choices: tuple[Word, ...] = Field(default=(), description="Of a choice: the values.")
    dashes: Flag = Field(
        default=False,
        description="Whether a text may begin with a dash. Programs take such a text for an option of theirs.",
    )

    @model_validator(mode="after")
    def _fits_its_type(self) -> Argument:
        if (self.type == "choice") is not bool(self.choices):
            raise ValueError("choices belong to type: choice, which needs them")
        if self.type == "switch" and (self.flag is None or self.flag.endswith("=") or self.required or self.many):
            raise ValueError("type: switch needs a flag without =, and is neither required nor many")
        if self.type != "text" and (self.pattern is not None or self.dashes):
            raise ValueError("pattern and dashes belong to type: text")
        if self.type != "integer" and (self.least is not None or self.most is not None):
            raise ValueError("min and max belong to type: integer")
        if self.least is not None and self.most is not None and self.most < self.least:
            raise ValueError("has a max below its min, so that nothing fits")
        return self


def _check_variables(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _VARIABLE.match(name) or "\x00" in value:
            raise ValueError("must be names of variables and their texts")
    return env


class ProgramOptions(Strict):
    run: Annotated[
        tuple[Word, ...],
        Field(min_length=1),
        BeforeValidator(one_or_many, json_schema_input_type=str | list[str]),
    ] = Field(description="The program, by name or path, and arguments that always come first. Never a shell line.")
    description: str = Field(default="", description="What it is for.")
    args: tuple[Argument, ...] = Field(
        default=(), description="What a caller may add, in this order; each value is one argument and never more."
    )
    input: Flag = Field(default=False, description="Whether a caller may give it a standard input.")
    write: Flag = Field(
        default=False, description="Whether it may change files below its working folder, if the source may be written."
    )
    network: Flag = Field(default=False, description="Whether it may use the network.")
    reads: tuple[FilePath, ...] = Field(
        default=(), description="Files and folders that it needs, beside its working folder and the system's libraries."
    )
    runs: tuple[FilePath, ...] = Field(
        default=(), description="Programs that it starts itself, or folders of them. Interpreters of scripts are known."
    )
    env: Annotated[dict[str, str], AfterValidator(_check_variables)] = Field(
        default={}, description="All of its environment, but for LANG. No secrets: write those into no configuration."
    )

    @field_validator("run")
    @classmethod
    def _is_found(cls, run: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return (resolve_program(run[0], info), *run[1:])

    @model_validator(mode="after")
    def _has_clear_arguments(self) -> ProgramOptions:
        names = [argument.name for argument in self.args]
        if len(set(names)) != len(names):
            raise ValueError("has two args of one name")
        return self


class Commands(Strict):
    programs: dict[CommandName, ProgramOptions] = Field(
        default={}, description="What may be run, by a name of your choice. Nothing else is ever started."
    )
    confine: Literal["auto", "require"] = Field(
        default="auto",
        description="Landlock, an empty network and processes of their own: as far as this machine can, or not at all.",
    )
    time: Timeout = written("30s", parse_timeout, "How long a command may take.")
    cpu: Annotated[Timeout, Field(ge=1)] = written("30s", parse_timeout, "Processor time of each process; at least 1s.")
    memory: Size = written("1GiB", parse_size, "Address space of each process.")
    output: Size = written("1MiB", parse_size, "How much a command may print; of a started process, how much is kept.")
    file: Size = written("64MiB", parse_size, "The largest file that a program may write.")
    input: Size = written("1MiB", parse_size, "The largest standard input.")
    processes: Count = Field(default=64, description="Processes of one command, itself included.")
    at_once: Count = Field(
        default=8,
        description="Commands that run at once; others wait for their turn. An agent that runs some leaves the last "
        "place to others.",
    )
    started: Count = Field(default=4, description="Processes that one caller may have started.")
    idle: Timeout = written("10m", parse_timeout, "A started process that its caller does not ask for ends after it.")
    lifetime: Timeout = written("1h", parse_timeout, "How long a started process may run.")
