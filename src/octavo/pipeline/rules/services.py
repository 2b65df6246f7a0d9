"""Credentials of chat, mail, payment, work and model services, by their look."""

from __future__ import annotations

from octavo.pipeline.rules import checks
from octavo.pipeline.rules.rule import HEX, URL_SAFE, UUID, WORD, Rule, token

_LONG = rf"{WORD}{{32,}}"

TALK: tuple[Rule, ...] = (
    token("slack-token", r"xox[abceoprs]-|xapp-\d-|xoxe\.xox[bp]-", r"[A-Za-z0-9-]{10,}"),
    Rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})",
        ("hooks.slack.com",),
    ),
    Rule(
        "discord-token",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
        clue=r"[A-Za-z0-9_-]\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{8}",
        accept=checks.is_varied,
    ),
    Rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/webhooks/\d{10,25}/([A-Za-z0-9_-]{40,})",
        ("discord.com/api/webhooks", "discordapp.com/api/webhooks"),
    ),
    Rule("telegram-token", rf"\b\d{{8,10}}:AA{URL_SAFE}{{32,33}}\b", clue=rf"\d:AA{URL_SAFE}{{6}}"),
    Rule("teams-webhook", rf"\.webhook\.office\.com/webhookb2/({UUID}@[0-9a-zA-Z/-]{{40,}})", ("webhook.office.com",)),
    Rule("zapier-webhook", r"hooks\.zapier\.com/hooks/catch/([A-Za-z0-9/]{10,})", ("hooks.zapier.com",)),
    token("twilio-key", f"SK{HEX}{{4}}", rf"{HEX}{{28}}\b"),
    token("sendgrid-key", rf"SG\.{URL_SAFE}{{8}}", rf"{URL_SAFE}{{8,24}}\.{URL_SAFE}{{16,64}}"),
    token("mailgun-key", f"key-{HEX}{{4}}", rf"{HEX}{{28}}\b"),
    Rule("mailchimp-key", rf"\b{HEX}{{32}}-us\d{{1,2}}\b", clue=rf"{HEX}{{6}}-us\d", accept=checks.is_real),
    token("brevo-key", "xkeysib-|xsmtpsib-", rf"{HEX}{{64}}-{WORD}{{16}}"),
    token("resend-key", f"re_{WORD}{{8}}_", rf"{WORD}{{24}}\b"),
    token("facebook-token", f"EAA[A-Z]{WORD}{{8}}", rf"{WORD}{{80,}}"),
    token("twitter-bearer", "AAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]", r"[A-Za-z0-9%]{50,}"),
)

MONEY: tuple[Rule, ...] = (
    token("stripe-key", "(?:sk|rk)_(?:live|test|prod)_", rf"{WORD}{{10,}}"),
    token("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    token("toss-payments-key", "(?:live|test)_g?sk_", rf"{WORD}{{20,}}"),
    token("square-token", r"sq0[a-z]{3}-", rf"{URL_SAFE}{{22,}}"),
    Rule(
        "braintree-token",
        rf"access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\$({HEX}{{32}})",
        clue=r"access_token\$",
    ),
    token("plaid-token", "access-(?:sandbox|development|production)-", UUID),
    token("razorpay-key", "rzp_(?:live|test)_", rf"{WORD}{{14,}}"),
    token("flutterwave-key", "FLWSECK(?:_TEST)?-", rf"{HEX}{{12,}}-X"),
    token("shopify-token", "shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}\b"),
    token("easypost-key", "EZ[AT]K", rf"{WORD}{{54}}\b"),
    token("shippo-token", "shippo_(?:live|test)_", rf"{HEX}{{40}}"),
    token("duffel-token", "duffel_(?:live|test)_", r"[A-Za-z0-9_=-]{43}"),
)

WORK: tuple[Rule, ...] = (
    token("notion-token", f"secret_{WORD}{{8}}|ntn_", rf"{WORD}{{35,60}}\b"),
    token("figma-token", "fig[dour]_", rf"{URL_SAFE}{{40,}}"),
    token("linear-key", "lin_(?:api|oauth)_", _LONG),
    Rule("airtable-token", rf"\bpat{WORD}{{14}}\.{HEX}{{64}}\b", clue=rf"pat{WORD}{{14}}\."),
    Rule("asana-token", rf"\b[012]/\d{{12,}}(?:/\d+)?:({HEX}{{32}})\b", clue=rf"\d:{HEX}{{8}}", accept=checks.is_real),
    token("clickup-token", r"pk_\d{6,9}_", r"[A-Z0-9]{32}\b"),
    token("typeform-token", "tfp_", r"[A-Za-z0-9_.=-]{40,}"),
    token("contentful-token", "CFPAT-", rf"{URL_SAFE}{{43}}"),
    token("hubspot-token", r"pat-(?:na|eu|ap)\d-", UUID),
    token("dropbox-token", rf"sl\.(?:u\.)?{URL_SAFE}{{12}}", rf"{URL_SAFE}{{100,}}"),
    token("posthog-key", "ph[xs]_", rf"{WORD}{{36,}}"),
    token("apify-token", "apify_api_", rf"{WORD}{{36}}"),
    token("frameio-token", "fio-u-", rf"{URL_SAFE}{{40,}}"),
    token("mapbox-secret-token", r"sk\.eyJ", rf"{URL_SAFE}{{30,}}\.{URL_SAFE}{{20,}}"),
    token("adafruit-key", f"aio_{WORD}{{4}}", rf"{WORD}{{24}}\b"),
)

MODELS: tuple[Rule, ...] = (
    token("anthropic-key", "sk-ant-", rf"{WORD}{{2,12}}-{URL_SAFE}{{20,}}"),
    Rule(
        "openai-key",
        r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9_-]{10,}T3BlbkFJ[A-Za-z0-9_-]{10,}",
        clue="sk-(?:proj|svcacct|admin|None)-|T3BlbkFJ",
        accept=checks.is_real,
    ),
    token("openrouter-key", "sk-or-v1-", rf"{HEX}{{64}}"),
    token("langfuse-key", "sk-lf-", UUID),
    token("deepseek-key", f"sk-{HEX}{{8}}", rf"{HEX}{{24}}\b"),
    token("elevenlabs-key", f"sk_{HEX}{{8}}", rf"{HEX}{{40}}\b"),
    token("hugging-face-token", "hf_[A-Za-z]{6}|api_org_", r"[A-Za-z]{28}\b"),
    token("replicate-token", f"r8_{WORD}{{6}}", rf"{WORD}{{31}}\b"),
    token("groq-key", "gsk_", rf"{WORD}{{40,}}"),
    token("xai-key", "xai-", rf"{WORD}{{70,}}"),
    token("perplexity-key", "pplx-", rf"{WORD}{{40,}}"),
    token("together-key", "tgp_v1_", rf"{URL_SAFE}{{40,}}"),
    token("fireworks-key", f"fw_{WORD}{{8}}", rf"{WORD}{{14,}}"),
    token("langsmith-key", "lsv2_(?:pt|sk)_", rf"{HEX}{{32}}_{HEX}{{10}}"),
    token("pinecone-key", "pcsk_", r"[A-Za-z0-9_]{50,}"),
    token("nvidia-key", "nvapi-", rf"{URL_SAFE}{{60,}}"),
    token("tavily-key", "tvly-", rf"{URL_SAFE}{{28,}}"),
    token("firecrawl-key", f"fc-{HEX}{{8}}", rf"{HEX}{{24}}\b"),
)
