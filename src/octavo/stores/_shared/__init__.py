"""What several stores need."""
