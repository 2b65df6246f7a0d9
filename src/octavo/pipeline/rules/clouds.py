"""Credentials of clouds, hosts and databases, by their look."""

from __future__ import annotations

from octavo.pipeline.rules import checks
from octavo.pipeline.rules.rule import HEX, URL_SAFE, UUID, WORD, Rule, token

CLOUDS: tuple[Rule, ...] = (
    Rule(
        "aws-access-key",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        clue=r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{4}",
        accept=checks.is_real,
    ),
    token("aws-bedrock-key", "ABSK[A-Za-z0-9+/]{4}", r"[A-Za-z0-9+/]{100,}={0,2}"),
    token("aws-marketplace-token", r"amzn\.mws\.", UUID),
    Rule("google-api-key", rf"\bAIza{URL_SAFE}{{35}}", clue=rf"AIza{URL_SAFE}{{4}}", accept=checks.is_real),
    token("google-oauth-secret", "GOCSPX-", rf"{URL_SAFE}{{28}}"),
    token("google-oauth-token", r"ya29\.", rf"{URL_SAFE}{{20,}}"),
    token("google-refresh-token", r"1//0[a-z]", rf"{URL_SAFE}{{40,}}"),
    Rule(
        "azure-client-secret",
        r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34})",
        clue=r"\dQ~",
        accept=checks.is_varied,
    ),
    Rule(
        "azure-storage-key",
        r"(?i)AccountKey=([A-Za-z0-9+/]{86}==)|([A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{6}==)",
        clue=r"(?i:accountkey=)|\+ASt",
    ),
    Rule("azure-shared-access-key", r"(?i)SharedAccessKey=([A-Za-z0-9+/]{43}=)", ("sharedaccesskey=",)),
    Rule(
        "azure-sas-signature",
        r"[?&;]sig=([A-Za-z0-9%+/]{43,}(?:=|%3[dD])?)",
        clue=r"[?&;]sig=",
        accept=checks.is_varied,
    ),
    Rule("azure-devops-token", rf"\b{WORD}{{76}}AZDO{WORD}{{4}}\b", clue=rf"AZDO{WORD}{{4}}"),
    Rule("azure-openai-key", rf"\b{WORD}{{52}}JQQJ9{WORD}{{27}}\b", clue="JQQJ9"),
    Rule("azure-function-key", rf"\b{URL_SAFE}{{44}}AzFu{URL_SAFE}{{6}}==", clue="AzFu"),
    token("alibaba-access-key", f"LTAI{WORD}{{4}}", rf"{WORD}{{8,20}}\b"),
    token("tencent-secret-id", f"AKID{WORD}{{4}}", rf"{WORD}{{28}}\b"),
    token("digitalocean-token", "do[opr]_v1_", rf"{HEX}{{64}}"),
    token("cloudflare-origin-key", r"v1\.0-[0-9a-f]{8}", rf"{HEX}{{16}}-{HEX}{{100,}}"),
    token("heroku-key", "HRKU-", rf"{URL_SAFE}{{30,}}"),
    token("fly-token", r"fo1_|fm[12][ar]?_", r"[A-Za-z0-9+/_-]{40,}={0,2}"),
    token("vercel-token", "vercel_blob_rw_|vc[apikr]_", r"[A-Za-z0-9_]{24,}"),
    token("netlify-token", "nf[popu]_", rf"{WORD}{{36,}}"),
    token("supabase-key", "sbp_|sb_secret_", rf"{URL_SAFE}{{31,}}"),
    token("planetscale-token", "pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9=._-]{32,}"),
    token("databricks-token", f"dapi{HEX}{{4}}", rf"{HEX}{{28}}(?:-\d)?\b"),
    token("mongodb-atlas-secret", "mdb_sa_sk_", rf"{URL_SAFE}{{40,}}"),
    token("neon-key", "napi_", r"[a-z0-9]{40,}"),
    token("scaleway-key", f"SCW{WORD}{{4}}", r"[A-Z0-9]{13}\b"),
    token("tailscale-key", "tskey-[a-z]{3,8}-", rf"{WORD}{{6,}}-{WORD}{{16,}}"),
    token("openshift-token", "sha256~", rf"{URL_SAFE}{{43}}"),
    token("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[A-Za-z0-9._-]{40,}"),
    token("vault-token", r"hv[sbr]\.", rf"{URL_SAFE}{{24,}}"),
    token("onepassword-token", "ops_eyJ", r"[A-Za-z0-9+/_-]{200,}={0,3}"),
    Rule("terraform-cloud-token", rf"\b{WORD}{{14}}\.atlasv1\.{URL_SAFE}{{60,}}", clue=r"\.atlasv1\."),
    token("pulumi-token", "pul-", rf"{HEX}{{40}}\b"),
    token("dynatrace-token", r"dt0[a-z]\d\d\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    token("grafana-token", "glsa_|glc_eyJ", r"[A-Za-z0-9+/_=-]{32,}"),
    token("new-relic-key", "NRAK-|NRII-|NRJS-|NRIQ-|NRRA-", rf"{URL_SAFE}{{19,}}"),
    token("sentry-token", "sntrys_eyJ|sntryu_", r"[A-Za-z0-9+/_=-]{40,}"),
    Rule("sentry-dsn", rf"https://({HEX}{{32}})(?::{HEX}{{32}})?@[a-z0-9.-]+/\d+", clue=rf"https://{HEX}{{32}}"),
)
