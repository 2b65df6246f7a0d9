"""Templates and half-written addresses, as far as the policy must understand them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from octavo.core.glob import Glob

_VARIABLE = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_.]*)\}")


def variables(template: str) -> frozenset[str]:
    return frozenset(name for _, name in _VARIABLE.findall(template))


def expand(template: str, values: Mapping[str, str]) -> str:
    """As RFC 6570 says: values are data, so what means something in an address is encoded. Variables
    without a value stay."""

    def filled(found: re.Match[str]) -> str:
        many, name = found.groups()
        return quote(values[name], safe="/" if many else "") if name in values else found[0]

    return _VARIABLE.sub(filled, template)


def below(unfinished: str) -> Glob:
    """Everything under the fixed folders of a template or of a half-written address."""
    return Glob(unfinished.partition("{")[0].rpartition("/")[0] + "/*")
