"""Fold 4, the policy: who may do what, on every operation, and what nobody is told of."""
