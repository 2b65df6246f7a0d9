"""Credentials of code hosts, registries and builds, by their look."""

from __future__ import annotations

from octavo.pipeline.rules import checks
from octavo.pipeline.rules.rule import HEX, URL_SAFE, WORD, Rule, token

FORGES: tuple[Rule, ...] = (
    token("github-token", "gh[pousr]_", rf"{WORD}{{36,}}"),
    token("github-fine-grained-token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    token(
        "gitlab-token",
        "gl(?:pat|dt|rtr?|cbt|ft|imt|soat|ffct|wt)-|glagent-[A-Za-z0-9_-]{30}|GR1348941",
        r"[A-Za-z0-9_=.-]{20,}",
        accept=checks.could_be_real,
    ),
    token("gitlab-trigger-token", "glptt-", rf"{URL_SAFE}{{40}}\b"),
    token("gitlab-oauth-secret", "gloas-", rf"{URL_SAFE}{{64}}", accept=checks.could_be_real),
    Rule("gitlab-session", r"_gitlab_session=([0-9a-z]{32})\b", clue="_gitlab_session="),
    token("bitbucket-token", f"ATBB{WORD}{{4}}|ATCTT3", r"[A-Za-z0-9_=-]{24,}"),
    token("atlassian-token", "ATATT|ATSTT", r"[A-Za-z0-9_=-]{50,}"),
    token("npm-token", "npm_", rf"{WORD}{{36}}\b"),
    token("pypi-token", "pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)", rf"{URL_SAFE}{{70,}}"),
    token("rubygems-key", "rubygems_", rf"{HEX}{{48}}\b"),
    token("crates-token", f"cio{WORD}{{6}}", rf"{WORD}{{26}}\b"),
    token("nuget-key", "oy2[a-z0-9]{6}", r"[a-z0-9]{37}\b"),
    token("packagist-token", "packagist_[ou][ru]t_", rf"{HEX}{{40,}}"),
    token("clojars-token", "CLOJARS_", r"[a-z0-9]{60}"),
    token("artifactory-key", f"AKCp{WORD}{{4}}|cmVmdGtuO", rf"{WORD}{{55,}}"),
    token("docker-token", "dckr_[po]at_", rf"{URL_SAFE}{{20,}}"),
    token("sonar-token", f"sq[pua]_{HEX}{{4}}", rf"{HEX}{{36}}\b"),
    token("sonarcloud-token", "sqco_", rf"{WORD}{{59}}\b"),
    token("circleci-token", "CCIP(?:AT|RJ)_", r"[A-Za-z0-9]{16,}_[0-9a-f]{40}"),
    token("buildkite-token", "bk(?:ua|aj|ct|r[a-z]?)_", rf"{WORD}{{36,}}"),
    token("sourcegraph-token", "sgp_", r"(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}\b"),
    token("segment-token", "sgp_", rf"{WORD}{{64}}\b"),
    token("postman-key", "PMAK-", rf"{HEX}{{24}}-{HEX}{{34}}\b"),
    token("postman-collection-key", "PMAT-", r"[A-Z0-9]{26}\b"),
    token("launchdarkly-key", "(?:sdk|api)-[0-9a-z]{8}-", r"[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}\b"),
    token("prefect-key", "pn[ub]_", rf"{WORD}{{36}}\b"),
    token("readme-key", "rdme_", r"[a-z0-9]{70}"),
    token("harness-key", f"[ps]at\\.{URL_SAFE}{{22}}\\.", rf"{WORD}{{24}}\.{WORD}{{20}}\b"),
    token("infracost-key", "ico-", rf"{WORD}{{32}}\b", accept=checks.is_cased),
    token("octopus-key", "API-", r"[A-Z0-9]{25,31}\b", accept=checks.is_mixed),
    token("spectral-key", "sp[ut]-", rf"{HEX}{{32}}\b"),
    token("endor-key", r"endr\+", rf"{URL_SAFE}{{16,}}"),
    token("cosmo-key", "cosmo_", rf"{HEX}{{32}}\b"),
    token("settlemint-token", "sm_[aps]at_", rf"{WORD}{{16}}\b"),
    token("rootly-key", "rootly_", rf"{HEX}{{64}}\b"),
)
