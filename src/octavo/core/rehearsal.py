"""A call that is only tried, without an effect, to see whether it could be made: nobody is asked to approve what would
fail.

Whatever would refuse it does so then. Where the effect would begin, `Rehearsed` ends it.
"""

from __future__ import annotations


class Rehearsed(Exception):
    """Nothing stood in the way. No error of ours: it passes whoever puts those into other words."""
