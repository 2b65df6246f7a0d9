"""Writing to the file source: nothing torn, nothing lost, nothing outside the roots, everything undoable."""

from octavo.sources.file.writing.engine import Engine, Mode
from octavo.sources.file.writing.journal import Journal

__all__ = ["Engine", "Journal", "Mode"]
