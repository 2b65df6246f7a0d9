"""A corpus for redaction: for every rule how to make what it is for, and what only looks like it.

Made anew each time from fixed seeds. Everything is put together at run time from parts, so that nothing in this
file looks like a live credential to a scanner. Forms are those that the services describe in public.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

LETTERS, DIGITS, HEX = string.ascii_letters, string.digits, "0123456789abcdef"
UPPER, LOWER = string.ascii_uppercase, string.ascii_lowercase
WORD = LETTERS + DIGITS
BASE64 = WORD + "+/"
URL_SAFE = WORD + "-_"


class Maker:
    """Random text with a fixed seed. The characters differ, so that no value is too plain to be real."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, length: int, alphabet: str = WORD) -> str:
        while True:
            text = "".join(self.random.choice(alphabet) for _ in range(length))
            if (
                len(set(text)) > min(6, len(alphabet) - 2, length - 1)
                and text[-1:] not in "-_"
                and text[:1] not in "-_"
            ):
                return text

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def uuid(self) -> str:
        return "-".join(self(n, HEX) for n in (8, 4, 4, 4, 12))


Made = tuple[str, str]  # the text around, with {} for the secret; the secret


def rrn(birth: str, century: str, serial: str) -> str:
    digits = [int(c) for c in birth + century + serial]
    base = 13 if century in "5678" else 11
    total = sum(d * w for d, w in zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=True))
    return f"{birth}-{century}{serial}{(base - total % 11) % 10}"


def business(m: Maker) -> str:
    digits = [int(c) for c in m.one("1", "2", "3", "5", "6") + m(8, DIGITS)]
    total = sum(d * w for d, w in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=True)) + digits[8] * 5 // 10
    text = "".join(map(str, [*digits, (10 - total % 10) % 10]))
    return f"{text[:3]}-{text[3:5]}-{text[5:]}"


def card(m: Maker) -> str:
    body = m.one("4", "51", "55", "2221", "6011", "65", "3530", "9")
    return luhn(body + m(15 - len(body), DIGITS))


def luhn(body: str) -> str:
    """With its check digit."""
    doubled = (int(c) * (1 if i % 2 else 2) for i, c in enumerate(reversed(body)))
    return body + str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def iban(m: Maker, country: str, body: str) -> str:
    number = int("".join(str(int(c, 36)) for c in f"{body}{country}00"))
    return f"{country}{98 - number % 97:02d}{body}"


def pem(m: Maker, kind: str = "RSA ") -> str:
    body = "\n".join(m(64, BASE64) for _ in range(6))
    return "\n".join(["-----BEGIN " + kind + "PRIVATE KEY-----", body, "-----END " + kind + "PRIVATE KEY-----"])


def age_key(m: Maker) -> str:
    """With the checksum of BIP 173 behind 52 letters for 32 bytes."""
    letters, name = "qpzry9x8gf2tvdw0s3jn54khce6mua7l", "age-secret-key-"
    data = [letters.index(c) for c in m(52, letters)]
    check = 1
    for value in [ord(c) >> 5 for c in name] + [0] + [ord(c) & 31 for c in name] + data + [0] * 6:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> bit & 1 else 0
    data += [(check ^ 1) >> 5 * (5 - place) & 31 for place in range(6)]
    return f"{name}1{''.join(letters[one] for one in data)}".upper()


def birthday(m: Maker) -> str:
    return f"{m.number(60, 99):02d}{m.number(1, 12):02d}{m.number(1, 28):02d}"


def word(m: Maker) -> str:
    """A password as people choose them: letters, a digit, a sign."""
    return m(m.number(8, 14), LETTERS) + m(1, DIGITS) + m.one("!", "#", "9", "@x", "")


def salad(m: Maker, length: int, alphabet: str = WORD) -> str:
    """With digits among the letters for certain, as a long random word has them."""
    return m(length - 6, alphabet) + ("A1b2C3" if "A" in alphabet else "a1b2c3")


def jwt_header(m: Maker) -> str:
    told = '{"alg":"' + m.one("HS256", "RS256", "ES512") + '","typ":"JWT","kid":"' + m(8) + '"}'
    return base64.urlsafe_b64encode(told.encode()).decode().rstrip("=")


def _bare(make: Callable[[Maker], str]) -> Callable[[Maker], Made]:
    return lambda m: ("{}", make(m))


