"""A small runner for the shipped suites: one test of a suite against one source, without a pytest of its own."""

import asyncio
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Runner = Callable[[Any, Callable[[], Any], str], list[str]]


def cases(suite: type, test: str) -> Iterator[dict[str, Any]]:
    """The arguments of each parametrised case of a test."""
    marks = [*getattr(getattr(suite, test), "pytestmark", ())]
    for cls in suite.__mro__:
        own = cls.__dict__.get("pytestmark", [])
        marks += own if isinstance(own, list) else [own]
    axes = [[(mark.args[0], value) for value in mark.args[1]] for mark in marks if mark.name == "parametrize"]
    for choice in itertools.product(*axes):
        yield dict(choice)


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> Runner:
    """`failures(suite, make_source, test)`: the complaints of that test, one a case that failed."""

    def run(suite: Any, make: Callable[[], Any], test: str) -> list[str]:
        suite.make = make
        method = getattr(suite, test)
        complaints: list[str] = []
        for arguments in cases(type(suite), test):
            caplog.clear()
            if "caplog" in inspect.signature(method).parameters:
                arguments["caplog"] = caplog
            if "kind" in inspect.signature(method).parameters:
                arguments["kind"] = suite.record()

            async def case(arguments: dict[str, Any] = arguments) -> None:
                reply = method(make(), **arguments)
                if inspect.isawaitable(reply):
                    await reply

            try:
                asyncio.run(case())
            except pytest.skip.Exception:
                continue
            except BaseException as error:  # a mutant may raise anything
                complaints.append(f"{type(error).__name__}: {error}")
        return complaints

    return run


@pytest.fixture
def tests_of() -> Callable[[type], list[str]]:
    return lambda suite: [name for name in dir(suite) if name.startswith("test_")]
