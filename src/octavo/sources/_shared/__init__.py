"""What several kinds of sources need, and nothing that knows one of them."""