BY_LOOK: dict[str, Callable[[Maker], Made]] = {
    "private-key": lambda m: ("before\n{}\nafter", pem(m, m.one("RSA ", "EC ", "OPENSSH ", ""))),
    "private-key-base64": lambda m: ("tls: {}", base64.b64encode(pem(m).encode()).decode()),
    "putty-key": lambda m: (
        "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{}\nPrivate-MAC: 0",
        m(47, BASE64) + "=",
    ),
    "age-key": _bare(age_key),
    "jwt": _bare(lambda m: ".".join([jwt_header(m), "ey" + "J" + m(60, URL_SAFE), m(43, URL_SAFE)])),
    "jwt-encrypted": _bare(lambda m: "ey" + "J" + ".".join(m(n, URL_SAFE) for n in (30, 42, 16, 60, 22))),
    "password-hash": _bare(
        lambda m: m.one("$2" + "b$12$" + m(53), "$ar" + "gon2id$v=19$m=65536,t=3,p=4$" + m(22) + "$" + m(43))
    ),
    "aws-access-key": _bare(lambda m: m.one("AK" + "IA", "AS" + "IA") + m(16, UPPER + "234567")),
    "aws-bedrock-key": _bare(lambda m: "AB" + "SK" + m(108, BASE64) + "="),
    "aws-marketplace-token": _bare(lambda m: "amzn" + ".mws." + m.uuid()),
    "google-api-key": lambda m: ("?k={}&x=1", "AI" + "za" + m(35, URL_SAFE)),
    "google-oauth-secret": _bare(lambda m: "GOC" + "SPX-" + m(28, URL_SAFE)),
    "google-oauth-token": _bare(lambda m: "ya" + "29." + m(60, URL_SAFE)),
    "google-refresh-token": _bare(lambda m: "1/" + "/0" + m.one("e", "g", "h") + m(60, URL_SAFE)),
    "azure-client-secret": _bare(lambda m: m(3) + m(1, DIGITS) + "Q" + "~" + m(34, WORD + "._")),
    "azure-storage-key": lambda m: ("AccountName=x;AccountKey={};EndpointSuffix=y", m(86, BASE64) + "=="),
    "azure-shared-access-key": lambda m: ("Endpoint=sb://x/;SharedAccessKey={}", m(43, BASE64) + "="),
    "azure-sas-signature": lambda m: ("https://x.blob.core.windows.net/a?sv=2024&sig={}", m(43) + "%3D"),
    "azure-devops-token": _bare(lambda m: m(76) + "AZ" + "DO" + m(4)),
    "azure-openai-key": _bare(lambda m: m(52) + "JQ" + "QJ99" + m(26)),
    "azure-function-key": _bare(lambda m: m(44) + "Az" + "Fu" + m(6) + "=="),
    "alibaba-access-key": _bare(lambda m: "LT" + "AI" + m(20)),
    "tencent-secret-id": _bare(lambda m: "AK" + "ID" + m(32)),
    "digitalocean-token": _bare(lambda m: "do" + m.one("p", "o", "r") + "_v1_" + m(64, HEX)),
    "cloudflare-origin-key": _bare(lambda m: "v1" + ".0-" + m(24, HEX) + "-" + m(146, HEX)),
    "heroku-key": _bare(lambda m: "HR" + "KU-AA" + m(58, URL_SAFE)),
    "fly-token": _bare(lambda m: m.one("fo" + "1_" + m(43, URL_SAFE), "fm" + "2_" + m(120, BASE64))),
    "vercel-token": _bare(lambda m: "vercel" + "_blob_rw_" + m(16) + "_" + m(30)),
    "netlify-token": _bare(lambda m: "nf" + "p_" + m(36)),
    "supabase-key": _bare(lambda m: m.one("sb" + "p_" + m(40, HEX), "sb" + "_secret_" + m(31, URL_SAFE))),
    "planetscale-token": _bare(lambda m: "pscale" + "_" + m.one("tkn", "pw") + "_" + m(43, URL_SAFE)),
    "databricks-token": _bare(lambda m: "da" + "pi" + m(32, HEX)),
    "mongodb-atlas-secret": _bare(lambda m: "mdb" + "_sa_sk_" + m(40, URL_SAFE)),
    "neon-key": _bare(lambda m: "na" + "pi_" + m(64, LOWER + DIGITS)),
    "scaleway-key": _bare(lambda m: "SC" + "W" + m(17, UPPER + DIGITS)),
    "tailscale-key": _bare(lambda m: "tskey" + "-auth-" + m(12) + "-" + m(32)),
    "openshift-token": _bare(lambda m: "sha" + "256~" + m(43, URL_SAFE)),
    "doppler-token": _bare(lambda m: "dp" + "." + m.one("pt", "ct", "sa") + "." + m(43)),
    "vault-token": _bare(lambda m: "hv" + "s." + m(90, URL_SAFE)),
    "onepassword-token": _bare(lambda m: "ops" + "_eyJ" + m(260, BASE64)),
    "terraform-cloud-token": _bare(lambda m: m(14) + ".atlas" + "v1." + m(67, URL_SAFE)),
    "pulumi-token": _bare(lambda m: "pu" + "l-" + m(40, HEX)),
    "dynatrace-token": _bare(lambda m: "dt0" + "c01." + m(24, UPPER + DIGITS) + "." + m(64, UPPER + DIGITS)),
    "grafana-token": _bare(lambda m: "gl" + "sa_" + m(32) + "_" + m(8, HEX)),
    "new-relic-key": _bare(lambda m: "NR" + "AK-" + m(27, UPPER + DIGITS)),
    "sentry-token": _bare(lambda m: "sn" + "trys_ey" + "J" + m(90)),
    "sentry-user-token": _bare(lambda m: "sn" + "tryu_" + m(64, HEX)),
    "sentry-dsn": lambda m: ("https://{}@o1.ingest.sentry.io/42", m(32, HEX)),
    "github-token": _bare(lambda m: "gh" + m.one("p", "o", "u", "s", "r") + "_" + m(36)),
    "github-fine-grained-token": _bare(lambda m: "github" + "_pat_" + m(22) + "_" + m(59)),
    "gitlab-token": _bare(lambda m: "gl" + m.one("pat", "dt", "rt") + "-" + m(20, URL_SAFE)),
    "bitbucket-token": _bare(lambda m: "AT" + "BB" + m(32)),
    "atlassian-token": _bare(lambda m: "ATA" + "TT3" + m(180, URL_SAFE)),
    "npm-token": lambda m: ("//registry.npmjs.org/ {}", "np" + "m_" + m(36)),
    "pypi-token": _bare(lambda m: "py" + "pi-AgEIcHlwaS5vcmc" + m(80, URL_SAFE)),
    "rubygems-key": _bare(lambda m: "ruby" + "gems_" + m(48, HEX)),
    "crates-token": _bare(lambda m: "ci" + "o" + m(32)),
    "nuget-key": _bare(lambda m: "oy" + "2" + m(43, LOWER + DIGITS)),
    "packagist-token": _bare(lambda m: "packagist" + "_out_" + m(68, HEX)),
    "clojars-token": _bare(lambda m: "CLO" + "JARS_" + m(60, LOWER + DIGITS)),
    "artifactory-key": _bare(lambda m: "AK" + "Cp" + m(69)),
    "docker-token": _bare(lambda m: "dck" + "r_pat_" + m(27, URL_SAFE)),
    "sonar-token": _bare(lambda m: "sq" + m.one("p", "u", "a") + "_" + m(40, HEX)),
    "circleci-token": _bare(lambda m: "CCI" + "PAT_" + m(22) + "_" + m(40, HEX)),
    "buildkite-token": _bare(lambda m: "bk" + "ua_" + m(40, HEX)),
    "sourcegraph-token": _bare(lambda m: "sg" + "p_" + m(16, HEX) + "_" + m(40, HEX)),
    "postman-key": _bare(lambda m: "PM" + "AK-" + m(24, HEX) + "-" + m(34, HEX)),
    "launchdarkly-key": _bare(lambda m: m.one("sd" + "k-", "ap" + "i-") + m.uuid()),
    "prefect-key": _bare(lambda m: "pn" + "u_" + m(36, LOWER + DIGITS)),
    "readme-key": _bare(lambda m: "rd" + "me_" + m(70, LOWER + DIGITS)),
    "slack-token": _bare(lambda m: "xo" + "x" + m.one("b", "p", "a") + "-" + m(12, DIGITS) + "-" + m(24)),
    "slack-webhook": lambda m: (
        "https://hooks.slack.com/services/{} is the hook",
        "T" + m(9) + "/B" + m(9) + "/" + m(24),
    ),
    "discord-token": _bare(lambda m: "M" + m(23, URL_SAFE) + "." + m(6, URL_SAFE) + "." + m(27, URL_SAFE)),
    "discord-webhook": lambda m: ("https://discord.com/api/webhooks/" + m(18, DIGITS) + "/{}", m(68, URL_SAFE)),
    "telegram-token": _bare(lambda m: m(1, "123456789") + m(9, DIGITS) + ":A" + "A" + m(33, URL_SAFE)),
    "teams-webhook": lambda m: (
        "https://x.webhook.office.com/webhookb2/{}",
        m.uuid() + "@" + m.uuid() + "/IncomingWebhook/" + m(32, HEX) + "/" + m.uuid(),
    ),
    "zapier-webhook": lambda m: ("https://hooks.zapier.com/hooks/catch/{} ", m(7, DIGITS) + "/" + m(7)),
    "twilio-key": _bare(lambda m: "S" + "K" + m(32, HEX)),
    "sendgrid-key": _bare(lambda m: "S" + "G." + m(22, URL_SAFE) + "." + m(43, URL_SAFE)),
    "mailgun-key": _bare(lambda m: "ke" + "y-" + m(32, HEX)),
    "mailchimp-key": _bare(lambda m: m(32, HEX) + "-us" + m(2, "123456789")),
    "brevo-key": _bare(lambda m: "xkey" + "sib-" + m(64, HEX) + "-" + m(16)),
    "resend-key": _bare(lambda m: "r" + "e_" + m(8) + "_" + m(24)),
    "facebook-token": _bare(lambda m: "EA" + "AB" + m(150)),
    "twitter-bearer": _bare(lambda m: "A" * 21 + m(90)),
    "stripe-key": _bare(lambda m: m.one("sk", "rk") + m.one("_live_", "_test_") + m(24)),
    "stripe-webhook-secret": _bare(lambda m: "wh" + "sec_" + m(32)),
    "toss-payments-key": _bare(lambda m: m.one("live", "test") + m.one("_sk_", "_gsk_") + m(32)),
    "square-token": _bare(lambda m: "sq" + "0atp-" + m(22, URL_SAFE)),
    "braintree-token": lambda m: ("access_token$production$" + m(16, LOWER + DIGITS) + "${}", m(32, HEX)),
    "plaid-token": _bare(lambda m: "access-" + "production-" + m.uuid()),
    "razorpay-key": _bare(lambda m: "rz" + "p_live_" + m(14)),
    "flutterwave-key": _bare(lambda m: "FLW" + "SECK-" + m(32, HEX) + "-X"),
    "shopify-token": _bare(lambda m: "shp" + m.one("at", "ca", "pa", "ss") + "_" + m(32, HEX)),
    "easypost-key": _bare(lambda m: "EZ" + "AK" + m(54)),
    "shippo-token": _bare(lambda m: "ship" + "po_live_" + m(40, HEX)),
    "duffel-token": _bare(lambda m: "duf" + "fel_live_" + m(43, URL_SAFE)),
    "notion-token": _bare(lambda m: m.one("nt" + "n_" + m(46), "sec" + "ret_" + m(43))),
    "figma-token": _bare(lambda m: "fi" + "gd_" + m(40, URL_SAFE)),
    "linear-key": _bare(lambda m: "lin" + "_api_" + m(40)),
    "airtable-token": _bare(lambda m: "pa" + "t" + m(14) + "." + m(64, HEX)),
    "asana-token": lambda m: ("1/" + m(16, DIGITS) + ":{}", m(32, HEX)),
    "clickup-token": _bare(lambda m: "pk" + "_" + m(7, DIGITS) + "_" + m(32, UPPER + DIGITS)),
    "typeform-token": _bare(lambda m: "tf" + "p_" + m(59, URL_SAFE)),
    "contentful-token": _bare(lambda m: "CF" + "PAT-" + m(43, URL_SAFE)),
    "hubspot-token": _bare(lambda m: "pat" + "-na1-" + m.uuid()),
    "dropbox-token": _bare(lambda m: "sl" + "." + m(135, URL_SAFE)),
    "posthog-key": _bare(lambda m: "ph" + "x_" + m(43)),
    "apify-token": _bare(lambda m: "apify" + "_api_" + m(36)),
    "frameio-token": _bare(lambda m: "fio" + "-u-" + m(64, URL_SAFE)),
    "mapbox-secret-token": _bare(lambda m: "sk" + ".eyJ" + m(60) + "." + m(22, URL_SAFE)),
    "adafruit-key": _bare(lambda m: "ai" + "o_" + m(28)),
    "anthropic-key": _bare(lambda m: "sk" + "-ant-api03-" + m(93, URL_SAFE) + "AA"),
    "openai-key": _bare(
        lambda m: m.one("sk" + "-proj-" + m(60, URL_SAFE), "sk" + "-" + m(20) + "T3Blbk" + "FJ" + m(20))
    ),
    "octavo-key": _bare(lambda m: "octavo" + "_" + m(8, HEX) + "_" + m(43)),
    "openrouter-key": _bare(lambda m: "sk" + "-or-v1-" + m(64, HEX)),
    "langfuse-key": _bare(lambda m: "sk" + "-lf-" + m.uuid()),
    "deepseek-key": _bare(lambda m: "sk" + "-" + m(32, HEX)),
    "elevenlabs-key": _bare(lambda m: "sk" + "_" + m(48, HEX)),
    "hugging-face-token": _bare(lambda m: "h" + "f_" + m(34, LETTERS)),
    "replicate-token": _bare(lambda m: "r" + "8_" + m(37)),
    "groq-key": _bare(lambda m: "gs" + "k_" + m(52)),
    "xai-key": _bare(lambda m: "xa" + "i-" + m(80)),
    "perplexity-key": _bare(lambda m: "pp" + "lx-" + m(48)),
    "together-key": _bare(lambda m: "tg" + "p_v1_" + m(43, URL_SAFE)),
    "fireworks-key": _bare(lambda m: "f" + "w_" + m(24)),
    "langsmith-key": _bare(lambda m: "ls" + "v2_pt_" + m(32, HEX) + "_" + m(10, HEX)),
    "pinecone-key": _bare(lambda m: "pc" + "sk_" + m(6) + "_" + m(63)),
    "nvidia-key": _bare(lambda m: "nv" + "api-" + m(64, URL_SAFE)),
    "tavily-key": _bare(lambda m: "tv" + "ly-dev-" + m(32)),
    "firecrawl-key": _bare(lambda m: "f" + "c-" + m(32, HEX)),
    "azure-identifiable-key": _bare(
        lambda m: m.one(m(76) + "AC" + "Db" + m(6) + "==", m(42) + "+AC" + "R" + m(6), m(33) + "AI" + "oT" + m(6) + "=")
    ),
    "azure-repository-key": lambda m: ("git&" + m(12, DIGITS) + "&{}", m(86, BASE64) + "=="),
    "entra-refresh-token": _bare(lambda m: "0." + "A" + m(44, URL_SAFE) + ".Ag" + "AB" + m(300, URL_SAFE)),
    "cloudflare-token": _bare(lambda m: "cf" + m.one("ut", "at", "k") + "_" + m(40) + m(8, HEX)),
    "clickhouse-key": _bare(lambda m: "4b" + "1d" + salad(m, 38)),
    "yandex-key": _bare(lambda m: "AQ" + "VN" + salad(m, 36, URL_SAFE)),
    "yandex-token": _bare(lambda m: "t" + "1." + m(60, URL_SAFE) + "." + m(86, URL_SAFE)),
    "scalingo-token": _bare(lambda m: "tk" + "-us-" + m(48, URL_SAFE)),
    "aiven-password": _bare(lambda m: "AV" + "NS_" + m(19, URL_SAFE)),
    "cockroachdb-key": _bare(lambda m: "CC" + "DB1_" + m(22) + "_" + m(40)),
    "confluent-key": _bare(lambda m: "cf" + "lt" + salad(m, 60)),
    "xata-key": _bare(lambda m: "xa" + "u_" + m(42)),
    "render-key": _bare(lambda m: "rn" + "d_" + m(32)),
    "akamai-token": _bare(lambda m: "ak" + "ab-" + m(16, LOWER + DIGITS) + "-" + m(16, LOWER + DIGITS)),
    "defined-networking-key": _bare(lambda m: "dn" + "key-" + m(26, UPPER + DIGITS) + "-" + m(52, UPPER + DIGITS)),
    "docker-swarm-token": _bare(lambda m: "SWM" + "TKN-1-" + m(50, LOWER + DIGITS) + "-" + m(25, LOWER + DIGITS)),
    "portainer-token": _bare(lambda m: "pt" + "r_" + m(43)),
    "maxmind-key": _bare(lambda m: m(6) + "_" + m(29) + "_m" + "mk"),
    "onepassword-secret-key": _bare(lambda m: "A" + "3-" + "-".join(m(n, UPPER + DIGITS) for n in (6, 11, 5, 5, 5))),
    "grafana-key": _bare(lambda m: "ey" + "JrIjoi" + m(80)),
    "new-relic-insights-key": _bare(lambda m: "NR" + "II-" + m(32, URL_SAFE)),
    "new-relic-licence": _bare(lambda m: m(36, HEX) + "NR" + "AL"),
    "gitlab-session": lambda m: ("_gitlab_" + "session={}", m(32, LOWER + DIGITS)),
    "gitlab-trigger-token": _bare(lambda m: "gl" + "ptt-" + m(40, HEX)),
    "gitlab-oauth-secret": _bare(lambda m: "gl" + "oas-" + m(64, HEX)),
    "sonarcloud-token": _bare(lambda m: "sq" + "co_" + m(59)),
    "segment-token": _bare(lambda m: "sg" + "p_" + salad(m, 64)),
    "postman-collection-key": _bare(lambda m: "PM" + "AT-" + m(26, UPPER + DIGITS)),
    "harness-key": _bare(lambda m: m.one("pa", "sa") + "t." + m(22) + "." + m(24) + "." + m(20)),
    "infracost-key": _bare(lambda m: "ic" + "o-" + salad(m, 32)),
    "octopus-key": _bare(lambda m: "AP" + "I-" + m(22, UPPER) + "1A2B3C4"),
    "spectral-key": _bare(lambda m: "sp" + "u-" + m(32, HEX)),
    "endor-key": _bare(lambda m: "en" + "dr+" + m(18)),
    "cosmo-key": _bare(lambda m: "cos" + "mo_" + m(32, HEX)),
    "settlemint-token": _bare(lambda m: "sm" + "_pat_" + m(16)),
    "rootly-key": _bare(lambda m: "root" + "ly_" + m(64, HEX)),
    "salesblink-key": _bare(lambda m: "ke" + "y-" + salad(m, 64)),
    "tines-webhook": lambda m: ("https://acme.tines.com/webhook/{} x", m(32) + "/" + m(32)),
    "mailgun-signing-key": _bare(lambda m: m(32, HEX) + "-" + m(8, HEX) + "-" + m(8, HEX)),
    "intercom-token": _bare(lambda m: "dG" + "9rOj" + m(56)),
    "klaviyo-key": _bare(lambda m: "pk" + "_" + m(34, HEX)),
    "onesignal-key": _bare(lambda m: "os" + "_v2_app_" + m(60, LOWER + "234567")),
    "courier-key": _bare(lambda m: "pk" + "_prod_" + m(28, UPPER + DIGITS)),
    "pubnub-secret": _bare(lambda m: "se" + "c-c-" + m(48)),
    "smooch-key": _bare(lambda m: "ac" + "t_" + salad(m, 24, LOWER + DIGITS)),
    "instagram-token": _bare(lambda m: "IG" + "QVJ" + m(120, URL_SAFE)),
    "ably-key": _bare(lambda m: m(6) + "." + m(6) + ":" + salad(m, 43)),
    "mode-key": _bare(lambda m: m.one("live", "test") + "_" + salad(m, m.random.choice((27, 30, 35)))),
    "gocardless-token": _bare(lambda m: "li" + "ve_" + salad(m, 40)),
    "recharge-token": _bare(lambda m: "sk" + "_2x2_" + m(64, HEX)),
    "checkout-key": _bare(lambda m: "sk" + "_test_" + m.uuid()),
    "square-access-token": _bare(lambda m: "EA" + "AA" + salad(m, 60)),
    "gemini-key": _bare(lambda m: "master" + "-K" + salad(m, 19)),
    "ramp-secret": _bare(lambda m: "ramp" + "_sec_" + m(48)),
    "airtable-oauth-token": _bare(lambda m: "oa" + "a" + m(14) + ".v1." + m(120) + "." + m(64, HEX)),
    "airtable-refresh-token": _bare(lambda m: m(34) + ".v" + "1." + m(90, URL_SAFE) + "." + m(64, HEX)),
    "salesforce-token": _bare(lambda m: "00" + "D" + m(12) + "!" + m(96)),
    "salesforce-consumer-key": _bare(lambda m: "3M" + "VG9" + m(80)),
    "zoho-token": _bare(lambda m: "10" + "00." + m(32, HEX) + "." + m(32, HEX)),
    "close-key": _bare(lambda m: "ap" + "i_" + m(22) + "." + salad(m, 22)),
    "baremetrics-key": _bare(lambda m: "lk" + "_" + salad(m, 20)),
    "telnyx-key": _bare(lambda m: "KE" + "Y" + salad(m, 55)),
    "tableau-token": _bare(lambda m: m(22) + "==" + ":" + salad(m, 32)),
    "photoroom-key": lambda m: ("sk_" + "pr_acme_{}", m(40, HEX)),
    "intra-secret": _bare(lambda m: "s-s4" + "t2ud-" + m(64, HEX)),
    "bannerbear-key": _bare(lambda m: "bb" + "_pr_" + m(30, HEX)),
    "besttime-key": _bare(lambda m: "pr" + "i_" + m(32, HEX)),
    "tickettailor-key": _bare(lambda m: "sk" + "_6551_225099_" + m(32, HEX)),
    "trufflehog-key": _bare(lambda m: "th" + "og-key-" + m(16, HEX)),
    "shutterstock-token": _bare(lambda m: "v2" + "/" + m(388)),
    "iex-key": _bare(lambda m: "sk" + "_" + m(32, HEX)),
    "authress-key": _bare(lambda m: "sc" + "_" + m(8, LOWER) + "." + m(4, LOWER) + ".acc_" + m(12) + "." + m(60)),
    "nylas-key": _bare(lambda m: "ny" + "k_v0_" + m(64)),
    "stytch-secret": _bare(lambda m: "secret" + "-live-" + m(36)),
    "statsig-secret": _bare(lambda m: "secret" + "-" + salad(m, 43)),
    "calcom-key": _bare(lambda m: "cal" + "_live_" + m(32, HEX)),
    "ory-token": _bare(lambda m: "ory" + "_pat_" + m(32)),
    "llamaindex-key": _bare(lambda m: "ll" + "x-" + salad(m, 48)),
    "jina-key": _bare(lambda m: "ji" + "na_" + m(32, HEX) + m(28)),
    "cerebras-key": _bare(lambda m: "cs" + "k-" + m(48, LOWER + DIGITS)),
    "voyage-key": _bare(lambda m: "p" + "a-" + salad(m, 44)),
    "sandbox-key": _bare(lambda m: "e2" + "b_" + m(40, HEX)),
    "model-key": _bare(lambda m: "s" + "k-" + salad(m, 48)),
}  # fmt: skip

