"""Where an HTTP server listens: a port or a unix socket, plain or with a certificate, and under which names."""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
import stat
import sys
from pathlib import Path

from octavo.config.units import Bind
from octavo.core.errors import SourceUnavailable

logger = logging.getLogger(__name__)

BACKLOG = 1024
SPARE = 256  # descriptors for files, sources and whatever else is open


class OwnNames:
    """The Host and Origin headers that mean this server itself."""

    def __init__(self, bind: Bind, *, secure: bool) -> None:
        scheme = "https" if secure else "http"
        names = {"127.0.0.1", "localhost", "[::1]"}
        if bind.socket is None:
            names.add(f"[{bind.host}]" if ":" in bind.host else bind.host)
        self.hosts = [f"{name}:*" for name in sorted(names)]
        if bind.socket is not None:
            self.hosts.append("localhost")  # there is no port to name
        self.origins = [f"{scheme}://{name}:*" for name in sorted(names)]


def listen(bind: Bind, *, shared: bool = False) -> socket.socket:
    """`shared`: other users may connect to a unix socket; the kernel says who they are. Raises SourceUnavailable."""
    try:
        if bind.socket is not None:
            return _listen_unix(bind.socket, 0o666 if shared else 0o600)
        family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
        return socket.create_server((bind.host, bind.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # without Python's own words about the attempt
        taken = error.errno == errno.EADDRINUSE and bind.socket is None
        hint = " (another program has it: choose another port with --port, or make demo PORT=…)" if taken else ""
        raise SourceUnavailable(f"Cannot listen on {bind}: {reason}{hint}") from None


def room_for(connections: int) -> int:
    """As many of them as the system has descriptors for, after it was asked for more."""
    if sys.platform == "win32":
        return connections
    import resource  # not on every system

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < wanted:
        logger.warning("room for %d connections only: the system allows %d descriptors", max(1, soft - SPARE), hard)
    return max(1, min(connections, soft - SPARE))


def forget(bind: Bind) -> None:
    """Takes a unix socket away, if this process still may; the next start takes away what is left."""
    if bind.socket is not None:
        try:
            os.unlink(bind.socket)
        except OSError:
            logger.debug("%s is left for the next start to take away", bind)


def _listen_unix(path: str, mode: int) -> socket.socket:
    _clear(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o777 & ~mode)  # never open to more users, not even for a moment
        try:
            listening.bind(path)
        finally:
            os.umask(before)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _clear(path: str) -> None:
    """Takes away the socket of a process that has ended. Raises OSError if one listens, or it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


class Certificate:
    """A certificate and its key, from files that may be renewed."""

    def __init__(self, cert: Path, key: Path) -> None:
        """Raises SourceUnavailable where they cannot be used."""
        self._cert, self._key = cert, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self._load()
        except OSError as error:
            raise SourceUnavailable(f"The certificate cannot be used: {error.strerror or 'no PEM files'}") from None

    def renew(self) -> None:
        """New connections get what the files hold now; what cannot be used changes nothing."""
        try:
            self._load()
        except OSError as error:
            logger.error("the certificate stays as it is: %s", error.strerror or "no PEM files")

    def _load(self) -> None:
        self.context.load_cert_chain(self._cert, self._key, password=_no_password)


def _no_password() -> str:
    """So that OpenSSL does not ask at the terminal for the one of a key that has one."""
    return ""
