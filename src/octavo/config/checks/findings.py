"""What checks of a whole configuration look at, and what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from octavo.config.model import Config
from octavo.config.problems import KeyPath
from octavo.config.sections.source import Kinds

LOCAL = "local"  # whoever started the process, where no agent was selected


class ConfigFinding(NamedTuple):
    path: KeyPath
    message: str
    hint: str = ""
    fatal: bool = True


class Remaining(NamedTuple):
    """What is left of a configuration when wrong parts were taken out."""

    broken: frozenset[str] = frozenset()  # sections that lost something: what is absent there proves nothing
    numbers: Mapping[str, Sequence[int]] = MappingProxyType({})  # by section: the places in the file of list entries


WHOLE = Remaining()


class Site(Struct, frozen=True):
    """A configuration, and where its state goes."""

    config: Config
    state: Path
    kinds: Kinds
    kept: Remaining = WHOLE
    state_homes: tuple[Path, ...] = ()
    keyless: bool = False  # whether it may have no key yet: for the commands that make one

    def somebody_is(self, who: str) -> bool:
        """Whether anybody can have that name or role. Tokens bring names and roles of their own."""
        agents, oauth = self.config.agents, self.config.serve.http.oauth
        issuers = () if oauth is None else oauth.issuers
        if who.startswith("role:"):
            return bool(issuers) or any(who.removeprefix("role:") in agent.roles for agent in agents.values())
        return who in ("*", LOCAL) or who in agents or who.partition(":")[0] in issuers

    def number(self, section: str, index: int) -> int:
        """Where an entry of a list stands in the file."""
        numbers = self.kept.numbers
        return numbers[section][index] if section in numbers else index
