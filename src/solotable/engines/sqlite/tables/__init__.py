"""Table definitions and the layout of the file."""
