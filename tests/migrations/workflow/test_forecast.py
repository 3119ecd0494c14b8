"""The forecast of a copy: it counts the changes that wait for the end of a window, and follows the load."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from solotable._protocol.requests import Request, TransactWriteItems
from solotable.engines import sqlite
from solotable.migrations.worker import Worker

from .lab import Lab, MovableClock

SURVEYS = 500
#: What one action of a transaction takes, by the clock of the test.
SECONDS = 0.3


class StillClock(MovableClock):
    """A clock that only the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.time()

    def __call__(self) -> float:
        return self._began + self.ahead


class Rehearsal:
    """A copy on a clock that each action of a transaction moves."""

    def __init__(self, *, changes: int = 0, seconds: Callable[[float], float]) -> None:
        self.clock = clock = StillClock()
        engines = (sqlite.open(sqlite.MEMORY, clock=clock), sqlite.open(sqlite.MEMORY, clock=clock))
        self.lab = lab = Lab(*engines, clock=clock)
        for number in range(SURVEYS):
            lab.survey(number, sections=0)
        # Small segments: a page is the least that is copied between two looks.
        lab.start(segments=16)
        self._changes, self._seconds = changes, seconds
        self._written = self._copied = 0
        lab.new_engine.after = self._after
        self.worker = Worker(lab.migration)

    def _after(self, request: Request[Any]) -> None:
        lab = self.lab
        if not isinstance(request, TransactWriteItems) or len(request.actions) <= 10:
            return
        self.clock.ahead += sum(self._seconds(self._copied / SURVEYS) for _ in request.actions)
        if lab.migration.record().copying:
            self._copied += len(request.actions) - 1
            for _ in range(self._changes):
                self._written += 1
                lab.survey(self._written * 7 % SURVEYS, sections=0, title=f"At {self._written}")

    def error_at(self, percent: float) -> float:
        """Copy, and return how far the forecast at a percentage is off, as a share of the truth."""
        migration, began, forecast = self.lab.migration, 0.0, 0.0
        while migration.record().state == "Copying":
            self.worker.step()
            copy = migration.status().copy
            if copy.percent > percent and not forecast:
                assert copy.eta_seconds
                began, forecast = self.clock(), copy.eta_seconds
        took = (migration.record().copied_at or 0.0) - began
        return abs(forecast - took) / took


@pytest.mark.parametrize(("changes", "spread"), [(0, 0.0), (30, 0.0), (10, 0.9)])
def test_the_forecast_after_ten_per_cent_is_within_twenty(changes: int, spread: float) -> None:
    """Also beside changes, and if an action takes between a tenth and twice its usual time."""
    dice = random.Random(20)
    rehearsal = Rehearsal(changes=changes, seconds=lambda _: SECONDS * dice.uniform(1 - spread, 1 + spread))
    assert rehearsal.error_at(10) <= 0.2


@pytest.mark.parametrize("changes", [0, 10])
@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_the_forecast_follows_a_rate_that_changes(factor: float, changes: int) -> None:
    """The load changes at 20 %: it is known at 50 %, and could not be known before."""
    rehearsal = Rehearsal(changes=changes, seconds=lambda share: SECONDS * (1.0 if share < 0.2 else factor))
    assert rehearsal.error_at(50) <= 0.2


def test_a_pause_does_not_count_for_the_pace() -> None:
    rehearsal = Rehearsal(seconds=lambda _: SECONDS)
    migration, worker = rehearsal.lab.migration, rehearsal.worker
    while migration.status().copy.percent < 40:
        worker.step()
    before = migration.status().copy.eta_seconds
    migration.stop()
    rehearsal.clock.ahead += 3_600
    migration.start()
    assert before
    assert migration.status().copy.eta_seconds == pytest.approx(before, rel=0.2)
    assert rehearsal.error_at(50) <= 0.2
