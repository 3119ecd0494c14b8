"""Tests of solotable.web."""
