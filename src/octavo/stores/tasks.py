"""Tasks in the store, `tasks/` and what begins so: each below a digest of whose it is.

What is large rests beside the task: its arguments as long as it is at work, and its outcome from then on. A task is at
work in one process, by whose name it can be found: what a dead one left is taken over once, and only the process that
has it now can end it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from octavo.core.clock import Clock, SystemClock
from octavo.core.errors import RateLimited
from octavo.core.ports.stores import KeyValue, Opens, Pair
from octavo.core.tasks import Ended, Status, StoredTask, Task
from octavo.core.values import Principal
from octavo.stores.presence import Presence

logger = logging.getLogger(__name__)

_TASKS: Final = "tasks/"
_ARGUMENTS: Final = "tasks-arguments/"
_OUTCOMES: Final = "tasks-outcomes/"
_WORKING: Final = "tasks-working/"  # below the name of a process
PAGE: Final = 500


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    who: str
    tool: str
    status: Status
    created: float
    updated: float
    ttl: float
    message: str
    owner: str  # the process in which it is at work
    roles: list[str]
    key: str
    resumes: bool

    @property
    def ends(self) -> float:
        return self.created + self.ttl

    def task(self, outcome: bytes = b"") -> Task:
        return Task(
            id=self.id, who=self.who, tool=self.tool, status=self.status, created=self.created, updated=self.updated,
            ttl=self.ttl, message=self.message, outcome=outcome,
        )  # fmt: skip


class StoredTasks:
    def __init__(self, opens: Opens, presence: Presence, *, clock: Clock | None = None) -> None:
        self._opens, self._presence = opens, presence
        self._wall = (clock or SystemClock()).wall

    async def add(self, kept: StoredTask, *, most: int) -> None:
        task, who, now = kept.task, kept.principal, self._wall()
        await self._presence.begin()
        made = _Kept(
            id=task.id, who=task.who, tool=task.tool, status="working", created=task.created, updated=task.updated,
            ttl=task.ttl, message=task.message, owner=self._presence.name, roles=sorted(who.roles), key=who.key,
            resumes=kept.arguments is not None,
        )  # fmt: skip
        place, left = _place(task), max(1.0, made.ends - now)
        async with (await self._opens()).transaction() as within:
            ends = [one.ends async for _, one in _all(within.keys, f"{_TASKS}{_digest(task.who)}/") if one.ends > now]
            if len(ends) >= most:
                raise RateLimited(
                    "Too many tasks are kept; wait until some of them have expired",
                    retry_after=max(1.0, min(ends) - now),
                    limit="tasks",
                )
            await within.keys.set(_TASKS + place, _ENCODER.encode(made), expires=left)
            await within.keys.set(f"{_WORKING}{made.owner}/{place}", b"", expires=left)
            if kept.arguments is not None:
                await within.keys.set(_ARGUMENTS + place, _ENCODER.encode(kept.arguments), expires=left)

    async def find(self, who: str, task_id: str) -> Task | None:
        keys, place = (await self._opens()).keys, f"{_digest(who)}/{_digest(task_id)}"
        found = await _one(keys, place)
        if found is None or found.who != who or found.id != task_id or found.ends <= self._wall():
            return None
        return found.task(b"" if found.status == "working" else await keys.get(_OUTCOMES + place) or b"")

    async def end(self, task: Task, ended: Ended) -> Task | None:
        place, now = _place(task), self._wall()
        async with (await self._opens()).transaction() as within:
            found = await _one(within.keys, place)
            if found is None or found.status != "working" or found.owner != self._presence.name or found.ends <= now:
                return None
            left = found.ends - now
            over = replace(found, status=ended.status, updated=now, message=ended.message)
            await within.keys.set(_TASKS + place, _ENCODER.encode(over), expires=left)
            await within.keys.set(_OUTCOMES + place, ended.outcome, expires=left)
            await within.keys.delete(_ARGUMENTS + place)
            await within.keys.delete(f"{_WORKING}{found.owner}/{place}")
        return over.task(ended.outcome)

    async def take_over(self) -> Sequence[StoredTask]:
        await self._presence.begin()
        store = await self._opens()
        left: list[StoredTask] = []
        async for owner, places in _by_owner(store.keys):
            if owner == self._presence.name or await self._presence.lives(owner):
                continue
            for begin in range(0, len(places), PAGE):
                async with store.transaction() as within:
                    for place in places[begin : begin + PAGE]:
                        taken = await self._taken(within.keys, owner, place)
                        if taken is not None:
                            left.append(taken)
        return left

    async def _taken(self, keys: KeyValue, owner: str, place: str) -> StoredTask | None:
        """None for one that another process was faster to take."""
        await keys.delete(f"{_WORKING}{owner}/{place}")
        found, now = await _one(keys, place), self._wall()
        if found is None or found.owner != owner or found.status != "working" or found.ends <= now:
            return None
        mine = replace(found, owner=self._presence.name)
        await keys.set(_TASKS + place, _ENCODER.encode(mine), expires=found.ends - now)
        await keys.set(f"{_WORKING}{mine.owner}/{place}", b"", expires=found.ends - now)
        body = await keys.get(_ARGUMENTS + place) if found.resumes else None
        arguments: Mapping[str, Any] | None = None if body is None else msgspec.json.decode(body)
        who = Principal(found.who, frozenset(found.roles), found.key)
        return StoredTask(task=found.task(), principal=who, arguments=arguments)

    async def close(self) -> None:
        await self._presence.close()


async def _by_owner(keys: KeyValue) -> AsyncIterator[tuple[str, list[str]]]:
    """The places of what is at work, by the process that has it."""
    owner, places = "", list[str]()
    async for key, _ in _pairs(keys, _WORKING):
        other, _, place = key.removeprefix(_WORKING).partition("/")
        if other != owner and places:
            yield owner, places
            places = []
        owner = other
        places.append(place)
    if places:
        yield owner, places


async def _all(keys: KeyValue, prefix: str) -> AsyncIterator[tuple[str, _Kept]]:
    async for key, value in _pairs(keys, prefix):
        kept = _read(key, value)
        if kept is not None:
            yield key, kept


async def _pairs(keys: KeyValue, prefix: str) -> AsyncIterator[Pair]:
    after = ""
    while True:
        pairs = await keys.scan(prefix, after=after, limit=PAGE)
        for pair in pairs:
            yield pair
        if len(pairs) < PAGE:
            return
        after = pairs[-1].key


async def _one(keys: KeyValue, place: str) -> _Kept | None:
    value = await keys.get(_TASKS + place)
    return None if value is None else _read(_TASKS + place, value)


def _read(key: str, value: bytes) -> _Kept | None:
    try:
        return _KEPT.decode(value)
    except msgspec.MsgspecError:
        logger.warning("What the store has at %s cannot be read, so it is no task", key)
        return None


def _place(task: Task) -> str:
    return f"{_digest(task.who)}/{_digest(task.id)}"


def _digest(text: str) -> str:
    """Names and handles may be longer than keys. So a handle cannot be read in the keys of the store either."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_ENCODER: Final = msgspec.json.Encoder()
_KEPT: Final = msgspec.json.Decoder(_Kept)
