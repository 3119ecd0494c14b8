"""Measurements over the wire: servers, load and results."""
