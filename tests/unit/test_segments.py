"""Segments of a job share a budget, and end together."""

from __future__ import annotations

import threading

import pytest

from solotable.jobs.segments import SharedBudget, run_segments
from tests.waiting import HANG_SECONDS


def test_a_page_gives_back_what_it_did_not_read() -> None:
    budget = SharedBudget(10)
    assert (budget.take(7), budget.take(7)) == (7, 3)
    budget.release(5)
    assert budget.take(7) == 5
    budget.release(0)
    budget.release(0)
    assert budget.take(7) == 0


def test_a_segment_waits_for_what_another_may_give_back() -> None:
    budget = SharedBudget(5)
    taken: list[int] = []
    assert budget.take(5) == 5
    waiting = threading.Thread(target=lambda: taken.append(budget.take(5)))
    waiting.start()
    budget.release(2)
    waiting.join(HANG_SECONDS)
    assert taken == [2]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_segment_that_fails_ends_the_others(failing: int) -> None:
    budget = SharedBudget(1_000_000_000)

    def work(number: int) -> None:
        while budget.take(1):
            if number == failing:
                raise ValueError("damaged page")
            budget.release(1)

    with pytest.raises(ValueError, match="damaged page"):
        run_segments(budget, [lambda number=number: work(number) for number in range(3)])  # type: ignore[misc] # bound now
    assert budget.is_stopped
    assert budget.take(1) == 0
