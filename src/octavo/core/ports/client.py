"""The interface to the client that waits for a call: progress, its languages, and questions to the person at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from octavo.core.arguments import Allowed as Allowed
from octavo.core.arguments import Mode as Mode

if TYPE_CHECKING:
    from octavo.core.approval import ApprovalQuestion, Verdict
    from octavo.core.forms import Answer, Form

T = TypeVar("T")


class Channel(Protocol):
    """The client that waits for a call, as far as the pipeline may know it."""

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None: ...

    @property
    def locales(self) -> Sequence[str]:
        """Languages that it asked for, the most wanted first."""
        ...

    @property
    def asks(self) -> bool:
        """Whether the client can put a question to its user."""
        ...

    @property
    def lasts(self) -> bool:
        """Whether the client takes a task for an answer."""
        ...

    @property
    def waits(self) -> bool:
        """Whether a call may take as long as people take: nobody holds a connection open for it."""
        ...

    async def ask(self, form: Form) -> Answer | None:
        """What the user of the client says, which fits; None where the client cannot ask anybody. Raises InputRequired
        where it asks on its own, and calls again with the answer."""
        ...

    @property
    def wire(self) -> Any:
        """Raw protocol features, for plugins that the operator marked `protocol: true`."""
        ...

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        """What the user of the client says; None where the client cannot ask anybody. Raises ApprovalRequired where
        it asks on its own, and calls again with the answer."""
        ...
