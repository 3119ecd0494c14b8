"""Settlements: what a call adjusts is charged whatever this process remembers of the bucket."""

from __future__ import annotations

from typing import Any

import pytest

from solotable.systems.limiter import Limit

from .either import either
from .ground import Place

RPM = Limit.per_minute("rpm", 100)
TPD = Limit.per_day("tpd", 50_000)


def family(made: Any) -> None:
    made.create_entity("org")
    made.create_entity("ben", parent="org", cascade=True)
    made.set_limits([RPM, Limit.per_day("tpd", 1_000_000)])
    made.set_limits([RPM], entity="org")


@pytest.mark.parametrize("converted", [False, True])
def test_l2_a_charge_counts_though_this_process_remembers_older_limits(
    place: Place, mode: str, converted: bool
) -> None:
    """L2: the parent's limit changes from rpm to tpd; five adjustments of 9,000 leave 5,000 of 50,000."""
    ours, operator = either(place, mode), either(place, mode)
    family(ours)
    with ours.acquire("ben", "m", {"rpm": 1}):
        pass
    operator.set_limits([TPD], entity="org")
    place.clock.seconds += 3600
    if converted:
        with operator.acquire("org", "m", {"tpd": 1}):
            pass
    for _ in range(5):
        with ours.acquire("ben", "m", {"rpm": 1}) as lease:
            lease.adjust(tpd=9000)
    left = operator.available("org", "m")["tpd"]
    assert left == pytest.approx(5_000, abs=2)


def test_l2_a_charge_of_a_limit_that_the_item_does_not_have_is_dropped(place: Place, mode: str) -> None:
    """L2: an operator removed the limit while the call ran."""
    ours, operator = either(place, mode), either(place, mode)
    ours.set_limits([RPM, TPD])
    with ours.acquire("ben", "m", {"rpm": 1, "tpd": 5}) as lease:
        operator.set_limits([RPM])
        operator.invalidate_config_cache()
        with operator.acquire("ben", "m", {"rpm": 1}):
            pass
        lease.adjust(tpd=9000, rpm=3)
    assert operator.available("ben", "m") == {"rpm": 95}
