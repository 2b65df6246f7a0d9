"""The one table from our errors to numbers, per era. Nothing else in the house knows a code.

`data.reason` is the stable discriminator. NotFound is the exception: its data is exactly `{uri}`, the
shape by which clients recognise it.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from octavo.core import errors
from octavo.core.errors import NotFound, OctavoError, ProtocolError, RateLimited, SourceUnavailable


class WireError(NamedTuple):
    code: int
    message: str
    data: Any

    def of_tool(self, name: str) -> dict[str, Any]:
        """As a tool answers it, with its name: beside the data where that is exactly `{uri}`."""
        body = {"code": self.code, "message": self.message, "data": self.data}
        if {*self.data} == {"uri"}:
            return {**body, "toolName": name}
        return {**body, "data": {**self.data, "toolName": name}}


class _Codes(NamedTuple):
    legacy: int
    modern: int
    strict: int  # modern, with `error_codes: strict`: outside the range that the protocol reserves


_TABLE: dict[type[OctavoError], _Codes] = {
    errors.NotFound: _Codes(-32002, -32602, -32602),
    errors.InvalidParams: _Codes(-32602, -32602, -32602),
    errors.Unauthenticated: _Codes(-32003, -32003, -31003),
    errors.Forbidden: _Codes(-32003, -32003, -31003),
    errors.RateLimited: _Codes(-32004, -32004, -31004),
    errors.SourceUnavailable: _Codes(-32005, -32005, -31005),
    errors.Timeout: _Codes(-32005, -32005, -31005),
    errors.TooLarge: _Codes(-31006, -31006, -31006),
    errors.Conflict: _Codes(-31007, -31007, -31007),
    errors.ApprovalRequired: _Codes(-31008, -31008, -31008),
    errors.InputRequired: _Codes(-31009, -31009, -31009),
    errors.InternalError: _Codes(-32603, -32603, -32603),
    errors.OctavoError: _Codes(-32603, -32603, -32603),
}


class Codes:
    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def encode(self, error: OctavoError, *, modern: bool) -> WireError:
        if isinstance(error, ProtocolError):
            return WireError(error.code, error.message, dict(error.data))
        row = next(_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE)
        code = row.legacy if not modern else row.strict if self._strict else row.modern
        return WireError(code, error.message, _data(error))


INTERNAL: Final = Codes(strict=False)  # for failures of ours: they have one number everywhere


def _data(error: OctavoError) -> dict[str, Any]:
    if isinstance(error, NotFound) and set(error.data) == {"uri"}:
        return dict(error.data)
    data = {"reason": error.reason, **error.data}
    if isinstance(error, RateLimited | SourceUnavailable) and error.retry_after is not None:
        data["retryAfterMs"] = math.ceil(error.retry_after * 1000)
    return data
