"""Fold 2, identity: who asks, and how that is proved."""
