"""Refusals of the toolset `filesystem` in the words of the official server, which its clients know.

A model that has used that server looks for `ENOENT` or `Access denied`, so the message begins with them. Kind, number
and data of the error stay what they are, and what to do next follows in brackets. The words hold nothing but what the
caller has sent, and the directories that every caller is told.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from octavo.core.errors import Conflict, Forbidden, InvalidParams, NotFound, OctavoError
from octavo.tools.builtin.answer_budget import Budget, shortened

_PATH: Final = Budget(1000, 500)  # for a path as it was written
_MADE: Final = {"get_file_info": "stat", "create_directory": "mkdir", "move_file": "rename"}
_LISTS: Final = ("list_directory", "list_directory_with_sizes", "directory_tree", "search_files")
_KNOWN: Final = (NotFound, Forbidden, Conflict, InvalidParams)


def in_its_words(error: OctavoError, tool: str, asked: Mapping[str, Any], roots: Sequence[str]) -> OctavoError:
    """The same error, or one of its kind that says what that server would have said."""
    if type(error) not in _KNOWN:
        return error
    path = shortened(str(asked.get("path", asked.get("source", ""))), _PATH)
    words = _words(error, tool, path, asked, roots)
    if words is None:
        return error
    other = copy(error)  # others may be told the first one
    other.message = words if isinstance(error, NotFound) else f"{words} ({error.message})"
    other.args = (other.message,)
    return other


def _words(error: OctavoError, tool: str, path: str, asked: Mapping[str, Any], roots: Sequence[str]) -> str | None:
    made = "scandir" if tool in _LISTS else _MADE.get(tool, "open")
    at = f"{made} '{path}'"
    if tool == "move_file":
        at += f" -> '{shortened(str(asked.get('destination', '')), _PATH)}'"
    if isinstance(error, NotFound):
        return f"ENOENT: no such file or directory, {at}"
    if isinstance(error, Forbidden):
        outside = next((one for one in _paths(asked) if _is_outside(one, roots)), None)
        if outside is None:
            return None
        return (
            f"Access denied - path outside allowed directories: {shortened(outside, _PATH)} not in {', '.join(roots)}"
        )
    if error.data.get("reason") == "is_folder":
        return "EISDIR: illegal operation on a directory, read"
    if isinstance(error, InvalidParams) and made == "scandir" and "uri" in error.data:
        return f"ENOTDIR: not a directory, {at}"
    if isinstance(error, Conflict) and tool == "create_directory":
        return f"EEXIST: file already exists, {at}"
    return None


def _paths(asked: Mapping[str, Any]) -> list[str]:
    return [asked[key] for key in ("path", "source", "destination") if isinstance(asked.get(key), str)]


def _is_outside(path: str, roots: Sequence[str]) -> bool:
    """By its text alone, so that nobody learns what is there."""
    if not roots or not path.startswith("/"):
        return False
    normal = posixpath.normpath(path)
    return not any(normal == root or normal.startswith(f"{root.rstrip('/')}/") for root in roots)
