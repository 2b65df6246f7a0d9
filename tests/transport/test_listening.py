"""The real program on a unix socket, with a certificate, and behind a proxy (T7, A8)."""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from tests.gate.doors import modern_headers
from tests.gate.twins import META
from tests.security.issuer import RESOURCE, ec_key, issuer
from tests.transport.processes import LIMIT, post, until

from octavo.app.listeners import listen
from octavo.config.units import Bind, parse_bind
from octavo.core.errors import SourceUnavailable

pytestmark = pytest.mark.seed("A8", "T7")

KEY = "key-of-brand-000"
BODY: dict[str, Any] = {
    "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mem://one", "_meta": META},
}  # fmt: skip
RAW = json.dumps(BODY).encode()
CONFIG = """
sources: {{mem: {{kind: memory, scheme: mem, resources: {{one: {{text: content}}}}}}}}
agents: {{brand: {{key: "${{BRAND_KEY}}"}}, person: {{}}}}
policy: [{{who: [brand, person, "company:alice"], may: [read], what: "**"}}]
serve: {{http: {{{http}}}}}
"""


@contextmanager
def serving(folder: Path, bind: str, http: str = "", *, log: str = "warning") -> Iterator[str]:
    """The address that the program tells. It must end well. What it logs stands in `log` afterwards."""
    (folder / "octavo.yaml").write_text(CONFIG.format(http=http), encoding="utf-8")
    command = [sys.executable, "-m", "octavo", "serve", "--config", str(folder / "octavo.yaml"), "--http", bind]
    command += ["--log-level", log]
    environment = {**os.environ, "BRAND_KEY": KEY}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment) as process:
        assert process.stderr is not None
        told = ""
        try:
            for line in process.stderr:
                told += line
                if "serving MCP at " in line:
                    yield line.split("serving MCP at ")[1].strip()
                    break
            process.send_signal(signal.SIGTERM)
            told += process.stderr.read()
            (folder / "log").write_text(told, encoding="utf-8")
            assert process.wait(timeout=LIMIT) == 0 and "Traceback" not in told, told
        finally:
            process.kill()


def exchange(connected: socket.socket, key: str | None, *more: tuple[str, str]) -> str:
    with connected:
        connected.settimeout(LIMIT)
        headers = [*modern_headers(BODY, key), *more, ("Connection", "close")]
        connected.sendall(post(RAW, headers, 1))
        return until(connected, b"nothing can hold this").decode()


def over(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(LIMIT)
    made.connect(path)
    return made


@pytest.mark.slow
def test_on_a_unix_socket_the_kernel_says_who_asks(tmp_path: Path) -> None:
    path = tmp_path / "o.sock"
    with serving(tmp_path, f"unix:{path}", f"peers: [{{uid: {os.getuid()}, agent: person}}]") as address:
        assert address == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for key, status in ((None, 200), (KEY, 200), ("wrong", 401)):
            reply = exchange(over(str(path)), key)
            assert reply.startswith(f"HTTP/1.1 {status}") and ("content" in reply.partition("\r\n\r\n")[2]) is (
                status == 200
            )
    audit = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / ".octavo" / "audit").iterdir())
    assert '"who":"person"' in audit and '"who":"brand"' in audit and KEY not in audit
    with serving(tmp_path, f"unix:{path}"):  # what the first one left does not stand in the way
        assert exchange(over(str(path)), None).startswith("HTTP/1.1 401")


def test_a_socket_that_is_used_or_is_none_is_left_alone(tmp_path: Path) -> None:
    bind = parse_bind(f"unix:{tmp_path / 'o.sock'}")
    with listen(bind, shared=True), pytest.raises(SourceUnavailable, match="in use"):
        assert stat.S_IMODE((tmp_path / "o.sock").stat().st_mode) == 0o666
        listen(bind)
    listen(bind).close()  # left behind, and taken over
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="exists"):
        listen(parse_bind(f"unix:{tmp_path / 'file'}"))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("text", ["unix:", "unix:relative", "unix:/" + "x" * 200, "unix:/folder/", "unix:/a\0b"])
def test_what_is_no_socket_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        parse_bind(text)


def test_a_socket_is_on_this_machine() -> None:
    bind = parse_bind("unix:/run/octavo.sock")
    assert bind == Bind("unix:/run/octavo.sock", 0) and str(bind) == "unix:/run/octavo.sock"
    assert bind.loopback and bind.socket == "/run/octavo.sock" and parse_bind("127.0.0.1:1").socket is None


def certificate(folder: Path) -> tuple[Path, Path]:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "octavo")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, ec_key().public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(ec_key(), hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        ec_key().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert, key


@pytest.mark.slow
def test_with_a_certificate_nothing_is_served_in_the_clear(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    with serving(tmp_path, "127.0.0.1:0", "tls: {cert: cert.pem, key: key.pem}") as address:
        assert address.startswith("https://127.0.0.1:")
        port = int(address.split(":")[2].partition("/")[0])
        trusting = ssl.create_default_context(cafile=cert)
        plain = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
        reply = exchange(trusting.wrap_socket(plain, server_hostname="127.0.0.1"), KEY)
        assert reply.startswith("HTTP/1.1 200") and "content" in reply
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as clear:
            clear.sendall(post(RAW, modern_headers(BODY, KEY), port))
            assert b"content" not in clear.recv(1 << 16)


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [False, True])
def test_forwarded_headers_are_believed_of_trusted_addresses_only(tmp_path: Path, trusted: bool) -> None:
    """They tell the audit log from where; they never say who, and never which Host was meant."""
    http = "trusted_proxies: [127.0.0.0/8]" if trusted else ""
    told = [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.example")]
    with serving(tmp_path, "127.0.0.1:0", http) as address:
        port = int(address.split(":")[2].partition("/")[0])
        for key, status in ((KEY, 200), ("wrong", 401), (None, 401)):
            connected = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
            assert exchange(connected, key, *told).startswith(f"HTTP/1.1 {status}")
    audit = "".join(file.read_text(encoding="utf-8") for file in (tmp_path / ".octavo" / "audit").iterdir())
    assert ('"from":"192.0.2.7"' in audit) is trusted
    assert ('"from":"127.0.0.1"' in audit) is not trusted


@pytest.mark.slow
def test_credentials_are_in_no_log_and_in_no_file(tmp_path: Path) -> None:
    """At its most talkative, for good ones and bad ones; behind the second wall, where the kernel has it."""
    with issuer() as made:
        http = f"oauth: {{resource: {RESOURCE}, issuers: {{company: {{issuer: '{made.url}'}}}}}}"
        good, bad = made.token(), made.token(aud="https://other.example")
        with serving(tmp_path, "127.0.0.1:0", http, log="debug") as address:
            port = int(address.split(":")[2].partition("/")[0])
            for credential, status in ((good, 200), (good, 200), (bad, 401), (KEY, 200), (f"{KEY}-not", 401)):
                connected = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
                assert exchange(connected, credential).startswith(f"HTTP/1.1 {status}")
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"company:alice" in body for body in written) and (tmp_path / "log").stat().st_size > 1000
    for secret in (good.split(".")[1], good.split(".")[2], bad.split(".")[1], bad.split(".")[2], KEY):
        assert not any(secret.encode() in body for body in written)
