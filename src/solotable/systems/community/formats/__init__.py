"""Formats of input: names, links, record keys and content ids."""
