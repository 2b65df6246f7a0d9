"""KeyValue, Bus and Lease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Any, Final

from octavo.core.ports.stores import LARGEST_COUNT, Bus, Counted, Held, Hint, KeyValue, Lease, Pair, Shared
from octavo.stores._shared.bounds import (
    beyond,
    check_count,
    check_hint,
    check_key,
    check_life,
    check_limit,
    check_prefix,
    check_value,
    no_count,
    too_far,
)
from octavo.stores._shared.relay import Relay
from octavo.stores.redis import scripts
from octavo.stores.redis.link import Link, milliseconds

KEPT: Final = 1_000  # hints, about
STREAM: Final = "bus"


class Keys(KeyValue):
    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        return await self._link.get(f"v:{key}")

    async def set(self, key: str, value: bytes, *, expires: float | None = None) -> None:
        check_key(key)
        check_value(value)
        check_life(expires)
        await self._change(scripts.SET, key, value, _life(expires))

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, expires: float | None = None
    ) -> bool:
        check_key(key)
        check_value(value or b"")
        check_life(expires)
        before = ("0", b"") if expected is None else ("1", expected)
        after = ("0", b"") if value is None else ("1", value)
        return bool(await self._change(scripts.COMPARE_AND_SET, key, *before, *after, _life(expires)))

    async def increment(self, key: str, by: int = 1, *, window: float) -> Counted:
        check_key(key)
        check_count(by)
        check_life(window)
        counted = await self._change(scripts.INCREMENT, key, by, milliseconds(window), LARGEST_COUNT)
        if counted == b"no count":
            raise no_count()
        if counted == b"too far":
            raise too_far()
        total, left = counted
        return Counted(int(total), min(window, max(0, left) / 1_000))

    async def delete(self, key: str) -> bool:
        check_key(key)
        return bool(await self._change(scripts.DELETE, key))

    async def scan(self, prefix: str, *, after: str = "", limit: int = 1_000) -> Sequence[Pair]:
        check_prefix(prefix)
        check_prefix(after)
        check_limit(limit)
        start = f"({after}" if after >= prefix and after else f"[{prefix}" if prefix else "-"
        asked = (f"{self._link.prefix}v:", start, f"({beyond(prefix)}", limit)
        found = await self._link.reading(lambda: self._link.script(scripts.SCAN, ("i", "e"), asked))
        return [Pair(key.decode(), value) for key, value in zip(found[::2], found[1::2], strict=True)]

    async def _change(self, script: str, key: str, *values: str | bytes | int) -> Any:
        return await self._link.script(script, (f"v:{key}", "i", "e"), (key, f"{self._link.prefix}v:", *values))


class Leases(Lease):
    def __init__(self, link: Link) -> None:
        self._link = link

    async def acquire(self, name: str, *, ttl: float) -> Held | None:
        check_key(name)
        check_life(ttl)
        fence = await self._link.script(scripts.ACQUIRE, (f"l:{name}", "f"), (milliseconds(ttl),))
        return None if fence is None else Held(name, int(fence))

    async def renew(self, held: Held, *, ttl: float) -> bool:
        check_life(ttl)
        return bool(await self._link.script(scripts.RENEW, (f"l:{held.name}",), (held.fence, milliseconds(ttl))))

    async def release(self, held: Held) -> None:
        await self._link.script(scripts.RENEW, (f"l:{held.name}",), (held.fence, 0))

    async def holds(self, held: Held) -> bool:
        return await self._link.get(f"l:{held.name}") == b"%d" % held.fence


class RedisBus(Bus):
    """One stream for all topics: who listens has one connection, whatever it listens to."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.relay = Relay(self._run)

    async def publish(self, topic: str, body: bytes = b"") -> None:
        check_key(topic)
        check_hint(body)
        await self._link.tell(STREAM, {"t": topic.encode(), "b": body}, most=KEPT)

    def listen(self, *topics: str) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        return self.relay.listen(topics)

    async def _run(self, ready: Callable[[], None]) -> None:
        async with aclosing(self._link.told(STREAM)) as told:
            async for fields in told:
                if fields is None:
                    ready()
                    continue
                try:
                    self.relay.tell(Hint(fields[b"t"].decode(), fields[b"b"]))
                except (KeyError, UnicodeDecodeError):  # of a stranger
                    continue


class RedisShared(Shared):
    """Everything stands under `name`. `patience` is how long any call may take, in seconds."""

    def __init__(self, url: str, *, name: str = "octavo", patience: float = 5.0) -> None:
        self._link = Link(url, name=name, patience=patience)
        self._keys, self._leases, self._bus = Keys(self._link), Leases(self._link), RedisBus(self._link)

    async def __aenter__(self) -> RedisShared:
        try:
            await self._link.open()
        except BaseException:
            await self._link.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._bus.relay.close()
        await self._link.close()

    @property
    def keys(self) -> KeyValue:
        return self._keys

    @property
    def leases(self) -> Lease:
        return self._leases

    @property
    def bus(self) -> Bus:
        return self._bus


def _life(expires: float | None) -> str:
    return "" if expires is None else str(milliseconds(expires))
