"""One index over all sources: Korean and English, ranked, and about what the viewer may see alone."""

from octavo.search.borrowed import Borrowed
from octavo.search.document import Document
from octavo.search.index import Index
from octavo.search.indexer import Upkeep
from octavo.search.query import FullText
from octavo.search.vectors import Meaning

__all__ = ["Borrowed", "Document", "FullText", "Index", "Meaning", "Upkeep"]
