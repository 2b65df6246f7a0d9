"""Merges the watches of all sources into one ordered change feed."""

from octavo.feed.changes import Changes
from octavo.feed.feed import ChangeFeed

__all__ = ["ChangeFeed", "Changes"]
