"""Models for a live table: what a sample of its items shows, and the Python file that declares it."""
