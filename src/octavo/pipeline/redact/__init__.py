"""Fold 7, redaction: secrets and personal data leave no source, and rest in no cache."""
