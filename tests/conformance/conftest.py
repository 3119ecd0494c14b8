"""The embedded engine as a target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .targets import InProcess


@pytest.fixture
def engine() -> Iterator[InProcess]:
    """A fresh embedded engine in memory."""
    from solotable.engines import sqlite

    opened: Any = sqlite.open(":memory:")
    try:
        yield InProcess(opened)
    finally:
        opened.close()
