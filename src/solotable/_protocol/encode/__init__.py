"""Requests and replies to wire form."""
