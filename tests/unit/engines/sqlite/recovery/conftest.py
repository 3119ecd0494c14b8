"""A file with a table that has continuous backups for one day."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.tables import table
from tests.unit.engines.sqlite.clocked import Clock, opened

from .past import recovery


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> Path:
    path = tmp_path / "things.db"
    with opened(path, clock) as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        engine.call("UpdateContinuousBackups", recovery("Things", RecoveryPeriodInDays=1))
    return path
