"""The growth is measured on a table that holds what it says, and every request leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import growth
from bench.wire.workload import PER_PARTITION, TABLE_NAME
from solotable.engines import sqlite


def test_a_holder_has_fifty_items_that_lie_far_apart() -> None:
    holders: dict[str, list[int]] = {}
    for number in range(2 * growth.SMALLEST):
        holders.setdefault(growth.holder(number), []).append(number)
    first = holders[growth.holder(0)]
    assert len(first) == PER_PARTITION
    assert len({number // PER_PARTITION for number in first}) == PER_PARTITION


def test_requests_read_full_pages_and_put_back_what_they_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "SMALLEST", 5000)
    with sqlite.open(tmp_path / "growth.db", durability="relaxed") as engine:
        engine.call("CreateTable", growth.TABLE)
        growth.load(engine, 0, growth.SMALLEST)
        requests = growth.requests(engine, growth.SMALLEST)
        answers = {name: request(3) for name, request in requests.items()}
        found = engine.call("Scan", {"TableName": TABLE_NAME, "Select": "COUNT"})
    assert answers["GetItem"]["Item"]  # type: ignore[index]
    for name in ("Query of 50", "GSI query of 50"):
        assert answers[name]["Count"] == PER_PARTITION  # type: ignore[index]
    assert list(answers)[-2:] == ["DeleteItem", "PutItem"]
    assert found["Count"] == growth.SMALLEST


def test_a_size_at_which_holders_lack_items_is_rejected() -> None:
    assert growth.sizes(10_000) == [10_000]
    assert growth.sizes(10_000_000)[-2:] == [1_000_000, 10_000_000]
    for largest in (5_000, 20_000, 2_500_000):
        with pytest.raises(ValueError, match=f"got {largest:,}"):
            growth.sizes(largest)
