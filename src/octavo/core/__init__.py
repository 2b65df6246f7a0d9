"""The values and seams that every room shares. Standard library only."""
