"""One thing that was looked at for `octavo doctor`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# ok; less: it works, but something is slower or missing; problem: something needed does not work
State = Literal["ok", "less", "problem"]


class Diagnosis(Struct, frozen=True):
    about: str
    state: State
    found: str
    advice: str = ""
