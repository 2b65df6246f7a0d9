"""The audit log: written in chains of files, verified, queried, exported, and kept for as long as it must be."""
