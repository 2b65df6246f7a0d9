"""Catalogs over the files of a store: SOPs, documents, skills, agents, the organisation, and one's own namespaces."""

from octavo.sources.catalog.choice import chosen, is_document
from octavo.sources.catalog.crossrefs import Handbook, Live
from octavo.sources.catalog.declaration import Declaration, Shape
from octavo.sources.catalog.kinds import DECLARATIONS, check_options, check_own, doc_with, own, with_options
from octavo.sources.catalog.problems import FileProblem
from octavo.sources.catalog.source import CatalogSource

__all__ = [
    "DECLARATIONS",
    "CatalogSource",
    "Declaration",
    "FileProblem",
    "Handbook",
    "Live",
    "Shape",
    "check_options",
    "check_own",
    "chosen",
    "doc_with",
    "is_document",
    "own",
    "with_options",
]
