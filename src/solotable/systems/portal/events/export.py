"""Export the events of some days for analysis: as JSON Lines, or as Parquet (extra `parquet`).

Events are read page by page and written as they are read, so memory does not grow with the range.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from solotable import Database
from solotable.errors import NotConfigured
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.events import ActivityEvent

ExportFormat = Literal["jsonl", "parquet"]
FORMATS: tuple[ExportFormat, ...] = ("jsonl", "parquet")
#: The events that are in memory at once, and the rows of a row group of Parquet.
_GROUP = 10_000
_MOST_DAYS = 3_660


def export_events(
    db: Database, target: BinaryIO, *, first: date, last: date, file_format: ExportFormat = "jsonl"
) -> int:
    """Write the events of all days from `first` to `last`, oldest first; return how many there were."""
    days = (last - first).days + 1
    if not 1 <= days <= _MOST_DAYS:
        raise InvalidInput(f"Give a first day that is not after the last, and at most {_MOST_DAYS} days.")
    found = _events(db, first, days)
    return _write_parquet(found, target) if file_format == "parquet" else _write_lines(found, target)


def format_of(path: Path) -> ExportFormat | None:
    """Return the format that the name of a file asks for; None if it asks for neither."""
    by_suffix: dict[str, ExportFormat] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
    return by_suffix.get(path.suffix.lower())


def _events(db: Database, first: date, days: int) -> Iterator[ActivityEvent]:
    for number in range(days):
        yield from db.all(ActivityEvent.key.query(timestamp=first + timedelta(days=number)))


def _write_lines(found: Iterator[ActivityEvent], target: BinaryIO) -> int:
    count = 0
    for event in found:
        target.write(json.dumps(_row(event), ensure_ascii=False).encode() + b"\n")
        count += 1
    return count


def _row(event: ActivityEvent) -> dict[str, Any]:
    row = event.model_dump(mode="json", exclude={"expires_at"})
    # One form for all times, as in the key: six digits and Z (C3.10).
    row["timestamp"] = f"{event.timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    return row


def _write_parquet(found: Iterator[ActivityEvent], target: BinaryIO) -> int:
    arrow, parquet = _import_pyarrow()
    schema = arrow.schema(
        [
            arrow.field("event_id", arrow.string(), nullable=False),
            arrow.field("event_name", arrow.string(), nullable=False),
            arrow.field("user_id", arrow.string()),
            arrow.field("content_id", arrow.string()),
            # Metadata differs from event to event: JSON text, which Athena and DuckDB can query.
            arrow.field("metadata", arrow.string(), nullable=False),
            arrow.field("timestamp", arrow.timestamp("us", tz="UTC"), nullable=False),
        ]
    )
    count = 0
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        while group := list(islice(found, _GROUP)):
            rows = [
                {
                    **event.model_dump(exclude={"expires_at", "metadata"}),
                    "metadata": json.dumps(_row(event)["metadata"], ensure_ascii=False),
                }
                for event in group
            ]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
            count += len(group)
    return count


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise NotConfigured(
            "Parquet needs PyArrow: pip install solotable[parquet], or export JSON Lines (.jsonl)."
        ) from None
    return pyarrow, pyarrow.parquet
