"""A git repository on this machine: its objects, its references, and what a branch has gone through."""
