"""Further names of tools, and the tools that they stand for: a rule on one of those holds for them too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SEED: Final[Mapping[str, str]] = {
    "file-reader": "read",
    "readFile": "read",
    "writeFile": "write",
    "createDirectory": "create_directory",
    "deleteFile": "delete",
}
FILESYSTEM: Final[Mapping[str, str]] = {
    "read_file": "read",
    "read_text_file": "read",
    "read_media_file": "read",
    "read_multiple_files": "read",
    "write_file": "write",
    "edit_file": "edit",
    "create_directory": "create_directory",
    "list_directory": "list",
    "list_directory_with_sizes": "list",
    "directory_tree": "list",
    "move_file": "move",
    "search_files": "search",
    "get_file_info": "info",
}
