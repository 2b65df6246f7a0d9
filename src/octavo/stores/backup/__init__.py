"""Backups: one tar with what the store keeps, the audit log, the secret, and a manifest that vouches for their bytes.

    store             portions of `core.ports.stores`, each behind its length, which any store reads
    audit/…           the files of the chains, each up to its last whole line
    secret            of the state folder
    manifest.json     last, so that a file that was cut off has none

Whoever has a backup has the secret and all that is kept.
"""
