"""Programs that the configuration lists, run for callers. The only room of the server that starts programs for them."""
