"""Tests of the parts of `solotable.sync` that need no table."""
