"""The pages of the documentation, read once."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from tests.tools.builtin.conftest import serve

__all__ = ["book", "generate", "root", "serve"]

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(?P<language>[a-z]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


class Example(NamedTuple):
    """A fenced block, and where it begins."""

    page: str
    line: int
    language: str
    body: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


class Book:
    """Every page by its path from the root of the repository."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.pages = pages

    def __getitem__(self, page: str) -> str:
        return self.pages[page]

    def prose(self, page: str) -> str:
        """Without fenced blocks, in which `#` is no heading."""
        return _FENCE.sub("", self.pages[page])

    def headings(self, page: str) -> list[tuple[int, str]]:
        return [(len(found[1]), found[2].strip()) for found in _HEADING.finditer(self.prose(page))]

    def examples(self, *languages: str) -> Iterator[Example]:
        for page, text in self.pages.items():
            for found in _FENCE.finditer(text):
                if found["language"] in languages:
                    yield Example(page, text.count("\n", 0, found.start()) + 1, found["language"], found["body"])


@pytest.fixture(scope="session")
def book() -> Book:
    files = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return Book({path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files})


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="module")
def generate(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("octavo_docs_generate", root / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
