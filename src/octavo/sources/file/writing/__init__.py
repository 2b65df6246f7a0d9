"""Writing to the file source: nothing torn, nothing lost, nothing outside the roots, everything undoable."""

from octavo.sources.file.writing.engine import Mode, WriteEngine
from octavo.sources.file.writing.journal import UndoJournal

__all__ = ["Mode", "UndoJournal", "WriteEngine"]
