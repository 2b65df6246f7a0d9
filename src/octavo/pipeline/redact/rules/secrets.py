"""Rules for secrets that belong to no one service: private keys, passwords, tokens beside their labels.

Earlier rules win where two match the same text. No class of a value holds `[` or `]`: a mark never matches.
Repetitions have no upper bound where none is needed: each counted copy makes the automaton larger.
"""

from __future__ import annotations

import re

from octavo.pipeline.redact.rules import checks
from octavo.pipeline.redact.rules.columns import CLUE, HEADER, values_below
from octavo.pipeline.redact.rules.rule import PatternRule, token
from octavo.pipeline.redact.rules.values import argument_end, value_end

_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_ENCODED = "(?:UFJJVkFURSBLRVkt|QUklWQVRFIEtFWS|BSSVZBVEUgS0VZL)"
# Quotes are escaped where a text stands inside a string of another.
_ASSIGNED = r"""(?:\\?["'`])?(?:[ \t]string)?[ \t]{0,8}(?::{1,3}=|=>|[?.|]?={1,3}|!==?|:)[ \t]{0,8}"""
_NEXT = r"""\\?["'][ \t]*,[ \t]*\\?["']"""  # as an argument behind its name
# Keys that are made to be shown, and tokens that only find the next page or guard a form.
_HARMLESS = (
    r"(?:public|publishable|csrf|csrf[_-]?middleware|xsrf|page|next|next[_-]?page|sync|cursor|continuation|search|jsonweb|ss)"
    r"[_-]?(?:api[_-]?)?(?:token|key)"
)
_SENSITIVE = (
    "password|passwd|passphrase|pwd|secret|secret[_-]?key|client[_-]?secret|api[_-]?key|apikey|access[_-]?key|auth[_-]?key"
    "|private[_-]?key|encryption[_-]?key|signing[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|token"
    "|credential|credentials|비밀번호|암호|패스워드|인증키|비밀키"
)
_GIVEN = rf"(?i)(?:{_SENSITIVE})(?:{_ASSIGNED}|>\s*|{_NEXT})[^\s]"
_SENSITIVE_NAME = re.compile(rf"(?i)(?:^|[^a-z])(?:{_SENSITIVE})$")
_ROOM = r"(?:zoom(?:gov)?\.(?:us|com)|webex\.com|whereby\.com|jit\.si)(?::\d+)?/[^\s\"'<>]*?[?&]pwd="
_NAMED = r"[a-z0-9_.-]{0,30}"  # the rest of a name that begins with a service's

# A link that lets somebody in, and one that only counts who follows it.
_LETS_IN = r"https?://[A-Za-z0-9.:/_-]*(?:log-?in|sign-?in|auth|sso|verify|confirm|reset|invite|magic|session|token)[A-Za-z0-9/_-]*/"
_IN_PATH = r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9/_-]*()eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]*"
_JWT = r"eyJ[A-Za-z0-9_-]{10}"
_COMMAND = r"(?:[^\r\n]|\\\r?\n)*?"  # goes on behind a backslash
_HEADER = r"x-(?:api|auth|access|goog-api|functions|amz-security|ncp-apigw)-?(?:key|token)"

