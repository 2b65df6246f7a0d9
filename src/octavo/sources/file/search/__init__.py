"""Search over the files of a source: by name from an index that the watch keeps right, by content with many readers."""

from octavo.core.query import ContentQuery, NameQuery
from octavo.text.hits import Hit, matches

__all__ = ["ContentQuery", "Hit", "NameQuery", "matches"]
