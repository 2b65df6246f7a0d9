"""The parameters that addresses of committed files take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PARAMETERS: Final[Mapping[str, str]] = {
    "commit": "as it is in that commit",
    "range": "some of its bytes, such as 0-65535",
}
