"""The values and seams that every room shares: the standard library and msgspec, and nothing else."""
