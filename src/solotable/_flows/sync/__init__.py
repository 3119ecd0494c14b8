"""The version log of spaces: what commits write, and what pulls read. Runs no mutators."""
