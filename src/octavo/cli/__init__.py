"""The command line."""

import gc
import os
import sys
from io import TextIOWrapper


def main() -> None:
    _open_missing()
    # Thousands of objects are made while modules load, and none of them is garbage: collecting in between
    # is a tenth of the time until the first answer. Whoever serves turns it on again.
    gc.disable()
    # The same for pydantic's search of all installed packages for plugins; and nobody's shall see our messages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is escaped
    from octavo.cli.group import octavo  # here, so that importing the package costs nothing

    octavo(prog_name="octavo")


def _open_missing() -> None:
    """The null device where stdin, stdout or stderr is closed: else the next file that is opened would take its number,
    and be written to as if it were the terminal."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, which is this one. Programs that are started inherit it, as they do the others.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
