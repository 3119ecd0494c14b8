"""An import overwrites nothing unless asked, and can be repeated."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from solotable._export_files.writer import ExportedTable, ExportWriter
from solotable._protocol.requests import PutItem, Request
from solotable.errors import DataError, OutcomeUnknown, TableNotFound
from solotable.exports import Export, FolderLocation, import_export, open_export
from solotable.exports.exporting import describe_table
from tests.unit.engines.sqlite.clocked import opened

from .tables import PlainEngine, all_items, exported, order, put, shop

NOW = datetime(2026, 11, 17, tzinfo=UTC)


@pytest.fixture
def export(tmp_path: Path) -> Export:
    engine = shop()
    put(engine, *(order(number, at={"N": "10"}) for number in range(10)))
    return open_export(FolderLocation(exported(engine, tmp_path)))


def test_a_repeated_import_writes_nothing_again(export: Export) -> None:
    target = shop()
    assert import_export(target, "Shop", export).written == 10
    again = import_export(target, "Shop", export)
    assert (again.written, again.unchanged, again.failed) == (0, 10, 0)


def test_an_import_that_was_interrupted_continues(export: Export) -> None:
    target = shop()
    put(target, order(3, at={"N": "10"}), order(4, at={"N": "10"}))
    report = import_export(target, "Shop", export)
    assert (report.written, report.unchanged) == (8, 2)


def test_another_item_under_a_key_is_kept_and_reported(export: Export) -> None:
    target = shop()
    put(target, order(3, at={"N": "99"}))
    report = import_export(target, "Shop", export)
    assert (report.written, report.failed) == (9, 1)
    assert report.problems[0].reason == "The table has another item under this key."
    assert order(3, at={"N": "99"}) in all_items(target)


def test_conflicts_are_skipped_or_replaced_if_asked(export: Export) -> None:
    target = shop()
    put(target, order(3, at={"N": "99"}))
    report = import_export(target, "Shop", export, on_conflict="skip")
    assert (report.written, report.skipped, report.failed) == (9, 1, 0)
    assert order(3, at={"N": "99"}) in all_items(target)
    assert import_export(target, "Shop", export, on_conflict="replace").written == 10
    assert order(3, at={"N": "10"}) in all_items(target)


def test_the_newer_of_two_items_stays(export: Export) -> None:
    target = shop()
    put(target, order(3, at={"N": "99"}), order(4, at={"N": "5"}))
    report = import_export(target, "Shop", export, on_conflict="newer", newer_by="at")
    assert (report.written, report.skipped) == (9, 1)
    stored = {item["sk"]["N"]: item["at"]["N"] for item in all_items(target)}
    assert (stored["3"], stored["4"]) == ("99", "10")


def test_newer_needs_an_attribute(export: Export) -> None:
    with pytest.raises(DataError, match="go together"):
        import_export(shop(), "Shop", export, on_conflict="newer")


def test_a_missing_table_is_not_created(export: Export) -> None:
    with pytest.raises(TableNotFound):
        import_export(opened(), "Shop", export)


def test_a_write_with_an_unknown_outcome_is_sent_again(export: Export) -> None:
    """The second write finds an equal item, which counts as unchanged."""
    engine = shop()

    class LosesReplies(PlainEngine):
        lost = False

        def handle(self, request: Request[Any], /) -> Any:
            reply = super().handle(request)
            if isinstance(request, PutItem) and not self.lost:
                self.lost = True
                raise OutcomeUnknown("The connection was lost.")
            return reply

    report = import_export(LosesReplies(engine), "Shop", export)
    assert (report.written, report.unchanged) == (9, 1)
    assert len(all_items(engine)) == 10


def test_an_incremental_export_is_applied(tmp_path: Path) -> None:
    target = shop()
    put(target, order(1, at={"N": "1"}), order(2))
    writer = ExportWriter(
        location=FolderLocation(tmp_path),
        table=ExportedTable(description=describe_table(target, "Shop")),
        started=NOW,
        type="INCREMENTAL_EXPORT",
        view="NEW_AND_OLD_IMAGES",
    )
    keys = [{name: order(number)[name] for name in ("pk", "sk")} for number in range(4)]
    writer.add_change(
        keys=keys[1], old=order(1, at={"N": "1"}), new=order(1, at={"N": "2"}), micros=1_700_000_000_000_001
    )
    writer.add_change(keys=keys[2], old=order(2), new=None, micros=1_700_000_000_000_002)
    writer.add_change(keys=keys[3], old=None, new=order(3), micros=1_700_000_000_000_003)
    summary = writer.finish(ended=NOW, period=(NOW, NOW))
    assert (summary.type, summary.item_count) == ("INCREMENTAL_EXPORT", 3)
    export = open_export(FolderLocation(tmp_path))
    changes = [change for _, change in export.changes()]
    assert [change.micros for change in changes] == [1_700_000_000_000_001 + step for step in range(3)]
    assert changes[1].new is None
    with pytest.raises(DataError, match="is incremental"):
        next(export.items())
    report = import_export(target, "Shop", export)
    assert (report.written, report.deleted) == (2, 1)
    assert sorted(item["sk"]["N"] for item in all_items(target)) == ["1", "3"]
