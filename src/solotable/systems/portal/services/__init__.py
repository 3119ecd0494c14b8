"""What the portal does."""
