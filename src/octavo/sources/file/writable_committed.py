"""Files of a work tree that can be changed, and know what they were."""

from __future__ import annotations

from octavo.sources.file.committed import CommittedFileSource
from octavo.sources.file.writable import WritableFileSource


class WritableCommittedFileSource(WritableFileSource, CommittedFileSource):
    """Nothing is committed here: a change is in the journal, and in the history when somebody commits it."""
