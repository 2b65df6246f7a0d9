"""Tools that ask other machines. They see a `Fetcher` and nothing of the network."""
