"""The floor: the same constant answer to every request. What remains is the pipe, Python and finding the id.

python floor.py DIR
"""

import json
import os
import re
import sys
from pathlib import Path

ID = re.compile(rb'"id":(\d+)')
FILES = sorted(Path(sys.argv[1]).iterdir())
MIME = "text/markdown"


def result(value: object) -> bytes:
    return b',"result":' + json.dumps(value, ensure_ascii=False).encode() + b"}\n"


HEAD = b'{"jsonrpc":"2.0","id":'
INIT = result(
    {
        "protocolVersion": "2025-06-18",
        "capabilities": {"resources": {}},
        "serverInfo": {"name": "bench-floor", "version": "1"},
    }
)
READ = result({"contents": [{"uri": "file://constant", "mimeType": MIME, "text": FILES[0].read_text("utf-8")}]})
LIST = result({"resources": [{"uri": f"file://{f.name}", "name": f.name, "mimeType": MIME} for f in FILES]})


def answer(line: bytes) -> bytes:
    found = ID.search(line)
    if not found:
        return b""
    tail = READ if b"resources/read" in line else LIST if b"resources/list" in line else INIT
    return HEAD + found[1] + tail


rest = b""
while chunk := os.read(0, 1 << 16):
    *lines, rest = (rest + chunk).split(b"\n")
    out = memoryview(b"".join(map(answer, lines)))
    while out:
        out = out[os.write(1, out) :]
