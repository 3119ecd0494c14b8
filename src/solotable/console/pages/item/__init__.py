"""One item: read, edit, delete, and its former versions."""
