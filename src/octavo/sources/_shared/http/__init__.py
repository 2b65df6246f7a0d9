"""The one way out to other machines: addresses that were looked at, and connections to exactly those."""
