"""The embedded engine as a target: in process, and behind its own server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving import served

from .targets import InProcess
from .through_boto3 import Boto3


@pytest.fixture
def engine() -> Iterator[InProcess]:
    """A fresh embedded engine in memory."""
    from solotable.engines import sqlite

    opened: Any = sqlite.open(":memory:")
    try:
        yield InProcess(opened)
    finally:
        opened.close()


@pytest.fixture
def engine_of_2025() -> Iterator[InProcess]:
    """The same with the error texts that AWS had in 2025."""
    from solotable.engines import sqlite

    opened: Any = sqlite.open(":memory:", error_texts="2025")
    try:
        yield InProcess(opened)
    finally:
        opened.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Boto3]:
    """`solotable serve --memory`, one per worker, asked through boto3."""
    with served("--memory") as running:
        target = Boto3(running.port)
        yield target
        target.close()
        # Were boto3 to send nothing as the cases say it, nothing would be proved.
        assert not target.sent or target.sent["boto3"] > target.sent["plain"], target.sent
