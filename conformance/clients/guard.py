"""Nothing calls out: a client may connect to this machine alone. Whatever else it tries is refused and noted.

The file to note it in is named by OCTAVO_CALLED_OUT; guard.mjs does the same for Node.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any

_LOCAL = {"localhost", "", None}


def watch() -> None:
    noted = os.environ.get("OCTAVO_CALLED_OUT")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            address = arguments[1]
            host = address[0] if isinstance(address, tuple) else None  # else a socket of the file system
        elif event == "socket.getaddrinfo":
            host = arguments[0]
        else:
            return
        host = host.decode() if isinstance(host, bytes) else host
        if not _local(host):
            if noted:
                with open(noted, "a", encoding="utf-8") as file:
                    file.write(f"{host}\n")
            raise OSError(f"{host} is not this machine")

    sys.addaudithook(hook)


def _local(host: str | None) -> bool:
    if host in _LOCAL:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False
