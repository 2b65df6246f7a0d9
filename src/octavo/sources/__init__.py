"""Everything readable: one module or folder a kind, all passing the same suite."""
