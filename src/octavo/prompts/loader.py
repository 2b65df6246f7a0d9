"""Prompt files: one file a prompt, JSON in the format of seed 002 or the same as YAML.

`NAME.ko.json` beside `NAME.json` says the same in another language. Files of other programs are taken as they are, see
`world`. A broken file is reported with its line and the others load; one that is no prompt is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from octavo.core.foundation import LINKED, Changeable, nothing_changes
from octavo.core.languages import is_tag
from octavo.core.sizes import MIB
from octavo.prompts.definition import Definition, OfTranslation, Translation
from octavo.prompts.jsonc import JsonText, NotJson, parse
from octavo.prompts.template import Compile, PromptTemplate

JSON = (".json", ".jsonc")
YAML = (".yaml", ".yml")
MARKDOWN = (".md",)
SUFFIXES = (*JSON, *YAML, *MARKDOWN)
STARTER = Path(__file__).parent / "starter"  # prompts that come with Octavo
MAX_FILE_BYTES = MIB
MAX_FILES = 1000  # of one directory
MAX_LEFT_OUT = 100  # that are named
# Markdown in such folders that is for people, or for another purpose: a command may well be called `security`.
_FOR_PEOPLE = ("readme.md", "license.md", "licence.md", "changelog.md", "contributing.md", "code_of_conduct.md")
_FOR_OTHERS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "SECURITY.md", "SUPPORT.md", "SKILL.md")
_OTHERWISE = (".instructions.md",)

# What tells whether anything is other than it was.
Fingerprint: TypeAlias = Mapping[str, tuple[int, int, int]]


class PromptProblem(NamedTuple):
    path: str
    line: int
    reason: str
    remark: bool = False  # nothing is broken: it is no prompt

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def load(
    directories: Iterable[Path],
    compile_schema: Compile,
    preferred: Sequence[str] = (),
    changeable: Changeable = nothing_changes,
) -> tuple[list[PromptTemplate], list[PromptProblem]]:
    """Every prompt file directly in the directories, in the order of directories and then of names.

    Where two files have one id the first is served and the second is a problem; one of the starters simply gives way.
    """
    templates: dict[str, PromptTemplate] = {}
    problems: list[PromptProblem] = []
    for directory in directories:
        try:
            files = _files(directory)
        except OSError as error:
            problems.append(PromptProblem(str(directory), 1, f"the directory cannot be read: {error.strerror}"))
            continue
        if len(files) > MAX_FILES:
            problems.append(
                PromptProblem(str(directory), 1, f"has more than {MAX_FILES} prompt files; the rest is left out")
            )
        problems += _left_out(directory)
        linked = [path for path in files[:MAX_FILES] if changeable(path)]
        problems += (PromptProblem(str(path), 1, LINKED) for path in linked)
        for path, translations in _with_translations([path for path in files[:MAX_FILES] if path not in linked]):
            template = _loaded(path, translations, compile_schema, preferred, problems)
            if template is None:
                continue
            first = templates.setdefault(template.info.name, template)
            if first is not template and directory != STARTER:
                reason = f"the id {template.info.name!r} is already that of {first.origin}"
                problems.append(PromptProblem(str(path), 1, reason))
    return list(templates.values()), problems


def load_file(
    path: Path,
    compile_schema: Compile,
    translations: Mapping[str, Path] | None = None,
    preferred: Sequence[str] = (),
) -> PromptTemplate:
    """Raises NotJson, and OfTranslation where one of the translations, by language, is broken."""
    text = _text(path)
    if path.suffix in MARKDOWN or (_is_listed(path) and "id" not in _of_yaml(text).value):
        from octavo.prompts.world import of_world  # here: most folders have none

        return of_world(path, text, compile_schema)
    document = _document(path, text)
    further: list[Translation] = []
    for locale, file in (translations or {}).items():
        try:
            further.append(Translation(locale, _document(file, told := _text(file)), told))
        except NotJson as broken:
            raise OfTranslation(locale, broken) from None
    return Definition(document, text, compile_schema, str(path)).template(further, preferred)


def _loaded(
    path: Path,
    translations: dict[str, Path],
    compile_schema: Compile,
    preferred: Sequence[str],
    problems: list[PromptProblem],
) -> PromptTemplate | None:
    """A prompt without those of its translations that are broken; None where it is broken itself."""
    while True:
        try:
            return load_file(path, compile_schema, translations, preferred)
        except NotJson as broken:
            problems.append(PromptProblem(str(path), broken.line, broken.reason))
            return None
        except OfTranslation as wrong:
            file = translations.pop(wrong.locale)
            problems.append(PromptProblem(str(file), wrong.broken.line, wrong.broken.reason))


def fingerprint(directories: Iterable[Path]) -> Fingerprint:
    seen: dict[str, tuple[int, int, int]] = {}
    for directory in directories:
        try:
            for path in _files(directory):
                facts = path.stat()
                seen[str(path)] = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        except OSError:  # loading says why
            seen[str(directory)] = (0, 0, 0)
    return seen


def _files(directory: Path) -> list[Path]:
    with os.scandir(directory) as found:
        names = sorted(one.name for one in found if _is_taken(one.name) and one.is_file())
    return [directory / name for name in names if not name.startswith(".")]


def _with_translations(files: Sequence[Path]) -> list[tuple[Path, dict[str, Path]]]:
    """Each prompt file, and by language the files that translate it."""
    stems = {path.stem for path in files}
    translations: dict[str, dict[str, Path]] = {}
    prompts: list[Path] = []
    for path in files:
        name, _, tag = path.stem.rpartition(".")
        if name in stems and is_tag(tag) and path.suffix not in MARKDOWN:
            translations.setdefault(name, {})[tag] = path
        else:
            prompts.append(path)
    return [(path, translations.get(path.stem, {})) for path in prompts]


def _left_out(directory: Path) -> list[PromptProblem]:
    """What is there and is no prompt, by its name."""
    found: list[PromptProblem] = []
    with os.scandir(directory) as there:
        for one in sorted(there, key=lambda one: one.name):
            if one.name.startswith(".") or (one.is_file() and _is_taken(one.name)):
                continue
            reason = "is no prompt file: those end with " + ", ".join(SUFFIXES)
            if one.is_dir():
                reason = "is a folder, and prompts in it are not looked for; name it in prompts.dirs as well"
            elif one.name.endswith(MARKDOWN):
                reason = "is no prompt, by its name"
            found.append(PromptProblem(one.path, 1, reason, remark=True))
    return found[:MAX_LEFT_OUT]


def _is_taken(name: str) -> bool:
    if not name.endswith(MARKDOWN):
        return name.endswith(SUFFIXES)
    return name.lower() not in _FOR_PEOPLE and name not in _FOR_OTHERS and not name.endswith(_OTHERWISE)


def _is_listed(path: Path) -> bool:
    return path.name.lower().endswith((".prompt.yml", ".prompt.yaml"))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise NotJson(1, f"the file is larger than {MAX_FILE_BYTES} bytes")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise NotJson(1, f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise NotJson(error.object.count(b"\n", 0, error.start) + 1, "the file is not UTF-8") from None


def _document(path: Path, text: str) -> JsonText:
    return _of_yaml(text) if path.suffix in YAML else parse(text)


def _of_yaml(text: str) -> JsonText:
    from octavo.text.frontmatter import of_yaml

    found = of_yaml(text, texts=frozenset(("id", "locale")))
    if found.faults:
        line, message = found.faults[0]
        raise NotJson(min(line, max(1, len(text.splitlines()))), message)
    return JsonText(found.data, found.lines)
