"""Routes of the public site."""
