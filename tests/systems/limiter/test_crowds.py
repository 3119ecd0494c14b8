"""L3: how much a crowd gets of what an exact bucket would admit; `python -m bench crowd` is the long form."""

from __future__ import annotations

import pytest

from bench.systems.limiter_crowd import Crowd, simulate
from solotable.systems.limiter import Limit

RATE = 300


def per_second(burst: float) -> Limit:
    return Limit.per_second("rpm", RATE, burst=round(RATE * burst))


@pytest.mark.parametrize(("load", "burst"), [(0.9, 1.0), (1.0, 1.0), (4.0, 1.0), (0.9, 0.1), (1.0, 0.1)])
def test_l3_a_crowd_on_shards_gets_98_of_100(load: float, burst: float) -> None:
    """L3: 92 to 98 before, as halves gave tokens up and refused while others had some."""
    crowd = Crowd(limit=per_second(burst), calls=RATE * load, seconds=4, shard_above=60)
    result = simulate(crowd)
    assert result.errors == 0
    assert result.shards >= (4 if burst == 1.0 else 2)
    assert 98 <= result.share <= 100.5


@pytest.mark.parametrize("load", [0.9, 4.0])
def test_l3_a_crowd_on_one_item_gets_99_of_100(load: float) -> None:
    result = simulate(Crowd(limit=per_second(1.0), calls=RATE * load, seconds=3, shard_above=None))
    assert result.shards == 1
    assert 99 <= result.share <= 100.5


def test_l3_large_calls_in_a_crowd_get_98_of_100() -> None:
    """L3: one call in a hundred asks for a tenth of the bucket; 85 of 100 before."""
    crowd = Crowd(
        limit=per_second(1.0),
        # 0.7 of what comes in.
        calls=0.7 * RATE / (0.99 + 0.01 * RATE / 10),
        seconds=8,
        large_share=0.01,
        large=RATE // 10,
        shard_above=30,
    )
    result = simulate(crowd)
    assert result.shards >= 4
    assert 98 <= result.share <= 100.5


def test_l3_a_day_s_limit_loses_nothing_to_a_crowd() -> None:
    """L3: 71 of 100 before, and 10 of them for good. The shards are one again after some calm minutes."""
    crowd = Crowd(
        limit=Limit.per_day("rpm", 4 * RATE), calls=RATE, seconds=6, shard_above=60, calm_seconds=300
    )
    result = simulate(crowd)
    assert result.shards >= 4
    assert 99.5 <= result.share <= 100.1
    assert result.left_items == 1


def test_l3_a_crowd_that_is_mostly_refused_splits_the_bucket_too() -> None:
    """DynamoDB throttles writes whose condition fails as well: 20 a second are applied, hundreds fail."""
    limit = Limit.custom("rpm", capacity=120, refill=20, period_seconds=1)
    # More processes than tokens: each remembers a refusal until it expects a token.
    crowd = Crowd(limit=limit, calls=600, seconds=6, processes=32, shard_above=200)
    result = simulate(crowd)
    assert result.shards >= 2
    assert 98 <= result.share <= 100.5
