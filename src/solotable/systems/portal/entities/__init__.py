"""What the portal stores."""
