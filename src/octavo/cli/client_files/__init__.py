"""Files in which MCP clients keep their servers: one entry put in and taken out, and not a byte of the rest changed.

`records` says client by client which file, which key and which shape; `address` which addresses may stand there;
`jsonc` and `toml` change texts by spans;
`place` reads and replaces files; `receipts` keeps what they were; `change` makes one change of all that, and `shown`
says what of it is shown.
"""

HIDDEN = "[hidden]"  # in the place of a value that is not shown


class Left(Exception):
    """A file is left as it is. `sentence` says why, by its key below `install` in the messages."""

    def __init__(self, sentence: str, /, **values: object) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.values = values


class UnreadableFile(Exception):
    """A text that cannot be read as what it should be: what is wrong, in words of its format."""