BY_SURROUNDINGS: dict[str, Callable[[Maker], Made]] = {
    "aws-secret-key": lambda m: (m.one("AWS_SECRET_ACCESS_KEY={}\n", "aws_secret_access_key = {}\n"), m(40, BASE64)),
    "aws-session-token": lambda m: ("aws_session_token = {}\n", m(220, BASE64)),
    "twilio-token": lambda m: ("twilio_sid = '{}'", m(32, HEX)),
    "service-key": lambda m: (
        m.one("DD_API_KEY={}\n", "KAKAO_REST_KEY={}\n", "cloudflare_pat: {}\n", "naver_client_secret_key: {}\n"),
        m(18) + "a1" + m(12),
    ),
    "authorization": lambda m: (m.one("Authorization: Bearer {}\r\n", "Authorization: KakaoAK {}\r\n"), m(40)),
    "api-key-header": lambda m: (m.one("-H 'X-Api-Key: {}' ", "x-goog-api-key: {}\n", "X-Auth-Token: {}\n"), m(32)),
    "session-cookie": lambda m: ("Cookie: lang=ko; session_id={}; theme=dark", m(40)),
    "registry-auth": lambda m: (
        m.one('{{"auths": {{"r.io": {{"auth": "{}"}}}}}}', "//r.io/:_authToken={}\n"),
        m(40, WORD),
    ),
    "netrc-password": lambda m: ("machine api.acme.io login bot password {}\n", word(m)),
    "command-password": lambda m: (
        m.one("curl -u admin:{} https://x", "mysql -u root -p{} db", "sshpass -p {} ssh x"),
        "q" + m(10) + "7",
    ),
    "private-jwk": lambda m: ('{{"kty": "EC", "crv": "P-256", "d": "{}"}}', m(43, URL_SAFE)),
    "wireguard-key": lambda m: ("[Interface]\nPrivateKey = {}\n", m(43, BASE64) + "="),
    "otp-secret": lambda m: ("otpauth://totp/Acme:kim?secret={}&issuer=Acme", m(32, UPPER + "234567")),
    "hex-private-key": lambda m: (m.one("wallet_key: {}\n", "DEPLOYER_KEY={}\n"), "0x" + m(64, HEX)),
    "url-token": lambda m: ("git+https://{}@github.com/acme/shop.git", salad(m, 40)),
    "url-password": lambda m: (
        m.one(
            "postgres://app:{}@db.internal:5432/app",
            "mongodb+srv://app:{}@cluster0.acme.net/x",
            "redis://:{}@cache:6379/0",
            "https://bot:{}@git.acme.io/x.git",
            "amqp://u:{}@mq/v",
        ),
        m(14) + "!9",
    ),
    "argument": lambda m: (
        m.one('System.setProperty("ACME_TOKEN", "{}")', "client.set('api_key', '{}')", '("password", "{}")'),
        salad(m, 24),
    ),
    "password": lambda m: (
        m.one(
            "password: {}\n",
            "DB_PASSWORD={}\n",
            '{{"password": "{}"}}',
            "client_secret = '{}'",
            "비밀번호: {}\n",
            "Server=db;User Id=sa;Password={};",
            "<password>{}</password>",
            'api_key: "{}"',
            "?api_key={}&page=2",
            "관리자 암호 = {}\n",
        ),
        m(12) + "a9!",
    ),
}  # fmt: skip

