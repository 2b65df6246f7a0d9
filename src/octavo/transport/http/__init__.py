"""What is served over HTTP beside the protocol."""
