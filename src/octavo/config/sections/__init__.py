"""The sections of octavo.yaml, each with its shape."""
