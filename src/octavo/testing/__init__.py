"""What a source author needs for tests; shipped in the wheel."""