KEYS: tuple[PatternRule, ...] = (
    PatternRule(
        "private-key",
        # With what stands in front of its lines in a comment, a log or code.
        rf"""-----BEGIN {_BLOCK}(?:[A-Za-z0-9+/=\s\\:,.()"'_*#|>;&-]*?-----END {_BLOCK}"""
        r"""|[A-Za-z0-9+/=\s\\"'#*|>;,]{64,})""",
        ("private key",),
        accept=checks.is_private_key,
    ),
    PatternRule(
        "private-key-base64",
        # As the beginning of a text, and wherever "PRIVATE KEY" stands in one, which base64 writes in three ways.
        rf"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{{60,}}={{0,2}}|\b[A-Za-z0-9+/]{{20,}}{_ENCODED}[A-Za-z0-9+/]{{60,}}={{0,2}}",
        clue=rf"LS0tLS1CRUdJTi|{_ENCODED}",
        accept=checks.is_encoded_private_key,
    ),
    PatternRule(
        "putty-key",
        r"Private-Lines: \d+(?:\s|\\[nr])+([A-Za-z0-9+/=\s\\]+?)(?:\s|\\[nr])+Private-MAC",
        clue="Private-Lines: ",
    ),
    # RFC 8959: a name for whatever wants to be known as a secret.
    token("secret-token", "secret-token:", r"[A-Za-z0-9._~%+/=@:_-]{16,}"),
    token("paseto-token", r"v[1-4]\.(?:local|public)\.", r"[A-Za-z0-9_-]{50,}(?:\.[A-Za-z0-9_-]+)?"),
    token("age-key", "AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b", accept=checks.is_bech32_key),
    PatternRule(
        "jwt",
        # Trackers of mails and short links have one in their path, which is no login: an empty group takes part.
        rf"{_LETS_IN}(eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+)|{_IN_PATH}|(?:\b|_)(eyJ[A-Za-z0-9_-]{{10,}}\.eyJ[A-Za-z0-9_-]{{10,}}(?:\.[A-Za-z0-9_-]*)?)"
        r"|\beyJ(?:hbGciOi|0eXAiOi|raWQiOi)[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}",
        clue=_JWT,
        accept=checks.is_jwt,
    ),
    PatternRule(
        "jwt-encrypted",
        rf"{_IN_PATH}|\beyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{{10,}}){{3}}",
        clue=_JWT,
    ),
    PatternRule(
        "password-hash",
        r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|argon2(?:id|i|d)\$[A-Za-z0-9$=,+/]{40,}"
        r"|[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
        r"|[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}|y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{43}"
        r"|krb5(?:asrep|tgs|pa)\$\d\d\$[^\s\"'\[\]]{64,})",
        clue=r"\$(?:2[abxy]\$\d\d\$|argon2|(?:[15689y]|apr1)\$[./A-Za-z0-9]|krb5[a-z])",
    ),
)  # fmt: skip

