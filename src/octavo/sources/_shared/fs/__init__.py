"""Folders and files of this machine, opened by descriptor: what every kind of source needs that stands on some."""
