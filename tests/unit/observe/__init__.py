"""Tests of the sinks for observations."""