PERSONAL: dict[str, dict[str, Callable[[Maker], Made]]] = {
    "identity": {
        "kr-registration-number": lambda m: (
            m.one("주민등록번호는 {}입니다", "{} (본인)", "외국인등록번호 {}"),
            rrn(birthday(m), m.one("1", "2", "5", "6"), m(5, DIGITS)),
        ),
        "kr-registration-number-bare": lambda m: (
            m.one("주민번호: {}", '"주민등록번호": "{}"', "RRN {}"),
            rrn(birthday(m), m.one("1", "2"), m(5, DIGITS)).replace("-", ""),
        ),
    },
    "business": {
        "kr-business-number": lambda m: (m.one("사업자등록번호 {}", "({})", "{} 주식회사"), business(m)),
        "kr-business-number-bare": lambda m: ("사업자번호: {}", business(m).replace("-", "")),
    },
    "payment": {
        "card-number": lambda m: (
            m.one("카드 {}로 결제", "card {}", "{}"),
            m.one("{0}{1}{2}{3}", "{0} {1} {2} {3}", "{0}-{1}-{2}-{3}").format(
                *(lambda c: (c[:4], c[4:8], c[8:12], c[12:]))(card(m))
            ),
        ),
        "card-number-labelled": lambda m: (
            m.one("my card number is {}", "카드번호: {}", "Visa {}"),
            luhn(m.one("30" + m(11, DIGITS), "5038" + m(7, DIGITS), "4" + m(17, DIGITS), "213" + m(11, DIGITS))),
        ),
        "iban": lambda m: (
            m.one("IBAN {}", "계좌 {}", "to {}."),
            m.one(
                iban(m, "DE", m(18, DIGITS)),
                iban(m, "GB", "NWBK" + m(14, DIGITS)),
                iban(m, "NL", "ABNA" + m(10, DIGITS)),
                iban(m, "FR", m(23, DIGITS)),
            ),
        ),
    },
    "email": {
        "email": lambda m: (
            m.one("메일 {}로 보내세요", "<{}>", "mailto:{}", "contact: {}\n", "{}"),
            m(6, LOWER) + m.one(".", "_", "+", "") + m(4, LOWER) + "@" + m(7, LOWER) + m.one(".com", ".co.kr", ".io"),
        ),
    },
    "phone": {
        "kr-phone": lambda m: (
            m.one("연락처 {}", "☎ {}", "{} (김대리)", "tel: {}\n"),
            m.one("010-{}-{}", "010 {} {}", "02-{}-{}", "031-{}-{}", "+82-10-{}-{}", "010{}{}", "02) {}-{}").format(
                m(1, "2345679") + m(3, DIGITS), m(4, DIGITS)
            ),
        ),
        "phone-home": lambda m: (
            m.one("she answers at {}", "{} (office)", "- {}"),
            m.one("0688 {0}{1} {2} {3}", "01.{2}.{3}.{4}.{5}", "078 80{2} 1{0}{3}").format(
                m(1, "2346789"), m(2, DIGITS), m(2, DIGITS), m(2, DIGITS), m(2, DIGITS), m(2, DIGITS)
            ),
        ),
        "phone-labelled": lambda m: (
            m.one("Phone: {}", "mobile number is {}", "Tel. {}", "전화번호 {}"),
            m.one("9{} {}", "7{}{}").format(m(3, DIGITS), m(4, DIGITS)),
        ),
        "phone": lambda m: (
            m.one("call {}", "{}.", "fax {}"),
            m.one("+1 415 {} {}", "+44 20 {} {}", "(212) {}-{}", "+49 30 {}{}").format(
                m(1, "2346789") + m(2, DIGITS), m(4, DIGITS)
            ),
        ),
    },
    "network": {
        "ip-address": lambda m: (
            m.one("from {} at noon", "접속 IP {}", "client={}"),
            m.one(
                f"{m.number(60, 90)}.{m.number(1, 254)}.{m.number(0, 254)}.{m.number(1, 254)}",
                f"2001:4860:{m(4, HEX)}:{m(4, HEX)}:1:2:3:{m(4, HEX)}",
            ),
        ),
    },
    "address": {
        "kr-address": lambda m: (
            m.one("주소: {}", "{}로 배송", "본사는 {} 입니다"),
            m.one(
                f"서울특별시 강남구 테헤란로 {m.number(1, 500)}",
                f"서울 마포구 월드컵북로{m.number(1, 60)}길 {m.number(1, 90)}, {m.number(2, 20)}층",
                f"경기도 성남시 분당구 판교역로 {m.number(1, 300)}",
                f"부산광역시 해운대구 우동 {m.number(100, 1500)}-{m.number(1, 9)}",
                f"제주특별자치도 제주시 첨단로 {m.number(1, 300)}",
                f"전라남도 담양군 담양읍 중앙로 {m.number(1, 99)}",
            ),
        ),
    },
}  # fmt: skip

