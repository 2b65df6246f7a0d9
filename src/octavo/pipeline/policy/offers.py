"""Templates and half-written addresses, as far as the policy must understand them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from octavo.core.glob import Glob
from octavo.core.values import Template

_VARIABLE = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_.]*)\}")
_QUERY = re.compile(r"\{[?&]([^{}]*)\}")


def variables(template: str) -> frozenset[str]:
    return frozenset(name for _, name in _VARIABLE.findall(template))


def names_in(template: str) -> frozenset[str]:
    """All that can be filled in, also in its query."""
    return variables(template).union(name for names in _QUERY.findall(template) for name in names.split(","))


def choices(offered: Template, argument: str) -> Sequence[str]:
    """What a parameter of the query can be, where the template itself says so. Those are words, not names."""
    if not any(argument in names.split(",") for names in _QUERY.findall(offered.uri_template)):
        return ()
    found: Sequence[str] = offered.parameters.get("properties", {}).get(argument, {}).get("enum", ())
    return found


def expand(template: str, values: Mapping[str, str]) -> str:
    """As RFC 6570 says: values are data, so what means something in an address is encoded. Variables
    without a value stay; a query is left out."""

    def filled(found: re.Match[str]) -> str:
        many, name = found.groups()
        return quote(values[name], safe="/" if many else "") if name in values else found[0]

    return _VARIABLE.sub(filled, _QUERY.sub("", template))


def below(unfinished: str) -> Glob:
    """Everything under the fixed folders of a template or of a half-written address."""
    return Glob(unfinished.partition("{")[0].rpartition("/")[0] + "/*")
