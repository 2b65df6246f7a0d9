"""Rules for credentials of monitoring services: logs, traces, alarms, dashboards."""

from __future__ import annotations

from octavo.pipeline.redact.rules import checks
from octavo.pipeline.redact.rules.rule import HEX, URL_SAFE, UUID, WORD, PatternRule, token

WATCHERS: tuple[PatternRule, ...] = (
    token("dynatrace-token", r"dt0[a-z]\d\d\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}\b"),
    token("grafana-token", "glsa_|glc_", r"[A-Za-z0-9+/_=-]{32,}"),
    token("grafana-key", "eyJrIjoi", r"[A-Za-z0-9+/]{60,}={0,3}"),
    token("new-relic-key", f"NRAK-[A-Z0-9]{{8}}|NRJS-|NRRA-{HEX}{{23}}", rf"{WORD}{{19}}\b"),
    token("new-relic-insights-key", "NRI[IQ]-", rf"{URL_SAFE}{{25,}}"),
    PatternRule(
        "new-relic-licence",
        r"\b(?:eu01x|[a-f0-9]{5})[a-zA-Z0-9]{31}NRAL\b|\b(?:eu01x|AA)[a-f0-9x]{37}-NRMA\b",
        clue="NRAL|-NRMA",
    ),
    token("sentry-token", "sntrys_eyJ", r"[A-Za-z0-9+/_=-]{40,}"),
    token("sentry-user-token", "sntryu_", rf"{HEX}{{64}}\b"),
    PatternRule("sentry-dsn", rf"https://({HEX}{{32}})(?::{HEX}{{32}})?@[a-z0-9.-]+/\d+", clue=rf"https://{HEX}{{32}}"),
    token("sentry-integration-token", "sntryi_", rf"{HEX}{{64}}\b"),
    token("new-relic-admin-key", "NRAA-", rf"{HEX}{{27}}\b"),
    token("pixie-key", "px-(?:api|dep)-", UUID),
    token("honeycomb-key", "hc[a-z](?:ik|mk|lk)_", r"[a-z0-9]{26,}"),
    token("axiom-token", "xa[ap]t-", UUID),
    token("checkly-key", f"(?:cu|sv)_{HEX}{{8}}", rf"{HEX}{{24}}\b"),
    token("uptimerobot-key", r"[mu]r?\d{6,10}-", rf"{HEX}{{24}}\b"),
    token("healthchecks-key", "hc[rw]_", rf"{WORD}{{28}}\b"),
    token("coralogix-key", "cx(?:tp|up)_", rf"{WORD}{{30}}\b"),
    token("mezmo-key", "sts_", rf"{HEX}{{32}}\b"),
    token("datadog-key", "dd(?:app|api|pat)_", rf"{WORD}{{34,}}"),
    token("firehydrant-token", "fhb-", rf"{HEX}{{32}}\b"),
    token("dash0-token", f"auth_{WORD}{{8}}", rf"{WORD}{{24}}\b", accept=checks.is_cased),
    token("elastic-key", "essu_", r"[A-Za-z0-9+/=]{40,}"),
    token("metabase-key", f"mb_{WORD}{{4}}", r"[A-Za-z0-9+/]{39,}={0,2}", accept=checks.is_cased),
    token("lightdash-token", "ldpat_", rf"{HEX}{{32}}\b"),
    token("hex-token", "hxt[pw]_", rf"{HEX}{{64,}}"),
    token("omni-key", "omni_(?:osk|pat)_", rf"{URL_SAFE}{{30,}}"),
)
