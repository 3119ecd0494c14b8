"""Rendering: the records of a site in, the bytes of its files out, without a clock or a network."""