ALL: dict[str, Callable[[Maker], Made]] = {
    **BY_LOOK,
    **{rule: make for rules in PERSONAL.values() for rule, make in rules.items()},
    **BY_SURROUNDINGS,
}


class Positive(NamedTuple):
    group: str
    rule: str
    text: str
    secret: str


class Negative(NamedTuple):
    group: str
    text: str


_FRAMES = (
    "{}\n",
    "설정 파일에 {} 라고 적혀 있습니다.\n",
    "Use `{}` for now, and rotate it on Monday.\n",
    '{{"note": "{}"}}\n',
    "- item: {}\n  owner: kim\n",
    "# see also\nvalue = '{}'\n",
)


def positives(each: int = 5) -> Iterator[Positive]:
    """Of every rule some, in prose, code and data, English and Korean."""
    groups = {"secrets by look": BY_LOOK, "secrets by surroundings": BY_SURROUNDINGS, **PERSONAL}
    for group, rules in groups.items():
        for rule, make in rules.items():
            count = each if group.startswith("secrets by look") else each * 4
            for seed in range(count):
                m = Maker(seed * 7919 + len(rule))
                around, secret = make(m)
                text = around.format(secret)
                if around == "{}" and "\n" not in secret:
                    text = _FRAMES[seed % len(_FRAMES)].format(secret)
                yield Positive(group, rule, text, secret)


