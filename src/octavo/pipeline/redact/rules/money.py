"""Credentials of payment, of shops and of wallets, by their look."""

from __future__ import annotations

from octavo.pipeline.redact.rules import checks
from octavo.pipeline.redact.rules.rule import HEX, URL_SAFE, UUID, WORD, PatternRule, token

MONEY: tuple[PatternRule, ...] = (
    token("stripe-key", "(?:sk|rk)_(?:live|test|prod)_", rf"{WORD}{{10,}}"),
    # One word behind its mode, as several services of payment have it; names in code have several.
    token("mode-key", "(?:live|test)_", rf"(?:{WORD}{{27}}|{WORD}{{30}}|{WORD}{{35}})\b", accept=checks.is_mixed),
    token("gocardless-token", f"live_{URL_SAFE}{{8}}", r"[A-Za-z0-9_=-]{32}\b", accept=checks.is_mixed),
    token("recharge-token", r"sk_(?:test_)?\dx\d_", r"[0-9a-fA-F]{64}\b"),
    token("checkout-key", "sk_(?:test_|sbox_)?", UUID),
    PatternRule(
        "square-access-token",
        r"(?:^|//|[^A-Za-z0-9_+/])(EAAA[A-Za-z0-9_=-]{60})(?:[^A-Za-z0-9_+/=-]|$)",
        clue=rf"EAAA{WORD}{{8}}",
        accept=checks.is_mixed,
    ),
    token("gemini-key", "(?:master|account)-[A-Z0-9]", rf"{WORD}{{19}}\b", accept=checks.is_cased),
    token("ramp-secret", "ramp_(?:sec|tok|id)_", rf"{WORD}{{40,}}"),
    token("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    token("toss-payments-key", "(?:live|test)_g?sk_", rf"{WORD}{{20,}}"),
    token("square-token", r"sq0[a-z]{3}-", rf"{URL_SAFE}{{22,}}"),
    PatternRule(
        "braintree-token",
        rf"access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\$({HEX}{{32}})",
        clue=r"access_token\$",
    ),
    token("plaid-token", "access-(?:sandbox|development|production)-", UUID),
    token("razorpay-key", "rzp_(?:live|test)_", rf"{WORD}{{14,}}"),
    token("flutterwave-key", "FLWSECK(?:_TEST)?-", r"[a-hA-H0-9]{12}(?:[a-hA-H0-9]{20}-X)?\b"),
    token("shopify-token", "(?:shp(?:at|ca|pa|ss|ua)|shptka|shppa)_", rf"{WORD}{{32,40}}\b"),
    token("easypost-key", "EZ[AT]K", rf"{WORD}{{54}}\b"),
    token("shippo-token", "shippo_(?:live|test)_", r"[0-9a-fA-F]{40}\b"),
    token("duffel-token", "duffel_(?:live|test)_", r"[A-Za-z0-9_=-]{43}"),
    token("woocommerce-key", f"c[ks]_{HEX}{{8}}", rf"{HEX}{{32}}\b"),
    token("paypal-token", "A21AA", rf"{URL_SAFE}{{80,}}"),
    PatternRule(
        "adyen-key",
        r"\bAQE[a-z][A-Za-z0-9+/]{40,}={0,2}-[A-Za-z0-9+/]{40,}={0,2}-[^\s\"'`\[\]]{16}",
        clue="AQE[a-z][A-Za-z0-9+/]{40}",
        accept=checks.is_real,
    ),
    token("klarna-key", "klarna_(?:live|test)_api_", r"[A-Za-z0-9+/_=-]{40,}"),
    token("paddle-key", "pdl_(?:live|sdbx)_apikey_", rf"[a-z0-9]{{26}}_{WORD}{{22}}_{WORD}{{3}}\b"),
    token("paddle-webhook-secret", "pdl_ntfset_", r"[a-z0-9]{26}_[A-Za-z0-9+/]{32}"),
    token("polar-token", "polar_(?:[opr]at|whs|a[ct]_[uo]|rt_[uo]|rst|cst|cs|ci|sd)_", rf"{URL_SAFE}{{32,}}"),
    token("xendit-key", "xnd_(?:production|development)_", rf"{WORD}{{40,}}"),
    token("midtrans-key", "Mid-server-", rf"{URL_SAFE}{{24}}\b"),
    token("mercadopago-token", r"(?:APP_USR|TEST)-\d{8}", rf"\d{{4,12}}-\d{{6}}-{HEX}{{32}}-\d{{6,}}\b"),
    PatternRule("asaas-key", r"\$aact_(?:prod_|hmlg_)?[A-Za-z0-9+/=:]{60,}", clue=r"\$aact_"),
    token("omise-key", "skey_(?:test_)?", r"[a-z0-9]{19}\b", accept=checks.is_mixed),
    token("brex-token", "bxt_", rf"{WORD}{{36}}\b"),
    token("rapyd-key", f"rsk_{HEX}{{8}}", rf"{HEX}{{72,}}"),
    token("quicknode-key", f"QN_{HEX}{{8}}", rf"{HEX}{{24}}\b"),
    token("tatum-key", f"t-{HEX}{{24}}-", rf"{HEX}{{24,32}}\b"),
    token("portone-secret", "imp_apikey_", rf"{WORD}{{20,}}"),
    PatternRule(
        # BIP 32: a wallet's key and all keys that are made from it.
        "wallet-key",
        r"\b[xyzt]prv[1-9A-HJ-NP-Za-km-z]{107,108}\b",
        clue="[xyzt]prv[1-9A-HJ-NP-Za-km-z]{8}",
        accept=checks.is_wallet_key,
    ),
    token("stellar-seed", "S[A-D][A-Z2-7]{8}", r"[A-Z2-7]{46}\b", accept=checks.is_seed),
    token("nostr-key", "nsec1", r"[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{58}\b", accept=checks.is_bech32_key),
)
