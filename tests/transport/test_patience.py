"""Deadlines hold at every door: on TCP, on a unix socket and behind TLS."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest
from tests.gate.doors import modern_headers
from tests.transport.processes import LIMIT, post, until
from tests.transport.test_listening import BODY, KEY, RAW, certificate, exchange, over, serving

pytestmark = [pytest.mark.slow, pytest.mark.seed("T7", "A8")]

DEADLINES = "deadlines: {headers: 1s, body: 1s, send: 1s}"


def is_closed(connected: socket.socket) -> bool:
    """Waits for it."""
    with connected, suppress(ConnectionError):
        connected.settimeout(LIMIT)
        while connected.recv(65536):
            pass
    return True


def doors(folder: Path, door: str) -> tuple[str, str, Callable[[str], socket.socket]]:
    """Where to listen, with which options, and how to connect to the address that is told."""

    def connect(address: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2].partition("/")[0])), LIMIT)

    if door == "unix":
        path = folder / "o.sock"
        return f"unix:{path}", f"peers: [{{uid: {os.getuid()}, agent: person}}], ", lambda _: over(str(path))
    if door == "tcp":
        return "127.0.0.1:0", "", connect
    cert, key = certificate(folder)
    trusting = ssl.create_default_context(cafile=str(cert))
    options = f"tls: {{cert: {cert}, key: {key}}}, "
    return "127.0.0.1:0", options, lambda address: trusting.wrap_socket(connect(address), server_hostname="127.0.0.1")


@pytest.mark.parametrize("door", ["tcp", "unix", "tls"])
def test_who_is_too_slow_is_sent_away_and_others_are_served(tmp_path: Path, door: str) -> None:
    bind, options, connect = doors(tmp_path, door)
    whole = post(RAW, [*modern_headers(BODY, KEY)], 1)
    with serving(tmp_path, bind, options + DEADLINES) as address:
        slow = [connect(address) for _ in range(3)]
        slow[0].sendall(b"POST /mcp HTTP/1.1\r\nHost: local")
        slow[1].sendall(whole[:-5])  # slow[2] says nothing at all
        assert exchange(connect(address), KEY).startswith("HTTP/1.1 200")
        if door == "unix":
            assert exchange(connect(address), None).startswith("HTTP/1.1 200")
        with slow[1]:
            assert b"408" in until(slow[1], b"nothing can hold this")
        assert all(map(is_closed, (slow[0], slow[2])))
        assert exchange(connect(address), KEY).startswith("HTTP/1.1 200")


def test_who_never_agrees_on_encryption_is_sent_away_too(tmp_path: Path) -> None:
    bind, options, connect = doors(tmp_path, "tls")
    plain = doors(tmp_path, "tcp")[2]
    with serving(tmp_path, bind, options + DEADLINES) as address:
        silent, strange = plain(address), plain(address)
        strange.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert is_closed(strange)
        assert exchange(connect(address), KEY).startswith("HTTP/1.1 200")
        assert is_closed(silent)


def answers(connected: socket.socket) -> bool:
    """And stays open."""
    connected.settimeout(LIMIT)
    connected.sendall(post(RAW, [*modern_headers(BODY, KEY)], 1))
    answer = HTTPResponse(connected)
    answer.begin()
    return answer.status == 200 and b"result" in answer.read()


def test_above_the_number_of_connections_the_longest_idle_of_the_same_address_makes_room(tmp_path: Path) -> None:
    bind, _, connect = doors(tmp_path, "tcp")
    with serving(tmp_path, bind, "connections: 2, deadlines: {headers: 1m}") as address:
        silent = [connect(address) for _ in range(5)]
        assert all(map(is_closed, silent[:3]))
        with silent[3], silent[4]:
            assert answers(silent[4])


def test_no_number_of_connections_of_another_takes_that_of_an_agent(tmp_path: Path) -> None:
    """Before, whoever had all of them kept them, and newcomers were sent away."""
    bind, _, connect = doors(tmp_path, "tcp")
    with serving(tmp_path, bind, "connections: 4, deadlines: {headers: 1m}") as address:
        silent = [connect(address) for _ in range(4)]
        polite = connect(address)
        assert is_closed(silent[0])
        with polite:
            assert answers(polite)
            silent += [connect(address) for _ in range(20)]
            assert all(map(is_closed, silent[1:21]))
            assert answers(polite)
        with silent[21], silent[22], silent[23]:
            assert answers(silent[23])
