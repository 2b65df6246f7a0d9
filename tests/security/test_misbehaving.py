"""A source or a plugin that misbehaves hurts itself alone: a small run of `tests.security.misbehaving`."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import LIMIT, Said
from tests.security.misbehaving import FAULTY, HARMLESS, KEYS, UNAVAILABLE, laid_out

pytestmark = pytest.mark.seed("A5")

Ask = Callable[[str, dict[str, Any]], Any]


@contextmanager
def served(base: Path, transport: str) -> Iterator[tuple[Ask, Said, Any]]:
    """A real server with every bad source at once, and a good one before them."""
    place = laid_out(base, [*FAULTY, *HARMLESS])
    if transport == "stdio":
        with place.pipe("--config", "octavo.yaml", "--as", "good", cwd=place.root) as pipe:
            yield pipe.ask, pipe.log, None
        assert pipe.process.returncode == 0
    else:
        with place.serve("--config", "octavo.yaml", cwd=place.root) as server:
            asking = server.asking(KEYS["good"])
            yield lambda method, params: asking.ask(method, params).body, server.log, server
        assert server.process.returncode == 0


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_bad_sources_are_named_and_all_others_answer(tmp_path: Path, transport: str) -> None:
    with served(tmp_path, transport) as (ask, log, server):
        listed: list[str] = []
        named: set[str] = set()
        cursor: dict[str, str] = {}
        while True:
            page = ask("resources/list", dict(cursor))["result"]
            listed += [one["uri"] for one in page["resources"]]
            named |= set(page.get("_meta", {}).get(UNAVAILABLE, ()))
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert sum(uri.startswith("note://") for uri in listed) == 20
        assert named == set(FAULTY)
        assert [uri for uri in listed if uri.startswith("strangers")] == [f"strangers://{k:06}" for k in range(3)]
        for scheme in ("nothing", "types", "large", "exits", "interrupts", "closes", "cancels", "mute", "unopened"):
            for path in ("000001", "twisted"):
                error = ask("resources/read", {"uri": f"{scheme}://{path}"}).get("error", {"data": {}})
                assert path == "twisted" or error["data"]["source"] == scheme
                assert "no such service" not in str(error)
        assert "result" in ask("resources/templates/list", {})
        assert ask("resources/read", {"uri": "note://1.md"})["result"]["contents"][0]["text"].startswith("note 1\n")
        for scheme, words in {**FAULTY, **HARMLESS}.items():
            log.wait_for(rf"{scheme}://.*{words}")
        if server is not None:
            anonymous, operator = server.asking().get("/readyz"), server.asking(KEYS["operator"]).get("/readyz")
            assert (anonymous.status, operator.status) == (200, 200)
            assert anonymous.body == {"status": "ready", "degraded": len(operator.body["sources"])}
            assert set(operator.body["sources"]) == {*FAULTY, *HARMLESS}
            assert re.search(FAULTY["toomany"], operator.body["sources"]["toomany"])
        said = log.text
        for _ in range(3):
            ask("resources/list", {})
        assert log.text.count("entries where at most 100") == said.count("entries where at most 100"), "no flood"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_tool_or_prompt_that_ends_the_program_ends_its_own_call(tmp_path: Path, transport: str) -> None:
    with served(tmp_path, transport) as (ask, _, server):
        for name in ("exit", "interrupt", "close", "cancel", "mute", "untouchable"):
            answer = ask("tools/call", {"name": f"tool_{name}", "arguments": {}})
            assert answer["result"]["isError"], answer
            assert "error" in ask("prompts/get", {"name": f"prompt_{name}"})
            assert "result" in ask("resources/read", {"uri": "note://1.md"})
        if server is not None:
            assert server.asking().get("/readyz").status == 200


def test_a_loop_that_is_held_up_is_said_with_where_and_by_whom(tmp_path: Path) -> None:
    place = laid_out(tmp_path, ["blocks"])
    with place.pipe("--config", "octavo.yaml", "--as", "good", cwd=place.root) as pipe:
        pipe.ask("resources/list")
        pipe.log.wait_for(r"held up for more than 1 s by the source blocks://, at root/bad.py:\d+ list")
        pipe.log.wait_for("went on after")


def test_a_tool_that_holds_up_the_loop_is_named_in_the_log_and_in_readiness(tmp_path: Path) -> None:
    with served(tmp_path, "http") as (ask, log, server):
        assert server is not None
        ask("tools/call", {"name": "tool_blocks", "arguments": {}})
        log.wait_for(r"held up for more than 1 s by the tool tool_blocks, at root/bad.py:\d+ blocking")
        log.wait_for(r"went on after [\d.]+ s by the tool tool_blocks, at root/bad.py:\d+ blocking")
        told = server.asking(KEYS["operator"]).get("/readyz").body["sources"]
        assert "held up the event loop" in told["tool tool_blocks"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_operator_can_still_end_the_server(tmp_path: Path, transport: str) -> None:
    """Ctrl-C is no fault of the source whose code runs when it comes."""
    place = laid_out(tmp_path, ["hangs", "interrupts"])
    if transport == "stdio":
        with place.pipe("--config", "octavo.yaml", "--as", "good", cwd=place.root) as pipe:
            assert "error" in pipe.ask("resources/read", {"uri": "interrupts://a"})
            pipe.tell(pipe.request("resources/read", {"uri": "hangs://a"}))
            assert "result" in pipe.ask("resources/read", {"uri": "note://1.md"})
            pipe.process.send_signal(signal.SIGINT)
            assert pipe.process.wait(LIMIT) == 130
    else:
        with place.serve("--config", "octavo.yaml", cwd=place.root) as server:
            assert "error" in server.asking(KEYS["good"]).ask("resources/read", {"uri": "interrupts://a"}).body
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(LIMIT) == 130


def test_without_uvloop_it_says_so_and_goes_on(tmp_path: Path) -> None:
    place = laid_out(tmp_path, [])
    (tmp_path / "lack").mkdir()
    (tmp_path / "lack" / "uvloop.py").write_text("raise ImportError('no uvloop')\n", encoding="utf-8")
    before = place.environment.get("PYTHONPATH")
    place.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(tmp_path / "lack"), before)))
    with place.pipe("--config", "octavo.yaml", "--as", "good", cwd=place.root) as pipe:
        assert "result" in pipe.ask("resources/read", {"uri": "note://1.md"})
        pipe.log.wait_for("uvloop is not installed")


def test_doctor_names_what_is_wrong_with_a_source(tmp_path: Path) -> None:
    place = laid_out(tmp_path, ["toomany", "strangers", "unopened"])
    done = place.run("doctor", "--config", "octavo.yaml", cwd=place.root)
    assert done.returncode == 1
    assert re.search(f"PROBLEM  source: toomany does not answer: .*{FAULTY['toomany']}", done.stdout)
    assert re.search(f"PROBLEM  source: unopened does not answer: .*{FAULTY['unopened']}", done.stdout)
    assert re.search(f"less     source: strangers answers, but: .*{HARMLESS['strangers']}", done.stdout)
    assert "Traceback" not in done.stderr
