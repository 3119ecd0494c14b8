"""Definitions that another engine on the same file has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ServiceError, TableNotFound

from .clocked import create, described, keys, opened, put
from .test_index_backfill import ADD


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
