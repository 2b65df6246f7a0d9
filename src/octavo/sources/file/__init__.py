"""The file source: directories served by descriptor, never by path."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo.sources._shared.fs.credentials import CREDENTIALS
    from octavo.sources.file.addresses import FileRoot
    from octavo.sources.file.source import FileSource

__all__ = ["CREDENTIALS", "FileRoot", "FileSource"]


def __getattr__(name: str) -> Any:
    """Loaded when somebody asks: whoever only wants to know what can be configured reads no file."""
    if name not in __all__:
        raise AttributeError(name)
    from octavo.sources._shared.fs.credentials import CREDENTIALS
    from octavo.sources.file.addresses import FileRoot
    from octavo.sources.file.source import FileSource

    globals().update(CREDENTIALS=CREDENTIALS, FileRoot=FileRoot, FileSource=FileSource)
    return globals()[name]
