"""Lexer and parser of PartiQL statements."""
