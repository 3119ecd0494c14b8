"""Decide where reads and writes go: the routing record, fences, cursors and the steps of a call."""