def negatives() -> Iterator[Negative]:
    """Near misses, and what stands in every repository and handbook."""
    for seed in range(12):
        m = Maker(1000 + seed)
        for text in _no_secret_by_look(m):
            yield Negative("secrets by look", text)
        for text in _no_secret_by_surroundings(m):
            yield Negative("secrets by surroundings", text)
        for group, text in _not_personal(m):
            yield Negative(group, text)


def _no_secret_by_look(m: Maker) -> Iterator[str]:
    yield "AK" + "IA" + "IOSFODNN7" + "EXAMPLE"
    yield "gh" + "p_" + "x" * 36
    yield "sk" + "-ant-api03-" + "your-key-here-" + "x" * 20
    yield "gh" + "p_" + m(12)
    yield "commit " + m(40, HEX)
    yield "sha256:" + m(64, HEX)
    yield '"integrity": "sha512-' + m(86, BASE64) + '=="'
    yield "id: " + m.uuid()
    yield "data:image/png;base64," + m(200, BASE64)
    yield "-----BEGIN " + "CERTIFICATE-----\n" + m(64, BASE64) + "\n-----END " + "CERTIFICATE-----"
    yield "-----BEGIN " + "PUBLIC KEY-----\n" + m(64, BASE64) + "\n-----END " + "PUBLIC KEY-----"
    yield "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA" + m(43, BASE64) + " kim@host"
    yield "https://www.youtube.com/watch?v=" + m(11, URL_SAFE)
    yield "pk_live_" + m(24)[:8]
    yield "risk-assessment-" + m(6, LOWER) + " and task-" + m(4, DIGITS)
    yield "def test_" + m(10, LOWER) + "_" + m(8, LOWER) + "_" + m(9, LOWER) + "(): ..."
    yield "등록된 문서 번호는 DOC-" + m(6, DIGITS) + "입니다."
    yield "eyJ" + "hbGciOi is how a JWT begins"
    yield "npm_config_registry and npm_package_" + m(8, LOWER)
    yield "from hf_hub import hf_" + m(6, LOWER) + "_download"
    yield "re_" + m(5, LOWER) + "_" + m(6, LOWER) + " = re.compile(r'x')"
    yield "xoxo-" + m(5, LOWER) + " love letters"
    yield "isbn 978-89-" + m(4, DIGITS) + "-" + m(3, DIGITS) + "-" + m(1, DIGITS)
    yield 'etag W/"' + m(16, HEX) + '"'


