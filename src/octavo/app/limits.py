"""Builds the quota and throttle folds from `limits` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping

from octavo.config.model import Config, Limits
from octavo.config.sections.limits import Allowance
from octavo.config.units import Rate
from octavo.core.ref import Ref
from octavo.core.values import Principal
from octavo.pipeline.quota import PrincipalLimits, Quota
from octavo.pipeline.throttle import DEFAULT, Throttle

UNLIMITED = 1 << 30
KEYLESS_SESSIONS = 20  # of all callers without a key together
TOGETHER = ""  # the name in which theirs are counted


def quota_of(limits: Limits, aliases: Mapping[Ref, Ref]) -> Quota:
    rate = _per_second(limits.per_principal)
    usual = PrincipalLimits(rate, _burst(limits.per_principal), limits.in_flight, limits.bytes_per_principal)
    allowed = {who: _allowance(wanted, usual) for who, wanted in limits.principals.items()}

    def allowance(who: Principal) -> PrincipalLimits | None:
        name = _first(limits.principals, who)
        return None if name is None else allowed[name]

    return Quota(
        rate=rate,
        in_flight=limits.in_flight,
        bytes=limits.bytes_per_principal,
        total=limits.total,
        waiting=limits.waiting,
        patience=limits.time,
        allowance=allowance if allowed else None,
        tools=_tools(limits, aliases),
    )


def throttle_of(config: Config) -> Throttle:
    return Throttle(
        sources={
            config.sources[name].scheme: DEFAULT._replace(concurrency=one.concurrency, rate=_per_second(one.rate))
            for name, one in config.limits.sources.items()
        }
    )


def subscriptions_of(limits: Limits, who: Principal) -> int:
    name = _first(limits.principals, who)
    wanted = None if name is None else limits.principals[name].subscriptions
    return limits.subscriptions if wanted is None else wanted


def sessions_of(limits: Limits, who: Principal) -> tuple[str, int]:
    """Among whose they count, and how many of them there may be."""
    name = _first(limits.principals, who)
    wanted = None if name is None else limits.principals[name].sessions
    if wanted is not None:
        return who.id, wanted
    return (who.id, limits.sessions) if who.key else (TOGETHER, min(KEYLESS_SESSIONS, limits.sessions))


def _tools(limits: Limits, aliases: Mapping[Ref, Ref]) -> dict[Ref, Quota]:
    """A tool and its further names share one quota."""
    quotas = {
        Ref.of("tool", (name,)): Quota(
            rate=_per_second(one.rate),
            burst=_burst(one.rate),
            in_flight=one.in_flight or UNLIMITED,
            waiting=limits.waiting,
            patience=limits.time,
            keyless=True,
            said={"tool": name},
        )
        for name, one in limits.tools.items()
    }
    return {**{alias: quotas[tool] for alias, tool in aliases.items() if tool in quotas}, **quotas}


def _allowance(wanted: Allowance, usual: PrincipalLimits) -> PrincipalLimits:
    given = wanted.model_fields_set
    return PrincipalLimits(
        rate=_per_second(wanted.rate) if "rate" in given else usual.rate,
        burst=_burst(wanted.rate) if "rate" in given else usual.burst,
        in_flight=wanted.in_flight or usual.in_flight,
        bytes=wanted.bytes if "bytes" in given else usual.bytes,
        keyless="rate" in given,
    )


def _first(wanted: Mapping[str, Allowance], who: Principal) -> str | None:
    mine = {who.id, "*", *(f"role:{role}" for role in who.roles)}
    return next((name for name in wanted if name in mine), None)


def _per_second(rate: Rate | None) -> float | None:
    return None if rate is None else rate.per_second


def _burst(rate: Rate | None) -> float:
    """As many as come in two seconds, or as are allowed in a whole minute or hour."""
    return 0.0 if rate is None else 2.0 * rate.requests if rate.seconds <= 1 else float(rate.requests)
