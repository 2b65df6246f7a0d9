"""What in a configuration is allowed and yet worth a second look, what confines
programs, and which sources answer. For `octavo doctor`."""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from octavo.app.stores import looked_at
from octavo.config.load import Loaded
from octavo.config.model import Config
from octavo.core.clock import SystemClock, iso
from octavo.core.errors import OctavoError
from octavo.core.external import Program, RunLimits
from octavo.core.kinds import UNWRITTEN
from octavo.core.ref import Ref
from octavo.core.values import Principal
from octavo.stores.keys import StoredKeys
from octavo.tools.builtin.process.runner import ProgramRunner

if TYPE_CHECKING:
    from octavo.app.composition import Composed

# ok; less: it works, but something is slower or missing; problem: something needed does not work
State = Literal["ok", "less", "problem"]


class Diagnosis(Struct, frozen=True):
    about: str
    state: State
    found: str
    advice: str = ""


_WALLS: Final = {
    "landlock": "Landlock (Linux 5.13 and later, with landlock among lsm=)",
    "network": "a network namespace (user namespaces must be allowed: sysctl user.max_user_namespaces)",
    "processes": "a process namespace, without which a program can leave daemons for a moment",
}
_LIMITS: Final = RunLimits(seconds=20)


def programs(loaded: Loaded) -> Iterator[Diagnosis]:
    """Nothing where no program may be run."""
    options = loaded.config.commands
    if "process" not in loaded.config.toolsets or not options.programs:
        return
    true = Program(path="/bin/true")
    runner = ProgramRunner([true], at_once=1, strict=False, clock=SystemClock())
    try:
        finished = asyncio.run(runner.run(true, (), limits=_LIMITS))
    except OctavoError as error:
        yield Diagnosis("commands", "problem", "no program can be run", error.message)
        return
    missing = [what for wall, what in _WALLS.items() if wall not in finished.walls]
    found = f"programs are confined by {', '.join(finished.walls) or 'their limits alone'}"
    if not missing:
        yield Diagnosis("commands", "ok", found)
        return
    required = options.confine == "require"
    yield Diagnosis("commands", "problem" if required else "less", found, f"missing: {'; '.join(missing)}")


SOON = 14 * 86_400.0  # seconds before its end at which a key is mentioned
WIDE = 16  # a trusted network with more addresses than this many bits leave is no proxy
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)


def smells(loaded: Loaded) -> Iterator[Diagnosis]:
    yield from _keys(loaded)
    yield from _policy(loaded.config)
    yield from _http(loaded.config)
    if loaded.config.redact.rules == "off":
        yield Diagnosis("redaction", "less", "secrets in what is served are not hidden", "take redact.rules: off away")
    if shown := [name for name, groups in loaded.config.redact.sources.items() if groups is None]:
        advice = "take off away under redact.sources, unless what they give is public"
        yield Diagnosis("redaction", "less", f"nothing is hidden in what {', '.join(shown)} give", advice)
    if not loaded.config.audit.fail_closed and loaded.file is not None:
        advice = "take audit.fail_closed: false away, unless answers matter more than records"
        yield Diagnosis("audit", "less", "requests are answered while nothing can be recorded", advice)


def synchronised() -> bool | None:
    """Whether something keeps the clock right; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    try:
        told = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))  # room for any struct timex; asks only
    except (OSError, AttributeError):
        return None
    return None if told < 0 else told != _UNSYNCHRONISED


async def unreachable(composition: Composed, config: Config) -> list[Diagnosis]:
    """One request to each source that is served."""
    pages = {source.scheme: source.record.page for source in config.sources.values()}
    return [
        await _asked(composition, source.scheme, _advice(pages.get(source.scheme))) for source in composition.sources
    ]


def _advice(page: str | None) -> str:
    """What to do about a source of a kind with this page; of a plugin's none is known."""
    if page is None or page == UNWRITTEN:
        return f"it is a plugin's: tell its author; docs/{UNWRITTEN} says what a source must keep to"
    return f"see docs/{page}"


async def _asked(composition: Composed, scheme: str, advice: str) -> Diagnosis:
    call = composition.calls.listing(Principal("local"), Ref(scheme))
    try:
        await composition.behind(call)
    except OctavoError as error:
        why = composition.ailing.get(scheme, error.message)
        return Diagnosis("source", "problem", f"{scheme} does not answer: {why}", advice)
    if scheme in composition.ailing:
        return Diagnosis("source", "less", f"{scheme} answers, but: {composition.ailing[scheme]}", "tell its author")
    return Diagnosis("source", "ok", f"{scheme} answers")


def _keys(loaded: Loaded) -> Iterator[Diagnosis]:
    now = SystemClock.wall()
    try:
        keys = looked_at(loaded, lambda opens: StoredKeys(opens).read())
    except OctavoError as error:
        yield Diagnosis("keys", "problem", error.message, "octavo keys list says more")
        return
    config, bind = loaded.config, loaded.config.serve.http.bind
    proven = config.serve.http.oauth is not None or any(agent.digest for agent in config.agents.values())
    if not bind.loopback and not proven and not any(key.live(now) for key in keys):
        advice = "give an agent a key with octavo keys new AGENT"
        yield Diagnosis(
            "keys", "problem", f"other machines can reach {bind}, but no agent has a key that holds", advice
        )
    for key in keys:
        if key.expires is not None and now < key.expires < now + SOON:
            advice = f"octavo keys new {key.agent} gives the next one; both hold for a while"
            yield Diagnosis("keys", "less", f"{key.id} of {key.agent} ends {iso(key.expires)}", advice)
        if key.created > now + 60:
            yield Diagnosis("clock", "problem", f"the key {key.id} was made {iso(key.created)}", "set the clock")


def _policy(config: Config) -> Iterator[Diagnosis]:
    if not config.policy and (config.agents or not config.serve.http.bind.loopback):
        advice = "write rules under policy; with the first one, everything else is refused"
        yield Diagnosis("policy", "less", "there is none: every agent reads everything that is exposed", advice)
    for index, rule in enumerate(config.policy):
        if rule.effect == "allow" and "*" in rule.who and "*" in rule.may and "**" in rule.what:
            advice = "name who, or what"
            yield Diagnosis("policy", "less", f"policy[{index}] lets everybody do everything", advice)
    named = {who for rule in config.policy if rule.effect == "allow" for who in rule.who}
    for name, agent in config.agents.items() if config.policy and "*" not in named else ():
        if name not in named and not any(f"role:{role}" in named for role in agent.roles):
            yield Diagnosis("policy", "less", f"no rule allows {name} anything", "write one, or take the agent away")


def _http(config: Config) -> Iterator[Diagnosis]:
    http = config.serve.http
    for network in map(ipaddress.ip_network, http.trusted_proxies):
        if network.num_addresses > 1 << WIDE:
            advice = "name the proxies themselves: all others could say where they come from"
            yield Diagnosis("proxies", "less", f"{network} is a very large network to trust", advice)
    if http.metrics == "open" and not http.bind.loopback:
        yield Diagnosis("metrics", "less", f"whoever reaches {http.bind} can read them", "serve.http.metrics: admin")
    if config.limits.per_principal is None and not http.bind.loopback:
        yield Diagnosis(
            "limits", "less", "no agent has a limit on its requests", "say limits.per_principal, such as 50/s"
        )
