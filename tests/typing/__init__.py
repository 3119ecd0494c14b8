"""What mypy accepts and refuses of code over the library."""
