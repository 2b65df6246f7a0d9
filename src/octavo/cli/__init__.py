"""The command line."""

import gc


def main() -> None:
    # Thousands of objects are made while modules load, and none of them is garbage: collecting in between
    # is a tenth of the time until the first answer. Whoever serves turns it on again.
    gc.disable()
    from octavo.cli.group import octavo  # here, so that importing the package costs nothing

    octavo(prog_name="octavo")
