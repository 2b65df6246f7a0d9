"""All rules that come with Octavo, in the order in which they win."""

from __future__ import annotations

from collections.abc import Collection

from octavo.pipeline.redact.rules.clouds import CLOUDS, WATCHERS
from octavo.pipeline.redact.rules.forges import FORGES
from octavo.pipeline.redact.rules.models import MODELS
from octavo.pipeline.redact.rules.money import MONEY
from octavo.pipeline.redact.rules.personal import GROUPS
from octavo.pipeline.redact.rules.rule import PatternRule
from octavo.pipeline.redact.rules.secrets import BY_SURROUNDINGS, KEYS
from octavo.pipeline.redact.rules.services import TALK, WORK

BY_LOOK: tuple[PatternRule, ...] = (*KEYS, *CLOUDS, *WATCHERS, *FORGES, *TALK, *MONEY, *WORK, *MODELS)
SECRETS: tuple[PatternRule, ...] = (*BY_LOOK, *BY_SURROUNDINGS)


def rules_for(groups: Collection[str], *, secrets: bool = True) -> tuple[PatternRule, ...]:
    """Those for secrets, and for these groups of personal data."""
    personal = [rule for group, rules in GROUPS.items() if group in groups for rule in rules]
    return (*BY_LOOK, *personal, *BY_SURROUNDINGS) if secrets else tuple(personal)
