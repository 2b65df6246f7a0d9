"""What is shared in Redis keeps the contract, and what it does beyond it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis
from tests.services import engines, fixtures
from tests.services.engines import PASSWORD, Absent
from tests.services.fixtures import Service, empty, valkey

from octavo.core.errors import SourceUnavailable
from octavo.stores.redis import RedisShared
from octavo.testing import Proxy, StoreFaultSuite, StoreSuite
from octavo.testing.base import told
from octavo.testing.proxy import Fault

__all__ = ["valkey"]

pytestmark = pytest.mark.anyio


class TestRedis(StoreSuite):
    secrets = (PASSWORD,)

    @pytest.fixture
    async def store(self, valkey: Service) -> AsyncIterator[RedisShared]:
        self.service = valkey
        async with RedisShared(valkey.url, patience=30) as store:
            yield store

    def another(self, store: Any) -> AbstractAsyncContextManager[RedisShared]:
        return RedisShared(self.service.url, patience=30)


class TestRedisUnderFaults(StoreFaultSuite):
    secrets = (PASSWORD,)

    @pytest.fixture
    async def store(self, valkey: Service) -> AsyncIterator[RedisShared]:
        self.service = valkey
        async with Proxy(str(valkey.socket)) as self.proxy:
            url = valkey.through((self.proxy.host, self.proxy.port))
            async with RedisShared(url, patience=30) as store:
                yield store

    @asynccontextmanager
    async def broken(self, store: RedisShared, fault: Fault) -> AsyncGenerator[None]:
        await self.proxy.break_(fault)
        patience = store._link.patience
        if fault == "hangs":  # else it is given as long as a busy machine may need
            store._link.patience = self.limit
        if fault == "emptied":
            await empty(self.service)
        try:
            yield
        finally:
            store._link.patience = patience
            await self.proxy.mend()


# -- beyond the contract


async def test_two_names_share_nothing(valkey: Service) -> None:
    async with (
        RedisShared(valkey.url, name="one") as one,
        RedisShared(valkey.url, name="two") as two,
        two.bus.listen("feed") as hints,
    ):
        await one.keys.set("key", b"1")
        assert await two.keys.get("key") is None
        assert await two.keys.scan("") == []
        assert await one.leases.acquire("lease", ttl=60) is not None
        assert await two.leases.acquire("lease", ttl=60) is not None
        await one.bus.publish("feed", b"of one")
        await two.bus.publish("feed", b"of two")
        assert await anext(hints) == ("feed", b"of two")


async def test_what_the_service_threw_away_is_absent_and_leaves_no_trace(valkey: Service) -> None:
    async with RedisShared(valkey.url, patience=30) as store, Redis.from_url(valkey.url) as client:
        for number in range(9):
            await store.keys.set(f"key/{number}", b"v")
        await client.delete("{octavo}:v:key/3", "{octavo}:v:key/4")
        assert [pair.key[-1] for pair in await store.keys.scan("key/", limit=4)] == ["0", "1", "2", "5"]
        assert await client.zcard("{octavo}:i") == 7


async def test_keys_that_have_ended_leave_the_list_of_keys(valkey: Service) -> None:
    async with RedisShared(valkey.url, patience=30) as store, Redis.from_url(valkey.url) as client:
        for number in range(20):
            await store.keys.set(f"short/{number}", b"v", expires=0.001)
        for _ in range(1_000):
            await store.keys.set("long", b"v")
            if await client.zcard("{octavo}:i") == 1:
                break
        assert await client.zcard("{octavo}:i") == 1
        assert await client.zcard("{octavo}:e") == 0


async def test_the_stream_of_hints_stays_short(valkey: Service) -> None:
    async with RedisShared(valkey.url, patience=30) as store, Redis.from_url(valkey.url) as client:
        for _ in range(1_500):
            await store.bus.publish("feed")
        assert await client.xlen("{octavo}:bus") < 1_200


async def test_hints_of_strangers_are_passed_over(valkey: Service) -> None:
    async with (
        RedisShared(valkey.url, patience=30) as store,
        Redis.from_url(valkey.url) as client,
        store.bus.listen("feed") as hints,
    ):
        await client.xadd("{octavo}:bus", {"other": b"1"})
        await client.xadd("{octavo}:bus", {"t": b"\xff", "b": b"1"})
        await store.bus.publish("feed", b"ours")
        assert await anext(hints) == ("feed", b"ours")


async def test_a_key_of_another_kind_is_an_error_of_ours(valkey: Service) -> None:
    async with RedisShared(valkey.url, patience=30) as store, Redis.from_url(valkey.url) as client:
        await client.rpush("{octavo}:v:list", b"1")
        with pytest.raises(SourceUnavailable):
            await store.keys.get("list")


async def test_a_wrong_password_is_said_and_not_shown(valkey: Service) -> None:
    wrong = "wrong-horse"
    with pytest.raises(SourceUnavailable, match="refuses the user or the password") as caught:
        async with RedisShared(valkey.url.replace(PASSWORD, wrong)):
            pass
    assert wrong not in told(caught.value)


@pytest.mark.parametrize(
    "url",
    [f"http://:{PASSWORD}@host", PASSWORD, f"redis://:{PASSWORD}@host:port{PASSWORD}/0", f"redis://:{PASSWORD}@[::1/0",
     f"redis://:{PASSWORD}@host/0?socket_timeout={PASSWORD}", f"redis://:{PASSWORD}@host/0?nonsense=1", ""],
)  # fmt: skip
async def test_what_is_no_address_is_said_and_not_shown(url: str) -> None:
    with pytest.raises(SourceUnavailable) as caught:
        async with RedisShared(url, patience=2):
            pass
    assert PASSWORD not in told(caught.value)


async def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be reached"):
        async with RedisShared(f"unix://:{PASSWORD}@{tmp_path}/none.sock"):
            pass


@pytest.mark.slow
async def test_a_valkey_that_is_killed_or_stopped_is_found_again() -> None:
    fixtures.HOME.mkdir(mode=0o711, exist_ok=True)
    try:
        with engines.running("valkey", fixtures.HOME / f"v{os.getpid()}") as server:
            async with (
                RedisShared(f"unix://:{PASSWORD}@{server.address}", patience=30) as store,
                store.bus.listen("feed") as hints,
            ):
                await store.keys.set("kept", b"1")
                held = await store.leases.acquire("lease", ttl=600)
                assert held is not None
                await asyncio.to_thread(server.stop, signal.SIGKILL)
                with pytest.raises(SourceUnavailable):
                    await store.keys.get("kept")
                await asyncio.to_thread(server.start)
                assert await store.keys.get("kept") is None
                again = await store.leases.acquire("lease", ttl=600)
                assert again is not None
                assert again.fence > held.fence, "it was emptied, and numbers grow all the same"
                with anyio.fail_after(30):
                    assert await anext(hints) == ("feed", b""), "hints may have been lost"

                server.send(signal.SIGSTOP)
                store._link.patience = 0.2
                with pytest.raises(SourceUnavailable, match="did not answer"):
                    await store.keys.get("kept")
                server.send(signal.SIGCONT)
                store._link.patience = 30
                await store.keys.set("kept", b"2")
                assert await store.keys.get("kept") == b"2"
    except Absent as error:
        fixtures.absent(str(error))
