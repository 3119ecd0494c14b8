from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from solotable.testing import Clock


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = Clock()
    assert clock() == clock() == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    clock.tick(1.5)
    clock.tick(timedelta(days=1))
    clock.sleep(0.5)
    assert clock.now == datetime(2026, 1, 2, 0, 0, 2, tzinfo=UTC)


def test_a_clock_is_put_back_only_on_purpose() -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="positive time"):
        clock.tick(-1)
    clock.set(datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now == datetime(2020, 1, 1, tzinfo=UTC)
    assert clock.now.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        Clock().set(datetime(2026, 1, 1))
