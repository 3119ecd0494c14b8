"""Engines for tests: recording and faulty."""
