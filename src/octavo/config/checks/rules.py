"""Rules that load and do not do what they seem to: without an effect, never asked, or shutting everybody out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final

from octavo.config.checks.findings import ConfigFinding, Site
from octavo.config.model import Config, Rule
from octavo.core.clock import SystemClock
from octavo.core.glob import Glob
from octavo.core.values import VERBS

# What is asked of tools and prompts; of everything else, the other verbs.
_ASKED: Mapping[str, frozenset[str]] = {
    "tool": frozenset(("invoke", "approve")),
    "permission": frozenset(("invoke",)),
    "prompt": frozenset(("render", "complete")),
    "server": frozenset(("admin",)),
}
_UNGRANTED: Final = frozenset(("approve", "complete"))
_OF_RESOURCES: Final = frozenset(VERBS) - {"invoke", "render", "admin"}


def rules_have_an_effect(site: Site) -> Iterator[ConfigFinding]:
    rules, agents = site.config.policy, site.config
    for index, rule in enumerate(rules):
        number = site.number("policy", index)
        for other_index, other in enumerate(rules):
            if other is rule or other.when is not None or other.unless is not None or not _covers(other, rule, agents):
                continue
            told = site.number("policy", other_index)
            if rule.effect == "allow" and other.effect == "deny":
                yield ConfigFinding(("policy", number), f"has no effect: policy[{told}] denies all of it", fatal=False)
                break
            twins = _covers(rule, other, agents) and rule.when == other.when and rule.unless == other.unless
            same = rule.effect == other.effect and rule.approve == other.approve
            if same and rule.hide <= other.hide and not (twins and rule.hide == other.hide):
                yield ConfigFinding(("policy", number), f"adds nothing to policy[{told}], which is wider", fatal=False)
                break


def grants_are_needed(site: Site) -> Iterator[ConfigFinding]:
    for index, rule in enumerate(site.config.policy):
        if rule.effect == "allow" and _UNGRANTED.issuperset(rule.may):
            path = ("policy", site.number("policy", index), "may")
            message = f"has no effect: no grant is needed for {' and '.join(sorted(rule.may))}"
            yield ConfigFinding(path, message, "write effect: deny to take it away", fatal=False)


def rules_can_match(site: Site) -> Iterator[ConfigFinding]:
    for index, rule in enumerate(site.config.policy):
        number = site.number("policy", index)
        for pattern in rule.what:
            scheme = Glob(pattern).scheme
            asked = frozenset(VERBS) if scheme == "*" else _ASKED.get(scheme, _OF_RESOURCES)
            if "*" not in rule.may and asked.isdisjoint(rule.may):
                message = f"never matches: {scheme}:// is asked for {', '.join(sorted(asked))}"
                yield ConfigFinding(("policy", number, "may"), message, fatal=rule.effect == "deny")
                break
        if (last := _over_since(rule)) is not None:
            yield ConfigFinding(
                ("policy", number, "when", "time", "until"), f"the rule is over since {last}", fatal=False
            )


def _over_since(rule: Rule) -> date | None:
    today = datetime.fromtimestamp(SystemClock.wall(), UTC).date()
    last = rule.when.time.last if rule.when is not None and rule.when.time is not None else None
    return last if last is not None and last < today else None


def somebody_may_do_something(site: Site) -> Iterator[ConfigFinding]:
    rules = site.config.policy
    if not rules or "policy" in site.kept.broken:
        return
    denies = [rule for rule in rules if rule.effect == "deny" and rule.when is None and rule.unless is None]
    allows = [rule for rule in rules if rule.effect == "allow" and _over_since(rule) is None]
    held = [rule for rule in allows if any(map(site.somebody_is, rule.who))]
    if all(any(_covers(deny, allow, site.config) for deny in denies) for allow in held):
        if held:
            why = "every rule that allows something is denied by another"
        else:
            why = "who is allowed something does not exist" if allows else "no rule allows anything"
        hint = "add a rule that allows something, or remove the policy"
        yield ConfigFinding(("policy",), f"locks everybody out: {why}", hint, fatal=False)


def conditions_can_hold(site: Site) -> Iterator[ConfigFinding]:
    """Files tell no metadata, but for labels; and what a document says of itself, its author wrote."""
    sources = {source.scheme: source for source in site.config.sources.values() if source.expose}
    for index, rule in enumerate(site.config.policy):
        demands = [part for part in (rule.when, rule.unless) if part is not None and part.metadata]
        if not demands:
            continue
        from octavo.core.labels import LEVELS

        path = ("policy", site.number("policy", index), "when" if rule.when in demands else "unless", "metadata")
        over = [sources[scheme] for scheme in _schemes(rule, sources)]
        beyond_labels = {key for part in demands for key in part.metadata}.difference(LEVELS)
        if over and beyond_labels and all(source.record.metadata == "none" for source in over):
            hint = "serve them as a catalog, or ask for labels"
            yield ConfigFinding(path, "files have no metadata but labels", hint, fatal=False)
        elif rule.effect == "allow" and any(source.record.metadata == "document" for source in over):
            message = "who writes a document decides by its metadata who gets this right"
            yield ConfigFinding(path, message, "see that only people you trust change these files", fatal=False)


def _schemes(rule: Rule, known: Mapping[str, object]) -> Sequence[str]:
    named = {Glob(pattern).scheme for pattern in rule.what}
    return [scheme for scheme in known if "*" in named or scheme in named]


def _covers(wide: Rule, narrow: Rule, config: Config) -> bool:
    """Whether everything that one rule is about the other is about too. May be False although it is so."""
    return (
        _verbs(narrow) <= _verbs(wide)
        and all("*" in wide.who or _is_among(who, wide.who, config) for who in narrow.who)
        and all(any(covers(Glob(one), Glob(pattern)) for one in wide.what) for pattern in narrow.what)
    )


def _is_among(who: str, names: Sequence[str], config: Config) -> bool:
    agent = config.agents.get(who)
    return who in names or (agent is not None and any(f"role:{role}" in names for role in agent.roles))


def _verbs(rule: Rule) -> frozenset[str]:
    return frozenset(VERBS) if "*" in rule.may else frozenset(rule.may)


def covers(wide: Glob, narrow: Glob) -> bool:
    """Whether each address that the second matches the first matches. May be False although it is so."""
    if wide == narrow:
        return True
    if narrow.exact:
        return wide.matches(narrow.literal)
    return wide.subtree and wide.matches(narrow.literal)


LOOKS: Final = (
    rules_have_an_effect,
    grants_are_needed,
    rules_can_match,
    conditions_can_hold,
    somebody_may_do_something,
)
