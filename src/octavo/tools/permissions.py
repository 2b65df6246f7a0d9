"""What a caller must hold besides the right to call a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from octavo.core.errors import Forbidden, InvalidParams, OctavoError
from octavo.core.ref import Ref
from octavo.core.values import VERBS, Principal, Verb

SCHEME: Final = "permission"

# Whether a principal may do that at an address.
May: TypeAlias = Callable[[Principal, Verb, Ref], bool]
Demand: TypeAlias = tuple[str, Verb, Ref]

_NAME: Final = re.compile(r"[\w.:-]{1,128}\Z")


def demands(permissions: Sequence[str]) -> tuple[Demand, ...]:
    """`read file://hr` is a right to an address; `people` is held by who may invoke `permission://people`.

    Raises InvalidParams for what is neither.
    """
    return tuple((text, *_demand(text)) for text in permissions)


def _demand(text: str) -> tuple[Verb, Ref]:
    word, _, address = text.partition(" ")
    verb = next((verb for verb in VERBS if verb == word), None)
    if verb is not None and address:
        try:
            return verb, Ref.parse(address)
        except OctavoError as error:
            raise InvalidParams(f"The permission {text!r} names no address: {error}") from None
    if _NAME.match(text):
        return "invoke", Ref.of(SCHEME, (text,))
    raise InvalidParams(f"The permission {text!r} is neither a name nor a verb and an address, such as read file://hr")


def demand(may: May, who: Principal, wanted: Sequence[Demand], tool: str) -> None:
    """Raises Forbidden for the first that is missing."""
    for text, verb, ref in wanted:
        if not may(who, verb, ref):
            raise Forbidden(
                f"The tool {tool} needs the permission {text}, which {who.id} does not hold",
                toolName=tool,
                agent=who.id,
                required_permission=text,
                resource=str(ref),
            )
