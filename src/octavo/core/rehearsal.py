"""A call that is tried without an effect, to see whether it could be made at all: nobody is asked about what could not.

Whatever would refuse it does so then. Where the effect would begin, `Rehearsed` ends it.
"""

from __future__ import annotations


class Rehearsed(Exception):
    """Nothing stood in the way. No error of ours: it passes whoever puts those into other words."""