def _no_secret_by_surroundings(m: Maker) -> Iterator[str]:
    name = m(6, LOWER)
    yield "password: changeme"
    yield f"password: ${{{name.upper()}_PASSWORD}}"
    yield f'api_key = "<your {name} key>"'
    yield "api_key: " + "x" * 16
    yield f"token = os.environ['{name.upper()}_TOKEN']"
    yield f"token: process.env.{name.upper()}_TOKEN1"
    yield f'secret: "{{{{ vault.{name}1 }}}}"'
    yield f"password = get_{name}2(user)"
    yield f"password: self.{name}.password1"
    yield "password: str = field(default=None)"
    yield f"max_tokens: {m(4, DIGITS)}"
    yield f"secret: file:/run/secrets/{name}1"
    yield "비밀번호: 여덟자리이상으로"
    yield "비밀번호는 8자 이상, 숫자와 특수문자를 포함해야 합니다."
    yield f"postgres://{name}:password@localhost/db"
    yield f"https://{name}.org/a:b@c"
    yield f"Authorization: Bearer <{name}>"
    yield f"curl -u admin:$PASSWORD https://{name}.io"
    yield f"mysql -u root -p {name}"
    yield f"token_count = len({name}_tokens)"
    yield f"The token: a small piece of {name}"
    yield f"secretary: {name.title()} {m(5, LOWER).title()}"
    yield f"key: value_{name}"
    yield f"Cookie: theme={name}; lang=ko"


