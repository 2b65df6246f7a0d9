"""What only shows when the parts of a configuration are seen together."""
