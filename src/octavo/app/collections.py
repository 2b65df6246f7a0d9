"""Puts together the operations that are made of child calls: directories, and the skills of the catalogs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from octavo.core.ports.chain import Ask, Reply
from octavo.core.ref import Ref
from octavo.core.values import Call, Op
from octavo.pipeline.operations.directory import Directories


class Collections:
    def __init__(self, schemes: Sequence[str], skill_schemes: Sequence[str]) -> None:
        """Of the exposed sources, and of those among them that hold skills."""
        self.skill_schemes = tuple(skill_schemes)
        self._directories = Directories(schemes, skills=skill_schemes)
        answers: dict[Op, Callable[[Call], Awaitable[Reply]]] = {"directory": self._directories.read}
        self._skills = None
        if skill_schemes:
            from octavo.sources.catalog.skills import Skills  # here: a server of files alone starts sooner

            self._skills = Skills(skill_schemes)
            answers["skills"] = self._skills.answer
        self.answers: Mapping[Op, Callable[[Call], Awaitable[Reply]]] = answers

    def bind(self, ask: Ask, canonical: Callable[[Ref], Ref]) -> None:
        self._directories.bind(ask, canonical)
        if self._skills is not None:
            self._skills.bind(ask)
