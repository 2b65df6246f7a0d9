"""Merges the watches of all sources into one ordered change feed."""