def _not_personal(m: Maker) -> Iterator[tuple[str, str]]:
    right = rrn(birthday(m), "1", m(5, DIGITS))
    yield "identity", f"주민번호 {right[:-1]}{(int(right[-1]) + 3) % 10}"
    yield "identity", f"991332-1{m(6, DIGITS)}"
    yield "identity", f"시각 17{m(11, DIGITS)}"
    yield "identity", f"문서 {m(6, DIGITS)}-99"
    number = business(m)
    yield "business", f"접수번호 {number[:-1]}{(int(number[-1]) + 1) % 10}"
    yield "business", f"{m(3, DIGITS)}-{m(3, DIGITS)}"
    paid = card(m)
    yield "payment", f"주문 {paid[:-1]}{(int(paid[-1]) + 1) % 10}"
    yield "payment", f"trace {'7' + m(15, DIGITS)}"
    yield "payment", "DE00" + m(18, DIGITS)
    yield "email", f"{m(5, LOWER)}@example.com"
    yield "email", f"@{m(6, LOWER)} 님, git@github.com:{m(5, LOWER)}/x.git"
    yield "email", f"{m(5, LOWER)}@2x.png and noreply@{m(5, LOWER)}.com"
    yield "phone", f"{m(4, '123456789')}-{m(2, DIGITS)}-{m(2, DIGITS)}"
    yield "phone", "010-1234-5678"
    yield "phone", f"버전 {m(1, DIGITS)}.{m(2, DIGITS)}.{m(3, DIGITS)}"
    yield "phone", f"금액 {m(1, '123456789')},{m(3, DIGITS)},{m(3, DIGITS)}원"
    yield "network", f"10.0.{m.number(0, 9)}.{m.number(1, 99)}"
    yield "network", f"192.168.0.{m.number(1, 99)} 또는 127.0.0.1"
    yield "network", f"version 2.{m.number(0, 9)}.1.{m.number(0, 9)}"
    yield "network", f"at 12:{m.number(10, 59)}:{m.number(10, 59)}"
    yield "address", f"서울 지역 매장은 {m.number(2, 40)}곳입니다."
    yield "address", "경기도 전체로 확대합니다."
    yield "address", f"부산 출장 {m.number(1, 9)}박"
    yield "address", f"제주 원두 {m.number(100, 900)}g"
