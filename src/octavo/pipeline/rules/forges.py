"""Credentials of code hosts, registries and builds, by their look."""

from __future__ import annotations

from octavo.pipeline.rules.rule import HEX, URL_SAFE, WORD, Rule, token

FORGES: tuple[Rule, ...] = (
    token("github-token", "gh[pousr]_", rf"{WORD}{{36,}}"),
    token("github-fine-grained-token", "github_pat_", r"[A-Za-z0-9_]{40,}"),
    token(
        "gitlab-token",
        "gl(?:pat|dt|ptt|rtr?|cbt|ft|imt|agent|oas|soat|ffct|wt)-|GR1348941",
        r"[A-Za-z0-9_=.-]{20,}",
    ),
    token("bitbucket-token", f"ATBB{WORD}{{4}}|ATCTT3", r"[A-Za-z0-9_=-]{24,}"),
    token("atlassian-token", "ATATT3|ATSTT3", r"[A-Za-z0-9_=-]{50,}"),
    token("npm-token", "npm_", rf"{WORD}{{36}}\b"),
    token("pypi-token", "pypi-AgE", rf"{URL_SAFE}{{50,}}"),
    token("rubygems-key", "rubygems_", rf"{HEX}{{48}}"),
    token("crates-token", f"cio{WORD}{{6}}", rf"{WORD}{{26}}\b"),
    token("nuget-key", "oy2[a-z0-9]{6}", r"[a-z0-9]{37}\b"),
    token("packagist-token", "packagist_[ou][ru]t_", rf"{HEX}{{40,}}"),
    token("clojars-token", "CLOJARS_", r"[a-z0-9]{60}"),
    token("artifactory-key", f"AKCp{WORD}{{4}}|cmVmdGtuO", rf"{WORD}{{55,}}"),
    token("docker-token", "dckr_[po]at_", rf"{URL_SAFE}{{20,}}"),
    token("sonar-token", f"sq[pua]_{HEX}{{4}}", rf"{HEX}{{36}}\b"),
    token("circleci-token", "CCIP(?:AT|RJ)_", r"[A-Za-z0-9]{16,}_[0-9a-f]{40}"),
    token("buildkite-token", "bk(?:ua|aj|ct|r[a-z]?)_", rf"{WORD}{{36,}}"),
    token("sourcegraph-token", "sgp_", r"[A-Za-z0-9_]{40,}"),
    token("postman-key", "PMAK-", rf"{HEX}{{24}}-{HEX}{{34}}"),
    token("launchdarkly-key", "(?:sdk|api)-[0-9a-f]{8}-", rf"{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}\b"),
    token("prefect-key", "pn[ub]_", rf"{WORD}{{36}}\b"),
    token("readme-key", "rdme_", r"[a-z0-9]{70}"),
)
