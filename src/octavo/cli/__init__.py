"""The command line."""

import gc
import os
import sys
from io import TextIOWrapper


def main() -> None:
    # Thousands of objects are made while modules load, and none of them is garbage: collecting in between
    # is a tenth of the time until the first answer. Whoever serves turns it on again.
    gc.disable()
    # The same for pydantic's search of all installed packages for plugins; and nobody's shall see our messages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is escaped
    from octavo.cli.group import octavo  # here, so that importing the package costs nothing

    octavo(prog_name="octavo")
