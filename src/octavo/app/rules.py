"""Turns the rules of the configuration into rules of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.config.load import Loaded
from octavo.config.model import Rule as RuleOptions
from octavo.core.glob import Glob
from octavo.core.values import VERBS, Verb
from octavo.pipeline.policy.rules import Rule

if TYPE_CHECKING:
    from octavo.core.labels import Labels
    from octavo.pipeline.policy.conditions import Condition


def rules_of(loaded: Loaded) -> list[Rule]:
    return [
        Rule(
            who=rule.who,
            may=_verbs(rule),
            what=tuple(Glob(pattern) for pattern in rule.what),
            allow=rule.effect == "allow",
            why=rule.why,
            hide=rule.hide,
            name=f"policy[{index}]",
            condition=_condition(rule),
            people=rule.approve,
        )
        for index, rule in enumerate(loaded.config.policy)
    ]


def labels_of(loaded: Loaded) -> Labels | None:
    if not loaded.config.labels:
        return None
    from octavo.core.labels import LEVELS, Label, Labels

    return Labels(
        [
            Label(tuple(map(Glob, label.what)), label.model_dump(include={*LEVELS}, exclude_none=True))
            for label in loaded.config.labels
        ]
    )


def _verbs(rule: RuleOptions) -> frozenset[Verb] | None:
    return None if "*" in rule.may else frozenset(verb for verb in VERBS if verb in rule.may)


def _condition(rule: RuleOptions) -> Condition | None:
    if rule.when is None and rule.unless is None:
        return None
    from octavo.app.conditions import condition

    return condition(rule.when, rule.unless)
