"""One line for each issuer whose credentials have a form: `{w20}` are twenty letters and digits, and so on.

`|` stands where a literal is cut, so that nothing here looks like a live credential to a scanner.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator

from tests.pipeline.secrets_corpus import BASE64, DIGITS, HEX, LOWER, UPPER, URL_SAFE, WORD, Maker, salad

_ALPHABETS = {
    "w": WORD, "h": HEX, "u": URL_SAFE, "b": BASE64, "d": DIGITS, "n": LOWER + DIGITS, "U": UPPER + DIGITS,
    "l": LOWER, "H": "0123456789ABCDEF", "t": LOWER + "234567",
}  # fmt: skip
_BLANK = re.compile(r"\{([a-zA-Z])(\d+)\}|\{uuid\}")

# `s` is a long word with digits, capitals and small letters for certain, as the second look at a short prefix wants it.
FORMS: dict[str, str] = {
    "secret-token": "secret|-token:{w30}",
    "paseto-token": "v4|.local.{u80}",
    "fly-macaroon": "Fly|V1 {b90}",
    "aws-appsync-key": "da|2-{n26}",
    "google-hmac-key": "GO|OG1E{U57}",
    "baidu-key": "bce|-v3/AL|TAK-{w21}/{h40}",
    "baidu-access-key": "AL|TAK{s21}",
    "volcengine-access-key": "AK|LT{s43}",
    "alibaba-sts-token": "ST|S.{s24}",
    "jdcloud-key": "JD|C_{U28}",
    "naver-cloud-key": "ncp|_iam_BPAMKR{w24}",
    "yandex-oauth-token": "y|0_{u58}",
    "yandex-static-key": "Y|CP{s37}",
    "digitalocean-spaces-key": "DO|00{U16}",
    "backblaze-key": "K0|05{s27}",
    "upcloud-token": "uc|at_{U26}",
    "deno-token": "dd|p_{w36}",
    "neon-password": "np|g_{s16}",
    "fauna-secret": "fn|A{s37}",
    "databricks-oauth-secret": "do|se{h32}",
    "dbt-token": "db|tc_{u44}",
    "convex-key": "prod:|happy-otter-123|{b60}",
    "tinybird-token": "p|.eyJ1{u60}.{u43}",
    "appwrite-key": "stand|ard_{h200}",
    "cloudflare-tunnel-token": "ey|JhIjoi{b160}",
    "netbird-token": "nb|p_{w36}",
    "rancher-token": "tok|en-x2k4p:{n54}",
    "vault-old-token": "s|.{s24}",
    "boundary-token": "at|_{w10}_{w110}",
    "infisical-token": "st|.{h24}.{h32}.{h32}",
    "bitwarden-token": "0|.{uuid}.{w30}:{b22}==",
    "okta-token": "SS|WS 00{u40}",
    "jumpcloud-key": "jc|a_{w36}",
    "permit-key": "permit|_key_{w90}",
    "unkey-key": "unk|ey_{s24}",
    "kong-token": "kp|at_{w48}",
    "zuplo-key": "zp|ka_{h32}_{h8}",
    "svix-token": "s|k_{u32}.eu",
    "sentry-integration-token": "sn|tryi_{h64}",
    "new-relic-admin-key": "NR|AA-{h27}",
    "pixie-key": "px|-dep-{uuid}",
    "honeycomb-key": "hc|aik_{n58}",
    "axiom-token": "xa|at-{uuid}",
    "checkly-key": "c|u_{h32}",
    "uptimerobot-key": "u|{d7}-{h24}",
    "healthchecks-key": "hc|w_{w28}",
    "coralogix-key": "cx|tp_{w30}",
    "mezmo-key": "st|s_{h32}",
    "datadog-key": "dd|app_{w34}",
    "firehydrant-token": "fh|b-{h32}",
    "dash0-token": "au|th_{s32}",
    "elastic-key": "es|su_{b60}",
    "metabase-key": "mb|_{s43}=",
    "lightdash-token": "ld|pat_{h32}",
    "hex-token": "hx|tp_{h64}",
    "omni-key": "omni|_osk_{w40}",
    "bitbucket-server-token": "BB|DC-{b44}",
    "jsr-token": "js|rp_{w36}",
    "snyk-token": "snyk|_uat.{h8}.{u80}",
    "deepsource-token": "ds|p_{w40}",
    "socket-token": "skt|sec_{u60}",
    "stackhawk-key": "ha|wk.{w20}.{w20}",
    "dependency-track-key": "od|t_{w32}",
    "veracode-key": "vera|01ei-{h40}",
    "vulncheck-token": "vuln|check_{h64}",
    "jetbrains-token": "pe|rm:{w12}.{w8}.{w30}",
    "teamcity-token": "ey|J0eXAiOiAiVENWMiJ9.{u34}.{u48}",
    "jenkins-secret": "{{AQ|AAABAAAA{b60}=}}",
    "appveyor-token": "v|2.{n17}1a2",
    "depot-token": "dep|ot_org_{h64}",
    "chromatic-token": "ch|pt_{h16}",
    "percy-token": "we|b_{h64}",
    "lambdatest-key": "L|T_{w48}",
    "apollo-key": "serv|ice:shop-api:{s22}",
    "cody-token": "sl|k_{h64}",
    "gitpod-token": "gitpod|_pat_{w60}",
    "inngest-key": "sign|key-prod-{h64}",
    "trigger-key": "t|r_prod_{w24}",
    "laravel-key": "APP_KEY=base|64:{b43}=",
    "ionic-token": "io|n_{s42}",
    "devin-key": "apk|_user_{w120}",
    "sendgrid-full-key": "mailS|G.{w22}.{w43}",
    "slack-cookie": "xo|xd-{w60}%2B{w60}",
    "slack-workflow-token": "xw|fp-{d11}-{w24}",
    "outlook-webhook": "https://outlook.office.com/webhook/{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}",
    "google-chat-webhook": "https://chat.googleapis.com/v1/spaces/A/messages?threadKey=x&token={u43}",
    "room-webhook": "https://open.feishu.cn/open-apis/bot/v2/hook/{uuid}",
    "make-webhook": "https://hook.eu1.make.com/{n29}1a2",
    "ifttt-webhook": "https://maker.ifttt.com/trigger/x/with/key/{u22}",
    "dingtalk-secret": "SE|C{h64}",
    "discord-user-token": "mf|a.{u84}",
    "twitch-token": "oau|th:{n27}1a2",
    "line-channel-token": "{b150}1O/w1cD|nyilFU=",
    "mailersend-token": "ml|sn.{h64}",
    "mandrill-key": "m|d-{s22}",
    "plain-key": "plainApi|Key_{w60}",
    "twitter-access-token": "{d18}-{s40}",
    "threads-token": "TH|AA{w100}",
    "linkedin-secret": "WPL|_AP1.{w16}.{w8}==",
    "pinterest-token": "pi|na_{U100}",
    "vk-token": "vk|1.a.{u190}",
    "firebase-messaging-key": "AA|AA{w7}:APA9|1b{u134}",
    "woocommerce-key": "c|s_{h40}",
    "paypal-token": "A2|1AA{u90}",
    "adyen-key": "AQ|Ek{b80}==-{b44}=-{w16}",
    "klarna-key": "klarna|_live_api_{b60}",
    "paddle-key": "pdl|_live_apikey_{n26}_{w22}_{w3}",
    "paddle-webhook-secret": "pdl|_ntfset_{n26}_{b32}",
    "polar-token": "polar|_oat_{w40}",
    "xendit-key": "xnd|_production_{w56}",
    "midtrans-key": "Mid|-server-{w24}",
    "mercadopago-token": "APP|_USR-{d16}-{d6}-{h32}-{d9}",
    "asaas-key": "$aa|ct_prod_{b90}",
    "omise-key": "sk|ey_{n16}1a2",
    "brex-token": "bx|t_{w36}",
    "rapyd-key": "rs|k_{h100}",
    "quicknode-key": "Q|N_{h32}",
    "tatum-key": "t|-{h24}-{h24}",
    "portone-secret": "imp|_apikey_{w32}",
    "trello-token": "AT|TA{h64}{H8}",
    "mapbox-temporary-token": "tk|.eyJ{u60}.{u22}",
    "adobe-secret": "p8|e-{w32}",
    "canva-secret": "cn|vca{w50}",
    "retool-token": "ret|ool_{n23}1a2",
    "outline-key": "ol|_api_{w38}",
    "gitbook-token": "gb|_api_{w40}",
    "mintlify-key": "mi|nt_{s30}",
    "harvest-token": "{d7}.p|t.{u80}",
    "wakatime-key": "wa|ka_{uuid}",
    "persona-key": "persona|_production_{uuid}",
    "onfido-token": "api|_live.{w11}.{w32}",
    "ghost-admin-key": "{h24}:{h64}",
    "liveblocks-key": "sk|_prod_{s60}",
    "revenuecat-key": "s|k_Q{s27}",
    "branch-secret": "secret|_live_{w32}",
    "growthbook-key": "secret|_admin_{w43}",
    "devcycle-key": "dvc|_server_{w40}",
    "flagsmith-key": "se|r.{s22}",
    "unleash-token": "default:production.{h56}",
    "rapidapi-key": "{h10}m|sh{h15}p1{h5}j|sn{h12}",
    "uploadthing-token": "ey|JhcGlLZXkiOi{b90}",
    "ubidots-key": "BB|FF-{w30}",
    "tinkoff-token": "t|.{s86}",
    "teamwork-token": "tk|n.v1_{b80}=",
    "google-ai-key": "AQ|.Ab8RN6{u44}",
    "silicon-key": "s|k-{l48}",
    "helicone-key": "sk|-helicone-{n8}-{n8}-{n8}-{n8}",
    "letta-key": "sk|-let-{b90}",
    "langsmith-old-key": "l|s__{h32}",
    "wandb-key": "wandb|_v1_{w80}",
    "kaggle-token": "KG|AT_{h32}",
    "cartesia-key": "sk|_car_{w24}",
    "hex-key": "ke|y_{h64}",
    "cursor-key": "cr|sr_{h64}",
    "luma-key": "lu|ma-{uuid}-{uuid}",
    "fal-key": "{uuid}:{h32}",
    "friendli-token": "fl|p_{w46}",
    "modal-token": "a|s-{s22}",
    "runpod-key": "rp|a_{w44}",
    "daytona-key": "dt|n_{h64}",
    "browserbase-key": "bb|_live_{w27}",
    "brave-search-key": "BS|A{s28}",
    "you-key": "ydc|-sk-{h16}-{w32}-{h8}",
    "arcade-key": "ar|c_{s54}",
    "mem0-key": "m|0-{s40}",
    "dify-key": "ap|p-{s24}",
    "coze-token": "pa|t_{s64}",
    "zhipu-key": "{h32}.{s16}",
    "upstage-key": "u|p_{s29}",
    "clova-studio-key": "n|v-{h32}{w4}",
    "chroma-key": "c|k-{s44}",
    "botpress-token": "bp|_pat_{w36}",
    "voiceflow-key": "V|F.DM.{h24}.{w16}",
    "logfire-token": "py|lf_v1_us_{w43}",
    "clarifai-signing-key": "wh|sk_{w40}",
    "inference-net-key": "infer|ence-{h32}",
    # Where the name of the service has to stand in the text.
    "ngrok-token": "ngrok authtoken 2{s26}_{w21}",
    "baseten-key": "baseten {w8}.{s32}",
    "codefresh-key": "codefresh {h24}.{h32}",
    "jenkins-token": "1|1{h32}",
}


def filled(form: str, m: Maker) -> str:
    def blank(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return m.uuid()
        kind, length = found.group(1), int(found.group(2))
        return salad(m, length) if kind == "s" else m(length, _ALPHABETS[kind])

    # In one form the cut is a part of it: a name and a secret with a bar between them.
    plain = form.replace("123|{", "123\0{").replace("|", "").replace("\0", "|")
    return _BLANK.sub(blank, plain).replace("{{", "{").replace("}}", "}")


def _wallet_key(m: Maker) -> str:
    letters = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    raw = bytes.fromhex("0488ade4" + m(148, HEX))
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, place = divmod(number, 58)
        text = letters[place] + text
    return text


def _seed(m: Maker, *first: int) -> str:
    raw = bytes([*first]) + bytes.fromhex(m(64, HEX))
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def _nostr_key(m: Maker) -> str:
    letters, name = "qpzry9x8gf2tvdw0s3jn54khce6mua7l", "nsec"
    data = [letters.index(c) for c in m(52, letters)]
    check = 1
    for value in [ord(c) >> 5 for c in name] + [0] + [ord(c) & 31 for c in name] + data + [0] * 6:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> bit & 1 else 0
    data += [(check ^ 1) >> 5 * (5 - place) & 31 for place in range(6)]
    return f"{name}1{''.join(letters[one] for one in data)}"


CHECKED: dict[str, Callable[[Maker], str]] = {
    "wallet-key": _wallet_key,
    "stellar-seed": lambda m: _seed(m, 18 << 3),
    "nats-seed": lambda m: _seed(m, 18 << 3 | 20 << 3 >> 5, (20 << 3 & 31) << 3),
    "nostr-key": _nostr_key,
}


def samples(each: int = 3) -> Iterator[tuple[str, str]]:
    """A rule and a text with what it is for."""
    for seed in range(each):
        for rule, form in FORMS.items():
            yield rule, filled(form, Maker(seed * 7919 + len(form)))
        for rule, make in CHECKED.items():
            yield rule, make(Maker(seed))
