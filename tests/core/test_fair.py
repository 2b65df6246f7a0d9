"""Pools in turns. Requirements A5, T9: of those who wait, nobody waits for all that another has asked before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from octavo.core.errors import RateLimited
from octavo.core.fair import Claim, FairQueue, FairThreads, in_thread, on_behalf_of

pytestmark = [pytest.mark.anyio, pytest.mark.seed("A5", "T9")]


def task_of(who: str | Claim, work: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
    async def working() -> Any:
        return await work()

    claim = who if isinstance(who, Claim) else Claim(who)
    return asyncio.get_running_loop().create_task(working(), context=on_behalf_of(claim))


async def turn_of_the_loop() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


class Pool:
    """Who was let in, in order. Each stays until somebody lets the next go."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.served: list[str] = []
        self._inside: list[asyncio.Event] = []

    def ask(self, who: str | Claim, name: str = "") -> asyncio.Task[None]:
        async def work() -> None:
            async with self._queue.turn():
                leave = asyncio.Event()
                self._inside.append(leave)
                self.served.append(name or str(who))
                await leave.wait()

        return task_of(who, work)

    def let_go(self) -> None:
        self._inside.pop(0).set()

    async def go_on(self, count: int = 1) -> None:
        for _ in range(count):
            self.let_go()
            await turn_of_the_loop()


async def test_of_a_hundred_and_one_waiting_the_one_is_among_the_next_two() -> None:
    pool = Pool(FairQueue(1, "workers"))
    asked = [pool.ask("hostile") for _ in range(101)]
    await turn_of_the_loop()
    asked.append(pool.ask("polite"))
    await turn_of_the_loop()
    assert pool.served == ["hostile"]
    await pool.go_on(2)
    assert "polite" in pool.served[1:3]
    await pool.go_on(100)
    await asyncio.gather(*asked)


async def test_all_who_wait_come_one_after_the_other() -> None:
    pool = Pool(FairQueue(1, "workers"))
    asked = [pool.ask(who) for who in [*"aaaa", *"bbb", *"c"]]
    await turn_of_the_loop()
    await pool.go_on(8)
    assert "".join(pool.served) == "aabcabab"
    await asyncio.gather(*asked)


async def test_whoever_has_a_place_leaves_the_spare_ones_to_others() -> None:
    pool = Pool(FairQueue(3, "workers", spare=1))
    asked = [pool.ask("hostile") for _ in range(10)]
    await turn_of_the_loop()
    assert pool.served == ["hostile"] * 2
    asked.append(pool.ask("polite"))
    await turn_of_the_loop()
    assert pool.served[2:] == ["polite"]
    await pool.go_on(11)
    await asyncio.gather(*asked)
    assert len(pool.served) == 11


async def test_more_than_may_wait_is_refused_to_this_caller_alone() -> None:
    pool = Pool(FairQueue(1, "workers", waiting=5))
    asked = [pool.ask("hostile") for _ in range(6)]
    await turn_of_the_loop()
    with pytest.raises(RateLimited) as refused:
        await pool.ask("hostile")
    assert refused.value.data["limit"] == "workers"
    asked.append(pool.ask("polite"))
    await turn_of_the_loop()
    await pool.go_on(7)
    await asyncio.gather(*asked)


async def test_work_that_two_wait_for_takes_whichever_turn_comes_first() -> None:
    pool, shared = Pool(FairQueue(1, "workers")), Claim("hostile")
    asked = [pool.ask("hostile") for _ in range(100)]
    await turn_of_the_loop()
    asked.append(pool.ask(shared, "shared"))
    await turn_of_the_loop()
    shared.share("polite")
    await pool.go_on(2)
    assert "shared" in pool.served[1:3]
    await pool.go_on(99)
    await asyncio.gather(*asked)
    assert len(pool.served) == 101


async def test_who_gives_up_while_waiting_holds_up_nobody() -> None:
    pool = Pool(FairQueue(1, "workers"))
    first, gone, last = pool.ask("a"), pool.ask("b"), pool.ask("c")
    await turn_of_the_loop()
    gone.cancel()
    await pool.go_on(1)
    assert pool.served == ["a", "c"]
    await pool.go_on(1)
    await asyncio.gather(first, last)


async def test_a_turn_that_comes_in_the_moment_of_giving_up_goes_to_the_next() -> None:
    pool = Pool(FairQueue(1, "workers"))
    first, gone, last = pool.ask("a"), pool.ask("b"), pool.ask("c")
    await turn_of_the_loop()
    pool.let_go()
    await asyncio.sleep(0)
    gone.cancel()
    await turn_of_the_loop()
    assert pool.served == ["a", "c"]
    await pool.go_on(1)
    await asyncio.gather(first, last)


async def test_a_thread_that_nobody_waits_for_any_more_is_not_given_out_again() -> None:
    threads = FairThreads(1, "files")
    inside, leave, order = threading.Event(), threading.Event(), list[str]()

    def hangs() -> None:
        inside.set()
        assert leave.wait(30)

    given_up = task_of("hostile", lambda: threads.run(hangs))
    await asyncio.to_thread(inside.wait, 30)
    given_up.cancel()
    waiting = [task_of("hostile", lambda: threads.run(order.append, "hostile")) for _ in range(100)]
    await turn_of_the_loop()
    waiting.append(task_of("polite", lambda: threads.run(order.append, "polite")))
    await turn_of_the_loop()
    assert order == []
    leave.set()
    await asyncio.gather(*waiting)
    assert "polite" in order[:2]
    threads.shutdown()


async def test_short_work_shares_threads_in_turns() -> None:
    inside, leave, order = threading.Semaphore(0), threading.Semaphore(0), list[str]()

    def holds() -> None:
        inside.release()
        assert leave.acquire(timeout=30)

    held = [task_of(who, lambda: in_thread(holds)) for who in "abcd"]
    for _ in held:
        await asyncio.to_thread(inside.acquire)
    waiting = [task_of("hostile", lambda: in_thread(order.append, "hostile")) for _ in range(100)]
    await turn_of_the_loop()
    waiting.append(task_of("polite", lambda: in_thread(order.append, "polite")))
    await turn_of_the_loop()
    leave.release()
    await asyncio.gather(*waiting)
    assert "polite" in order[:2]
    leave.release(3)
    await asyncio.gather(*held)
