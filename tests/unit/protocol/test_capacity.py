"""Units and the shapes in which they are reported."""

from __future__ import annotations

import pytest

from solotable._protocol.capacity import CapacityMeter, read_units, write_units


@pytest.mark.parametrize(
    ("size", "eventual", "consistent", "transactional"),
    [(0, 0.5, 1, 2), (1, 0.5, 1, 2), (4096, 0.5, 1, 2), (4097, 1, 2, 4), (8193, 1.5, 3, 6)],
)
def test_reads_step_by_4_kb(size: int, eventual: float, consistent: float, transactional: float) -> None:
    assert read_units(size, consistent=False) == eventual
    assert read_units(size, consistent=True) == consistent
    assert read_units(size, consistent=True, transactional=True) == transactional


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (409600, 400)])
def test_writes_step_by_1_kb_and_double_in_transactions(size: int, units: float) -> None:
    assert write_units(size) == units
    assert write_units(size, transactional=True) == 2 * units


def test_nothing_is_reported_unless_asked_for() -> None:
    assert CapacityMeter("abc").report("NONE") is None


def test_total_is_one_sum() -> None:
    meter = CapacityMeter("abc")
    meter.table(1)
    meter.local("lll", 1)
    meter.index("ggg", 0.5)
    meter.index("ggg", 0.5)
    assert meter.total == 3
    assert meter.report("TOTAL") == {"TableName": "abc", "CapacityUnits": 3.0}


def test_indexes_break_the_sum_down() -> None:
    meter = CapacityMeter("abc")
    meter.table(1)
    meter.local("lll", 1)
    meter.index("ggg", 1)
    assert meter.report("INDEXES") == {
        "TableName": "abc",
        "CapacityUnits": 3.0,
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {"lll": {"CapacityUnits": 1.0}},
        "GlobalSecondaryIndexes": {"ggg": {"CapacityUnits": 1.0}},
    }


def test_the_table_is_listed_even_when_only_an_index_was_read() -> None:
    meter = CapacityMeter("abc")
    meter.index("ggg", 0.5)
    report = meter.report("INDEXES")
    assert report is not None
    assert report["Table"] == {"CapacityUnits": 0.0}
    assert "LocalSecondaryIndexes" not in report


def test_transactions_also_name_the_direction() -> None:
    meter = CapacityMeter("abc")
    meter.table(6)
    meter.index("gsi1", 2)
    assert meter.report("INDEXES", "write") == {
        "TableName": "abc",
        "CapacityUnits": 8.0,
        "WriteCapacityUnits": 8.0,
        "Table": {"CapacityUnits": 6.0, "WriteCapacityUnits": 6.0},
        "GlobalSecondaryIndexes": {"gsi1": {"CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}},
    }
    assert meter.report("TOTAL", "read") == {
        "TableName": "abc",
        "CapacityUnits": 8.0,
        "ReadCapacityUnits": 8.0,
    }
