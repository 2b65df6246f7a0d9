"""Credentials. Rules that know a form by its look come first, those that need its surroundings follow.

Earlier rules win where two match the same text. No class of a value holds `[` or `]`: a mark never matches.
Repetitions have no upper bound where none is needed: each counted copy makes the automaton larger.
"""

from __future__ import annotations

from octavo.pipeline.rules import checks
from octavo.pipeline.rules.engine import Rule

_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_ASSIGNED = r"""["']{0,1}[ \t]{0,8}(?::=|=>|=|:)[ \t]{0,8}"""
_SENSITIVE = (
    "password|passwd|passphrase|pwd|secret|secret[_-]?key|client[_-]?secret|api[_-]?key|apikey|access[_-]?key|auth[_-]?key"
    "|private[_-]?key|encryption[_-]?key|signing[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|token"
    "|credential|credentials|비밀번호|암호|패스워드"
)
SENSITIVE_NAME = rf"(?i)(?:^|[^a-z])(?:{_SENSITIVE})$"

BY_LOOK: tuple[Rule, ...] = (
    Rule(
        "private-key",
        rf"""-----BEGIN {_BLOCK}(?:[A-Za-z0-9+/=\s\\:,.()"'_-]*?-----END {_BLOCK}|[A-Za-z0-9+/=\s\\]{{64,}})""",
        ("private key",),
        accept=checks.is_private_key,
    ),
    Rule(
        "private-key-base64",
        r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}={0,2}",
        ("ls0tls1crudjti",),
        accept=checks.is_encoded_private_key,
    ),
    Rule(
        "aws-access-key",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        ("akia", "asia", "abia", "acca"),
        accept=checks.is_real,
    ),
    Rule("github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    Rule("github-fine-grained-token", r"\bgithub_pat_[A-Za-z0-9_]{40,}", ("github_pat_",)),
    Rule(
        "gitlab-token",
        r"\bgl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_=.-]{20,}",
        ("glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-"),
    ),
    Rule("slack-token", r"\bxox[abceoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}", ("xox", "xapp-")),
    Rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})",
        ("hooks.slack.com",),
    ),
    Rule(
        "stripe-key",
        r"\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{24,}",
        ("sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_", "whsec_"),
        accept=checks.is_real,
    ),
    Rule("anthropic-key", r"\bsk-ant-[A-Za-z0-9]{2,12}-[A-Za-z0-9_-]{20,}", ("sk-ant-",)),
    Rule(
        "openai-key",
        r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9_-]{10,}T3BlbkFJ[A-Za-z0-9_-]{10,}",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-", "t3blbkfj"),
    ),
    Rule("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}", ("aiza",), accept=checks.is_real),
    Rule("google-oauth-secret", r"\bGOCSPX-[A-Za-z0-9_-]{28}", ("gocspx-",)),
    Rule("google-oauth-token", r"\bya29\.[A-Za-z0-9_-]{20,}", ("ya29.",)),
    Rule("notion-token", r"\bsecret_[A-Za-z0-9]{43}\b|\bntn_[A-Za-z0-9]{40,60}\b", ("secret_", "ntn_")),
    Rule(
        "discord-token",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
        clue=r"[A-Za-z0-9_-]\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]",
        accept=checks.is_varied,
    ),
    Rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/webhooks/\d{10,25}/([A-Za-z0-9_-]{40,})",
        ("discord.com/api/webhooks", "discordapp.com/api/webhooks"),
    ),
    Rule("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b", ("npm_",)),
    Rule("pypi-token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}", ("pypi-age",)),
    Rule("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", ("sg.",)),
    Rule("twilio-key", r"\bSK[0-9a-f]{32}\b", clue=r"\bSK[0-9a-f]{4}", accept=checks.is_real),
    Rule("hugging-face-token", r"\bhf_[A-Za-z]{34}\b", ("hf_",)),
    Rule("docker-token", r"\bdckr_[po]at_[A-Za-z0-9_-]{20,}", ("dckr_",)),
    Rule("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}", ("hvs.", "hvb.", "hvr.")),
    Rule("atlassian-token", r"\bATATT3[A-Za-z0-9_=-]{50,}", ("atatt3",)),
    Rule("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*", ("eyj",)),
)

BY_SURROUNDINGS: tuple[Rule, ...] = (
    Rule("azure-storage-key", r"(?i)AccountKey=([A-Za-z0-9+/]{86}==)", ("accountkey=",)),
    Rule(
        "aws-secret-key",
        rf"""(?i)aws[a-z0-9_.-]{{0,30}}{_ASSIGNED}["']?([A-Za-z0-9/+]{{40}})(?:[^A-Za-z0-9/+=]|$)""",
        ("aws",),
        accept=checks.is_varied,
    ),
    Rule(
        "twilio-token",
        rf"""(?i)twilio[a-z0-9_.-]{{0,30}}{_ASSIGNED}["']?([0-9a-f]{{32}})\b""",
        ("twilio",),
        accept=checks.is_varied,
    ),
    Rule(
        "authorization",
        rf"""(?i)authorization{_ASSIGNED}["']?(?:(?:bearer|basic|token|kakaoak)[ \t]+)([A-Za-z0-9._~+/=-]{{16,}})""",
        ("authorization",),
        accept=checks.is_varied,
    ),
    Rule(
        "url-password",
        r"""://[^\s/:@"'<>\[\]()|]*:([^\s/@"'<>\[\]()|]+)@[A-Za-z0-9]""",
        clue=r"""://[^\s/@"'<>]*@""",
        accept=checks.is_url_password,
    ),
    Rule(
        "password",
        rf"(?im)(?:{_SENSITIVE}){_ASSIGNED}"
        r"""(?:"([^"\s\\\[\]]{8,})"|'([^'\s\\\[\]]{8,})'|"""
        r"""([^\s"'`,;&<>(){}\[\]\\=:][^\s"'`,;&<>(){}\[\]\\]{7,})(?:[\s"'`,;&<)}\\]|$))"""
        rf"|<(?:{_SENSITIVE})>([^<>\s\[\]]{{8,}})</",
        clue=rf"(?i)(?:{_SENSITIVE})(?:{_ASSIGNED}|>)[^\s]",
        accept=checks.is_password,
    ),
)
