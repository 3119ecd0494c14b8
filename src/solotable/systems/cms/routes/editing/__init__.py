"""Routes for editors."""
