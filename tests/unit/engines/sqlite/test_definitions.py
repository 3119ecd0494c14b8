"""Definitions that another engine on the same file has changed, and counts that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine, descriptions
from solotable.errors import ServiceError, TableNotFound
from tests.conformance.tables import index

from .clocked import HOUR, Clock, create, described, keys, opened, put
from .test_backfill import ADD, filled


def test_a_table_dropped_by_another_engine_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as one, opened(tmp_path / "db") as two:
        create(one)
        put(two, "1")
        one.call("DeleteTable", {"TableName": "Things"})
        with pytest.raises(TableNotFound):
            put(two, "2")
        create(one)
        put(two, "3")
        assert keys(one) == ["3"]


def test_an_index_added_by_another_engine_is_kept_by_the_first(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as one, opened(tmp_path / "db") as two:
        create(one)
        put(one, "1", g={"S": "x"})
        two.call("UpdateTable", ADD)
        put(one, "2", g={"S": "x"})
        assert keys(two, IndexName="byg") == ["1", "2"]
        with pytest.raises(ServiceError, match="Type mismatch for Index Key g"):
            put(one, "3", g={"N": "1"})


def test_a_stream_enabled_by_another_engine_records_what_the_first_writes(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as one, opened(tmp_path / "db") as two:
        create(one)
        put(one, "1")
        two.call(
            "UpdateTable",
            {
                "TableName": "Things",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            },
        )
        put(one, "2")
        with two.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM changes").fetchone() == (1,)


def test_settings_changed_by_another_engine_are_described_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as one, opened(tmp_path / "db") as two:
        create(one)
        described(two)
        one.call("UpdateTable", {"TableName": "Things", "DeletionProtectionEnabled": True})
        assert described(two)["DeletionProtectionEnabled"] is True
        with pytest.raises(ServiceError, match="protected against deletion"):
            two.call("DeleteTable", {"TableName": "Things"})


def test_a_refused_change_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as engine:
        create(engine)
        before = definition(engine)
        with pytest.raises(ServiceError, match="no stream to disable"):
            engine.call(
                "UpdateTable",
                {
                    "TableName": "Things",
                    "BillingMode": "PAY_PER_REQUEST",
                    "StreamSpecification": {"StreamEnabled": False},
                },
            )
        assert definition(engine) == before


def definition(engine: SqliteEngine) -> list[tuple[int, str]]:
    with engine.database.read() as connection:
        return connection.execute("SELECT generation, definition FROM catalog").fetchall()


def test_counts_of_a_small_table_are_live() -> None:
    gsi = [index("all", "g"), index("keys", "g", projection="KEYS_ONLY")]
    with opened() as engine:
        create(engine, types={"g": "S"}, gsi=gsi)
        put(engine, "1", g={"S": "x"}, more={"S": "yyyy"})
        put(engine, "2")
        got = described(engine)
        # pk and its value take 3 bytes, g 2, more 8.
        assert (got["ItemCount"], got["TableSizeBytes"]) == (2, 16)
        counts = {
            one["IndexName"]: (one["ItemCount"], one["IndexSizeBytes"])
            for one in got["GlobalSecondaryIndexes"]
        }
        assert counts == {"all": (1, 13), "keys": (1, 5)}


def test_counts_of_a_large_table_are_kept_for_six_hours() -> None:
    clock = Clock()
    many = descriptions.LIVE_ITEMS + 1
    with opened(clock=clock) as engine:
        create(engine, types={"g": "S"}, gsi=[index("byg", "g", projection="KEYS_ONLY")])
        filled(engine, many)
        assert described(engine)["ItemCount"] == many
        put(engine, "one more")
        assert described(engine)["ItemCount"] == many
        clock.move(6 * HOUR)
        got = described(engine)
        assert got["ItemCount"] == many + 1
        # Every entry has a key of 7 bytes and a g of 2.
        assert got["GlobalSecondaryIndexes"][0]["IndexSizeBytes"] == many * 9
