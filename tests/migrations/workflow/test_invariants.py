"""The invariants of a migration hold in random worlds of writers, faults, kills and switches."""

from __future__ import annotations

import os

import pytest

from .lab import Lab
from .simulation import Simulation

#: More worlds are in `tests/torture/test_migration.py`.
SEEDS = range(8) if os.environ.get("TORTURE") == "long" else (0, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_write_is_lost_and_none_returns_from_the_dead(here: Lab, seed: int) -> None:
    Simulation(here, seed).run()
