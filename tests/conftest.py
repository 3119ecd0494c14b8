"""Options and profiles for the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

# No deadline: a busy machine is not a failing property.
settings.register_profile("quick", max_examples=100, deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=("engine", "local", "both"),
        default="engine",
        help="what the conformance cases are played on: the engine (default), DynamoDB Local, or both",
    )
