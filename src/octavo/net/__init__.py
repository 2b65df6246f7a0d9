"""Outbound HTTP, the one way out: addresses are resolved, vetted, pinned, and what is read has a bound."""
