"""Tasks that somebody follows by `subscriptions/listen`: each new state is told as `tasks/get` would tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from pydantic import ConfigDict

from octavo.core.errors import OctavoError, RateLimited
from octavo.core.ports.chain import expected
from octavo.core.ref import Ref
from octavo.core.tasks import Task
from octavo.transport.mcp import wire_names
from octavo.transport.mcp.calls import Calls
from octavo.transport.mcp.subscriber import Note, Subscriber
from octavo.transport.mcp.tasks import declared, detailed


class Followed:
    def __init__(self, calls: Calls, subscriber: Subscriber) -> None:
        self._calls, self._subscriber = calls, subscriber
        self._ids: set[str] = set()
        self.leave: Callable[[], None] = calls.server.tasks.on_change(self._changed)

    @property
    def honoured(self) -> dict[str, Any]:
        return {"taskIds": sorted(self._ids)} if self._ids else {}

    async def add(self, task_id: str) -> None:
        """What is not the caller's is left out of the acknowledgement. Its present state is told at once."""
        who = self._subscriber.principal
        try:
            call = await self._calls.task("poll", who, task_id, None)
            self._ids.add(task_id)
            self._changed(expected(await self._calls.ask(call), Task))
        except OctavoError as refused:
            self._ids.discard(task_id)
            if isinstance(refused, RateLimited):
                raise

    def _changed(self, task: Task) -> None:
        who, tool = self._subscriber.principal, Ref.of("tool", (task.tool,))
        mine = task.id in self._ids and task.who == who.id
        if mine and self._calls.works.policy.allows(who, "invoke", tool):
            self._subscriber.push(Note(wire_names.TASKS, detailed(task)))


async def follow(
    calls: Calls, ctx: ServerRequestContext[Any, Any], subscriber: Subscriber, wanted: object
) -> Followed | None:
    """None where the client has not declared the extension, or names no tasks."""
    if not declared(ctx) or not isinstance(wanted, list):
        return None
    ids = list(dict.fromkeys(one for one in cast("list[object]", wanted) if isinstance(one, str)))
    limit = calls.works.limits.subscriptions
    if len(ids) > limit:
        raise RateLimited("Subscription limit reached", retry_after=60.0, limit=limit)
    followed = Followed(calls, subscriber)
    try:
        for task_id in ids:
            await followed.add(task_id)
    except BaseException:
        followed.leave()
        raise
    return followed


class _Params(types.NotificationParams):
    model_config = ConfigDict(extra="allow")


class _News(types.Notification[_Params, Literal["notifications/tasks"]]):
    method: Literal["notifications/tasks"] = "notifications/tasks"
    params: _Params


def news(params: Mapping[str, Any]) -> types.ServerNotification:
    # The types of the SDK are those of the core protocol; what it sends is what is here.
    return cast("types.ServerNotification", _News(params=_Params.model_validate(dict(params))))
