"""The one door to the terminal: whoever wrote what is printed, it cannot move the cursor or begin a line of its own."""

from __future__ import annotations

import re
import sys

import click

from octavo.core.printable import visible

_LAYOUT = re.compile(r"([\n\t])")


def out(*lines: str, err: bool = False) -> None:
    """Each is one line, and stays one. All are written at once: whoever reads along sees none half."""
    if lines:
        click.echo("\n".join(map(visible, lines)), err=err)


def notice(message: str, *, begin: str) -> None:
    """On stderr, with the lines that the message has. `begin` is ours, and may have a colour."""
    click.echo(f"{begin}{laid_out(message)}", err=True)


def laid_out(text: str) -> str:
    """A text that has lines and tabs, for a terminal."""
    lines = _LAYOUT.split(text.replace("\r\n", "\n"))
    return "".join(one if one in ("\n", "\t") else visible(one) for one in lines)


def give(body: str | bytes, *, nl: bool = False) -> None:
    """What a resource, a prompt or a tool gives: as it is for a program or a file, escaped at a terminal."""
    if sys.stdout is not None and sys.stdout.isatty():
        body = laid_out(body.decode("utf-8", "backslashreplace") if isinstance(body, bytes) else body)
    elif isinstance(body, str):
        body = body.encode("utf-8", "backslashreplace")
    click.echo(body, nl=nl)
