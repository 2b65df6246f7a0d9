"""A folder as resources on fastmcp, written the way its documentation shows: one `FileResource` a file.

python with_fastmcp.py DIR
"""

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.resources import FileResource

server = FastMCP("bench-fastmcp")
for path in sorted(Path(sys.argv[1]).resolve().iterdir()):
    if path.is_file():
        server.add_resource(FileResource(uri=f"file://{path}", path=path, name=path.name, mime_type="text/markdown"))

server.run(show_banner=False)
