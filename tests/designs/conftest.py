"""The stores of the designs are those of tests/store, on the same targets."""

from __future__ import annotations

from tests.store.conftest import local_engine, opening, pytest_generate_tests, wire_engine

__all__ = ["local_engine", "opening", "pytest_generate_tests", "wire_engine"]
