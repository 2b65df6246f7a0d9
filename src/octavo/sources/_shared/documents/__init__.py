"""Documents of others as Markdown: bytes in, text out, in a process that may be killed.

`converter.Converter` is the door. Nothing is imported here: the worker process starts from this package,
and pays for every import.
"""
