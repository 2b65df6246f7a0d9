"""The parameters that addresses of files take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PARAMETERS: Final[Mapping[str, str]] = {
    "root": "which of several roots, for a file that one before it hides",
    "range": "some of its bytes, such as 0-65535",
    "as": "text, or an image: what a document is turned into",
    "pages": "of a PDF that is turned into text",
    "sheet": "of a workbook that is turned into text",
    "bytes": "how large a picture may be",
    "encoding": "in which the text is",
}
IN_ABSOLUTE: Final = tuple(name for name in PARAMETERS if name != "root")  # the address says which root it is
