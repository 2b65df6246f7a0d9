"""What is asked of several stores in the same order is answered by all in the same way: memory is the measure."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.services.fixtures import Service, postgres, valkey

from octavo.core.errors import OctavoError
from octavo.core.ports.stores import LARGEST_COUNT
from octavo.stores.memory import MemoryStore
from octavo.stores.postgres import PostgresStore
from octavo.stores.redis import RedisShared
from octavo.stores.sqlite import SQLiteStore

__all__ = ["postgres", "valkey"]

pytestmark = pytest.mark.anyio

WORDS = ("a", "a/b", "a/c", "a%", "A", "한", "é", "\U0010ffff", "\ud7ff", "\ue000")
VALUES = (b"", b"0", b"-1", b"7", b"07", b"x", b"\x00\xff", b"%d" % LARGEST_COUNT)


class Questions:
    """One after the other, by a seed. Numbers are told by their place among those that one store gave."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)

    def key(self) -> str:
        return "".join(self.choice.choices(WORDS, k=self.choice.randint(1, 2)))

    def of_keys(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        choice, key = self.choice, self.key()
        value = choice.choice(VALUES)
        maybe = choice.choice((None, *VALUES))
        match choice.randrange(7):
            case 0:
                return "get", (key,), {}
            case 1:
                return "set", (key, value), {"expires": choice.choice((None, 600.0))}
            case 2:
                return "compare_and_set", (key, maybe, choice.choice((None, *VALUES))), {}
            case 3:
                return "increment", (key, choice.choice((1, -3, 0, LARGEST_COUNT))), {"window": 600.0}
            case 4:
                return "delete", (key,), {}
            case _:
                prefix = choice.choice(("", *WORDS))
                return "scan", (prefix,), {"after": choice.choice(("", self.key())), "limit": choice.choice((1, 3, 50))}

    async def asked(self, keys: Any, question: tuple[str, tuple[Any, ...], dict[str, Any]]) -> object:
        name, values, named = question
        try:
            reply = await getattr(keys, name)(*values, **named)
        except OctavoError as error:
            return type(error)
        if name == "increment":
            return reply.total
        return [*reply] if name == "scan" else reply


async def compare(store: Any, seed: int, turns: int = 400) -> None:
    memory, questions = MemoryStore(patience=60), Questions(seed)
    async with AsyncExitStack() as stack:
        keys, measure, left = store.keys, memory.keys, 0
        for turn in range(turns):
            if left == 0 and hasattr(store, "transaction"):  # some of them within transactions
                await stack.aclose()
                left, keys, measure = questions.choice.randint(1, 20), store.keys, memory.keys
                if questions.choice.random() < 0.5:
                    keys = (await stack.enter_async_context(store.transaction())).keys
                    measure = (await stack.enter_async_context(memory.transaction())).keys
            left -= 1
            question = questions.of_keys()
            expected = await questions.asked(measure, question)
            assert await questions.asked(keys, question) == expected, (turn, question)
    assert await store.keys.scan("") == await memory.keys.scan("")


async def test_sqlite_answers_as_memory_does(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path, patience=60) as store:
        await compare(store, 11)


async def test_postgres_answers_as_memory_does(postgres: Service) -> None:
    async with PostgresStore(postgres.url, schema=postgres.schema, patience=60) as store:
        await compare(store, 12)


async def test_valkey_answers_as_memory_does(valkey: Service) -> None:
    async with RedisShared(valkey.url, patience=60) as store:
        await compare(store, 13)
