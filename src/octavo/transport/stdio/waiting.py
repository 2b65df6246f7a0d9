"""Requests of one stdio connection that wait for an earlier one to be answered.

They are held here, not refused and not begun: what comes behind them on the wire (a cancellation, an answer of the
client, a ping) is read all the same, until too much is held.
"""

from __future__ import annotations

from collections import deque

import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id

from octavo.transport.mcp.fast_path import Taken


class WaitingRequests:
    def __init__(self) -> None:
        self._waiting: deque[tuple[Taken, int]] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, taken: Taken, size: int) -> None:
        self._waiting.append((taken, size))
        self.bytes += size

    def pop(self) -> tuple[Taken, int]:
        """The first one."""
        taken, size = self._waiting.popleft()
        self.bytes -= size
        return taken, size

    def withdraw(self, request_id: types.RequestId) -> list[Taken]:
        """Takes back what the client cancelled."""
        wanted = coerce_request_id(request_id)
        gone = [one for one in self._waiting if coerce_request_id(one[0].id) == wanted]
        for one in gone:
            self._waiting.remove(one)
            self.bytes -= one[1]
        return [taken for taken, _ in gone]
