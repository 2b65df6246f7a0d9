"""Bytes are taken until all are there."""

from __future__ import annotations

import os
import threading

from octavo.core.sizes import BLOCK, exactly


def test_all_bytes_are_taken_however_they_arrive() -> None:
    reads, writes = os.pipe()
    sent = os.urandom(2 * BLOCK + 17)

    def send() -> None:
        left = memoryview(sent)
        while left:
            left = left[os.write(writes, left) :]
        os.close(writes)

    sender = threading.Thread(target=send)
    sender.start()
    assert exactly(reads, len(sent) - 1) == sent[:-1]
    assert exactly(reads, 2) is None  # one was there, and then the end
    sender.join()
    os.close(reads)
