"""Tests of comparisons and repairs."""
