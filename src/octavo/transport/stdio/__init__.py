"""Ends of a stdio connection, whatever stands behind the descriptors."""
