"""The door between the pipeline and the sources of plugins."""

from octavo.pipeline.guard.abilities import guarded
from octavo.pipeline.guard.door import Guarded
from octavo.pipeline.guard.faults import Faults

__all__ = ["Faults", "Guarded", "guarded"]
