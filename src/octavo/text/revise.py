"""Applies an edit to a text: the one function by which every source does it.

It runs below what hides secrets: for what is hidden from the caller signs stand in the text, which nobody can write and
which are put back after. So a right guess at what is hidden is answered as a wrong one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from octavo.core.edit import Revised, Revision
from octavo.core.errors import InvalidParams
from octavo.core.marks import MARK
from octavo.core.placeholders import as_marks
from octavo.core.preconditions import below
from octavo.text import edits, patch
from octavo.text.diff import unified

_MARK: Final = re.compile(MARK)


def revise(text: str, revision: Revision) -> Revised:
    """The new text, and what to say of it. Raises InvalidParams, which names the edit and the place, if one does not
    apply, or would change what is hidden from the caller."""
    return below(text, partial(_revised, revision))


def _revised(revision: Revision, text: str) -> Revised:
    if revision.patch is not None:
        added = "\n".join(line for line in revision.patch.split("\n") if line.startswith("+"))
        _refuse_marks(added, there=text)
        patched = patch.apply(text, revision.patch)
        after, places = patched.text, tuple(place._asdict() for place in patched.hunks)
    else:
        for edit in revision.edits:
            _refuse_marks(edit.new, there=text)
        edited = edits.apply(text, revision.edits, visible=as_marks, words=revision.words)
        after, places = edited.text, tuple(place._asdict() for place in edited.places)
    diff = unified(text, after, revision.label, max_bytes=revision.most)
    return Revised(after, diff.text, diff.added, diff.removed, places)


def _refuse_marks(new: str, *, there: str) -> None:
    """Whoever copies from what it has read may copy a mark. Unless the text itself has it, a secret would be lost."""
    for mark in _MARK.findall(new):
        if mark not in there:
            raise InvalidParams(f"{mark} stands for a secret that you cannot see: edit other lines, and leave it out")
