"""Our error hierarchy: one class per thing a caller can do something about.

* OctavoError
  x InvalidParams       the text is no address, the scheme is unknown, an argument is wrong
  x Unauthenticated     nobody known is asking; a key is missing, wrong or expired
  x NotFound            nothing visible stands at that address
  x Forbidden           the policy, the shape of the path, or a human says no
  x ApprovalRequired    a human is asked first; the same call can be made again when he has answered
  x InputRequired       somebody has to answer first; the same call can be made again when he has
  x RateLimited         slow down; `retry_after` says for how long
  x TooLarge            the content is over the caller's limit; read a part
  x Conflict            the `if_match` version is no longer current
  x Timeout             the work did not end within the deadline
  x SourceUnavailable   the system behind the source did not answer
  x ProtocolError       a plugin that may speak the raw protocol refuses in the protocol's own words
  x InternalError       a fault of ours; the cause is in the log under `incident`
    x Unrecorded        the audit log cannot be written; `begun` says whether anything was done

`str(error)` is always safe to show to a client: no server path, no secret, no foreign text
beyond what the caller itself sent. `reason` is the stable discriminator on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from octavo.core.approval import ApprovalQuestion
    from octavo.core.forms import Form


class OctavoError(Exception):
    """Base of everything this package raises on purpose."""

    reason: ClassVar[str] = "internal"

    def __init__(self, message: str, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.data: Mapping[str, object] = data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"


class InvalidParams(OctavoError):
    """`discreet` is the message for a caller who may not know everything that the full one names."""

    reason = "invalid_params"

    def __init__(self, message: str, *, discreet: str = "", **data: object) -> None:
        super().__init__(message, **data)
        self.discreet = discreet


class Unauthenticated(OctavoError):
    reason = "unauthenticated"


class NotFound(OctavoError):
    """Data is exactly `{uri}` for a resource: clients recognise it by that shape."""

    reason = "not_found"


class Forbidden(OctavoError):
    """`hidden` says that the rule wants this refusal to look like absence."""

    reason = "forbidden"

    def __init__(self, message: str, *, hidden: bool = False, **data: object) -> None:
        super().__init__(message, **data)
        self.hidden = hidden


class ApprovalRequired(OctavoError):
    """`question` is there where the waiting client can put it to its user."""

    reason = "approval_required"

    def __init__(self, message: str, *, question: ApprovalQuestion | None = None, **data: object) -> None:
        super().__init__(message, **data)
        self.question = question


class InputRequired(OctavoError):
    """`form` is there where the waiting client can show it. `key` names it among the answers that come back with the
    call, `state` what was answered before."""

    reason = "input_required"

    def __init__(
        self, message: str, *, form: Form | None = None, key: str = "", state: str | None = None, **data: object
    ) -> None:
        super().__init__(message, **data)
        self.form, self.key, self.state = form, key, state


class RateLimited(OctavoError):
    reason = "rate_limited"

    def __init__(self, message: str = "Rate limit exceeded", *, retry_after: float, **data: object) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class TooLarge(OctavoError):
    reason = "too_large"


class Conflict(OctavoError):
    reason = "conflict"


class Timeout(OctavoError):
    """`telling` says that it is a sign of an outage; not so where the work was ours, on what a source gave at once."""

    reason = "timeout"

    def __init__(self, message: str, *, telling: bool = True, **data: object) -> None:
        super().__init__(message, **data)
        self.telling = telling


class SourceUnavailable(OctavoError):
    """`telling` as of Timeout: not so where the source answered, and only its answer cannot be used."""

    reason = "source_unavailable"

    def __init__(self, message: str, *, retry_after: float | None = None, telling: bool = True, **data: object) -> None:
        super().__init__(message, **data)
        self.retry_after, self.telling = retry_after, telling


class ProtocolError(OctavoError):
    """Goes to the wire with the code and data that the plugin chose."""

    reason = "protocol"

    def __init__(self, message: str, *, code: int, **data: object) -> None:
        super().__init__(message, **data)
        self.code = code


class InternalError(OctavoError):
    reason = "internal"


class Unrecorded(InternalError):
    """`begun`: a change had begun when the log failed, so that it may have been made. Else nothing was done."""

    reason = "unrecorded"

    def __init__(self, message: str = "The audit log cannot be written", *, begun: bool = False) -> None:
        if begun:
            message += ": the change was begun, and its outcome is not on record; look before it is tried again"
            super().__init__(message, begun=True)
        else:
            hint = "nothing was done: try again later, or tell the operator; the log of the server says why"
            super().__init__(message, begun=False, hint=hint)


def through_a_link(uri: str) -> Forbidden:
    """What is told of a link to nothing, and so of one to what its caller may not know of."""
    return Forbidden(f"{uri} leads through a symbolic link; use the address of its target", uri=uri)


ALL: tuple[type[OctavoError], ...] = (
    InvalidParams,
    Unauthenticated,
    NotFound,
    Forbidden,
    ApprovalRequired,
    InputRequired,
    RateLimited,
    TooLarge,
    Conflict,
    Timeout,
    SourceUnavailable,
    ProtocolError,
    InternalError,
    Unrecorded,
)
