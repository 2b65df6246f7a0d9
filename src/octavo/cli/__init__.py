"""The command line."""


def main() -> None:
    from octavo.cli.group import octavo  # here, so that importing the package costs nothing

    octavo(prog_name="octavo")
