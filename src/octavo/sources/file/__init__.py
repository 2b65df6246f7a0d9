"""The file source: directories served by descriptor, never by path."""

from octavo.sources.file.addresses import FileRoot
from octavo.sources.file.credentials import CREDENTIALS
from octavo.sources.file.source import FileSource

__all__ = ["CREDENTIALS", "FileRoot", "FileSource"]
