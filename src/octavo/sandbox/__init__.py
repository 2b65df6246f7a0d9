"""Programs and the walls around them."""
