"""The command line: a command parses, calls the library and prints. Nothing is decided here."""

from .main import main

__all__ = ["main"]
