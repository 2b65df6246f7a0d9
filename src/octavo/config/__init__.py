"""The shape of octavo.yaml and how it is read."""
