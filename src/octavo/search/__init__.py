"""One index over all sources: Korean and English, ranked, and about what the viewer may see alone."""

from octavo.search.borrowed import Borrowed
from octavo.search.document import Document
from octavo.search.index import Index
from octavo.search.meaning import Meaning
from octavo.search.query import FullText
from octavo.search.upkeep import Upkeep

__all__ = ["Borrowed", "Document", "FullText", "Index", "Meaning", "Upkeep"]
