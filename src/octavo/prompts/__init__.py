"""Prompt files: loading and rendering."""