BY_SURROUNDINGS: tuple[PatternRule, ...] = (
    PatternRule(
        "aws-secret-key",
        rf"""(?i)aws{_NAMED}{_ASSIGNED}["']?([A-Za-z0-9/+]{{40}})(?:[^A-Za-z0-9/+=]|$)""",
        clue=r"(?i)aws[a-z0-9_.-]*key",
        accept=checks.is_varied,
    ),
    PatternRule(
        "aws-session-token",
        rf"""(?i)session_?token{_ASSIGNED}["']?([A-Za-z0-9/+=]{{100,}})""",
        ("session_token", "sessiontoken"),
        accept=checks.is_varied,
    ),
    PatternRule(
        "twilio-token",
        rf"""(?i)twilio{_NAMED}{_ASSIGNED}["']?([0-9a-f]{{32}})\b""",
        ("twilio",),
        accept=checks.is_varied,
    ),
    PatternRule(
        "service-key",
        rf"(?i)(?:datadog|dd|kakao|naver|cloudflare|cf|okta|pagerduty|algolia|mixpanel|cohere|mistral|wandb|weaviate"
        rf"|shodan|fastly|linode|vultr|zendesk|trello|jenkins|rapidapi|coinbase|binance|snyk|codecov){_NAMED}"
        rf"""(?:key|token|secret|pat){_ASSIGNED}["']?([A-Za-z0-9_.~-]{{20,}})(?:[^A-Za-z0-9_.~-]|$)""",
        clue=rf"(?i)(?:key|token|secret|pat){_ASSIGNED}[\"']?[A-Za-z0-9_.~-]{{16}}",
        accept=checks.is_password,
    ),
    PatternRule(
        "authorization",
        rf"""(?i)authorization{_ASSIGNED}["']?(?:bearer|basic|token|kakaoak|apikey)[ \t]+"""
        r"([A-Za-z0-9._~+/=-]{16,})",
        clue=r"(?i)authorization[\"' \t:=]",
        accept=checks.is_varied,
    ),
    PatternRule(
        "api-key-header",
        rf"""(?i)\b{_HEADER}["']?[ \t]*:[ \t]*["']?([A-Za-z0-9._~+/=-]{{16,}})""",
        clue=rf"(?i){_HEADER}",
        accept=checks.is_varied,
    ),
    PatternRule(
        "session-cookie",
        r"(?i)cookie:[^\r\n]*?(?:session|sess|sid|auth|token)[a-z0-9_.-]*=([A-Za-z0-9._~+/=%-]{20,})",
        clue=r"(?i)cookie:",
        accept=checks.is_varied,
    ),
    PatternRule(
        "registry-auth",
        r"""(?m)(?:"auth\\?"[ \t]*:[ \t]*\\?"|(?:^|:)_auth(?:Token)?[ \t]*=[ \t]*"?)([A-Za-z0-9+/_-]{16,}={0,2})""",
        clue=r"""["_]auth(?:Token)?\\?"?[ \t]*[:=]""",
        accept=checks.is_registry_auth,
    ),
    PatternRule(
        "netrc-password",
        r"\bmachine[ \t]+[^\s\[\]]+\s+(?:login[ \t]+[^\s\[\]]+\s+)?password[ \t]+([^\s\[\]\"'\\])",
        clue=r"machine[ \t]+[^\s]+\s+(?:login|password)",
        accept=checks.is_url_password,
        ends=argument_end,
    ),
    PatternRule(
        "command-password",
        rf"""(?:\bcurl\b{_COMMAND}\s(?:-u|--user)[ =]["']?[^\s:"'\[\]]+:["']?|\bsshpass[ \t]+-p[ ]?["']?"""
        rf"""|\b(?:mysql|mysqldump|mariadb)\b{_COMMAND}\s-p["']?|\bredis-cli\b{_COMMAND}\s-a[ ]["']?)"""
        r"""([^\s"'\[\]\\])""",
        clue=rf"\b(?:curl|sshpass|mysql|mysqldump|mariadb|redis-cli)\b{_COMMAND}\s-",
        accept=checks.is_command_password,
        ends=argument_end,
    ),
    PatternRule(
        "private-jwk",
        r'\\?"d\\?"[ \t]*:[ \t]*\\?"([A-Za-z0-9_-]{40,})\\?"',
        clue=r'"kty\\?"[ \t]*:',
        accept=checks.is_varied,
    ),
    PatternRule(
        "wireguard-key",
        r"(?i)(?:PrivateKey|PresharedKey)[ \t]*=[ \t]*([A-Za-z0-9+/]{43}=)",
        clue=r"(?i)(?:private|preshared)key[ \t]*=",
        accept=checks.is_varied,
    ),
    PatternRule("otp-secret", r"otpauth://[^\s\"'<>\[\]]*?[?&]secret=([A-Za-z2-7]{16,})", clue="otpauth://"),
    PatternRule(
        "hex-private-key",
        r"(?i)(?:private|wallet|signer|deployer)[_-]?key[\"']?[ \t]*[:=][ \t]*[\"']?((?:0x)?[0-9a-f]{64})\b",
        clue=r"(?i)(?:private|wallet|signer|deployer)[_-]?key",
        accept=checks.is_varied,
    ),
    PatternRule(
        "url-password",
        r"""://[^\s/:@"'<>\[\]()|]*:((?:[^\s/@"'<>\[\]()|]|'[A-Za-z0-9])+)@[A-Za-z0-9]""",
        clue=r"""://[^\s/@"<>]*@""",
        accept=checks.is_url_password,
    ),
    PatternRule(
        # In the place of the user, with a password that only says so or none.
        "url-token",
        r"""://([A-Za-z0-9_-]{20,})(?::(?:x-oauth-basic)?)?@[A-Za-z0-9]""",
        clue=r"""://[^\s/@"<>]*@""",
        accept=checks.is_mixed,
    ),
    PatternRule(
        "argument",
        rf"""(?i)(?:{_SENSITIVE}){_NEXT}([A-Za-z0-9_.~+/=-]{{16,}})\\?["']""",
        clue=_GIVEN,
        accept=checks.is_random,
    ),
    PatternRule(
        "password",
        # What is harmless takes part with an empty group. So does the code of a meeting room in a link.
        rf"(?im)(?:{_HARMLESS}{_ASSIGNED}|{_ROOM})()[^\s&\"'<>]*|(?:{_SENSITIVE}){_ASSIGNED}"
        r"""(?:(?:\\?["'`]|[bruf@]{1,2}["']|&(?:quot|apos|#3[49]|#x2[27]);)([^\s"'`])|([^\s"'`<>(){}\[\]\\=:]))"""
        rf"|<[a-z0-9_.-]*(?:{_SENSITIVE})>\s*([^<>\s])",
        clue=_GIVEN,
        accept=checks.is_password,
        ends=value_end,
    ),
    PatternRule("column", HEADER, clue=CLUE, values=values_below),
)  # fmt: skip


def is_sensitive(name: str) -> bool:
    """Whether something of this name is a secret, whatever it looks like: `db_password`, `apiKey`."""
    return _SENSITIVE_NAME.search(name) is not None
