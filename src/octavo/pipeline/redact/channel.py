"""Redacts what a running tool tells its client before the result: progress and questions.

Progress, questions, notices and log messages leave the server while a tool works, past the fold that looks at
results. So a tool never holds the channel itself, but this.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo.core.approval import ApprovalQuestion, Verdict
    from octavo.core.forms import Answer, Form
    from octavo.core.ports.client import Channel
    from octavo.pipeline.redact.redactor import Redactor


class Telling:
    """A Channel. `redactors` are those of everybody and of the caller."""

    def __init__(self, channel: Channel, redactors: Sequence[Redactor]) -> None:
        self._channel, self._redactors = channel, redactors

    async def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        await self._channel.progress(value, total, None if message is None else self._shown(message))

    @property
    def locales(self) -> Sequence[str]:
        return self._channel.locales

    @property
    def asks(self) -> bool:
        return self._channel.asks

    @property
    def lasts(self) -> bool:
        return self._channel.lasts

    @property
    def waits(self) -> bool:
        return self._channel.waits

    async def ask(self, form: Form) -> Answer | None:
        return await self._channel.ask(form.told(self._shown))

    async def approve(self, question: ApprovalQuestion) -> Verdict | None:
        """A question of the house, not of the tool."""
        return await self._channel.approve(question)

    @property
    def wire(self) -> Any:
        wire = copy(self._channel.wire)
        if wire is not None:
            wire.shown = self._shown
        return wire

    def _shown(self, value: Any) -> Any:
        for redactor in self._redactors:
            value = redactor.value(value)
        return value
