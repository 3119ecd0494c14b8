"""The command line. A command parses its arguments, calls the library, and prints the result."""

from .main import main

__all__ = ["main"]
