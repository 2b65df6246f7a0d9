"""The connections, their limits, and what becomes of their errors."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from octavo.core.errors import SourceUnavailable

try:
    from redis import exceptions
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
except ImportError:  # said when it is opened
    Redis = None  # type: ignore[assignment,misc]

logger = logging.getLogger(__name__)

T = TypeVar("T")
MOST: Final = 16  # connections of one process, without the one that listens
AWAY: Final = "What is shared cannot be reached now"


class Link:
    """`url` is told to the driver alone. Nothing is sent twice by itself but what only reads: whether the first was
    done is not known."""

    def __init__(self, url: str, *, name: str, patience: float) -> None:
        if Redis is None:
            raise SourceUnavailable("kind: redis needs the extra redis: install octavo[redis]")
        if not name.isprintable() or not name or set(name) & set("{} "):
            raise SourceUnavailable("The name under which things are shared has to be a word without braces")
        self.prefix, self.patience = f"{{{name}}}:", patience
        self._url = url
        self._client = self._connecting(MOST)
        self._scripts: dict[str, Any] = {}

    async def open(self) -> None:
        try:
            await self.run(lambda: self._client.ping())
        except (TypeError, ValueError):  # an option of the address that the driver does not know
            raise _no_address() from None

    async def close(self) -> None:
        await self._closed(self._client)

    async def script(self, text: str, keys: Sequence[str], values: Sequence[str | bytes | int]) -> Any:
        script = self._scripts.get(text)
        if script is None:
            script = self._scripts[text] = self._client.register_script(text)
        return await self.run(lambda: script(keys=[self.prefix + key for key in keys], args=list(values)))

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self.reading(lambda: self._client.get(self.prefix + key))
        return value

    async def tell(self, stream: str, fields: dict[str, bytes], *, most: int) -> None:
        work: Callable[[], Any] = lambda: self._client.xadd(  # noqa: E731
            self.prefix + stream, fields, maxlen=most, approximate=True
        )
        await self.run(work)

    async def told(self, stream: str) -> AsyncGenerator[dict[bytes, bytes] | None]:
        """None when nothing that is told from then on is missed, and then what is told. On a connection of its own."""
        client, name = self._connecting(1), self.prefix + stream
        wait = max(1, int(self.patience * 500))
        try:
            rows: Any = await self.run(lambda: client.xrevrange(name, count=1))
            last = rows[0][0] if rows else b"0-0"
            yield None
            while True:
                found: Any = await self.run(partial(client.xread, {name: last}, count=1_000, block=wait))
                for number, fields in [row for _, rows in found or () for row in rows]:
                    last = number
                    yield fields
        finally:
            await self._closed(client)

    async def reading(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self.run(work)
        except _Gone:
            return await self.run(work)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self._translated(), asyncio.timeout(self.patience):
            return await work()

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        try:
            yield
        except (TimeoutError, exceptions.TimeoutError):
            raise SourceUnavailable(f"What is shared did not answer within {self.patience:g} s") from None
        except (exceptions.ConnectionError, OSError) as error:
            if isinstance(error, exceptions.AuthenticationError) or isinstance(
                error.__cause__, exceptions.AuthenticationError
            ):
                raise SourceUnavailable("What is shared refuses the user or the password of its address") from None
            logger.debug("Redis: %s", type(error).__name__)
            raise _Gone(AWAY) from None
        except exceptions.RedisError as error:
            logger.warning("Redis refused what was asked: %s", type(error).__name__)
            raise SourceUnavailable(f"{AWAY}: it says {type(error).__name__}") from None

    async def _closed(self, client: Any) -> None:
        with suppress(TimeoutError, OSError, exceptions.RedisError):
            async with asyncio.timeout(self.patience):
                await client.aclose(close_connection_pool=True)

    def _connecting(self, most: int) -> Any:
        limit = self.patience
        try:
            pool = BlockingConnectionPool.from_url(
                self._url, max_connections=most, timeout=limit, socket_timeout=limit, socket_connect_timeout=limit,
                retry=Retry(NoBackoff(), 0), protocol=2, decode_responses=False,
            )  # fmt: skip
        except (ValueError, TypeError, exceptions.RedisError):  # says what stands in the address
            raise _no_address() from None
        return Redis.from_pool(pool)


class _Gone(SourceUnavailable):
    """The connection was lost, or never made."""


def _no_address() -> SourceUnavailable:
    return SourceUnavailable("The address of what is shared is no Redis address")


def milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1_000))
