"""Access tokens of OAuth issuers: parsed strictly, verified with the keys of their issuer, made into a principal.

Nothing here is imported before an issuer is configured.
"""
