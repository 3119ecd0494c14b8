"""Export a table in AWS's format: in one snapshot where the engine has one, otherwise by a Scan."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from solotable._export_files.manifests import ManifestSummary
from solotable._export_files.writer import FILE_BYTES, ExportedTable, ExportWriter
from solotable._flows.jobs.backfill import Pace
from solotable._flows.retry import Flow, Retries, Sleep, send
from solotable._protocol.engine import Engine, TableSnapshot
from solotable._protocol.json_codec import dumps
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import Control, Scan
from solotable._store.runner import run
from solotable._values import Item, item_size
from solotable.errors import DataError
from solotable.locations import FolderLocation, Location

#: Called with the items so far, and the items that the table has, if that is known.
Progress = Callable[[int, int | None], None]
_REPORT_EVERY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A finished export."""

    summary: ManifestSummary
    #: Where the export is, below its location.
    folder: str
    #: Whether all items are as of one commit; a Scan reads them one page after another.
    is_snapshot: bool


def export_table(
    engine: Engine,
    table: str,
    location: Location,
    *,
    clock: Callable[[], float] = time.time,
    rate: float | None = None,
    progress: Progress | None = None,
    file_bytes: int = FILE_BYTES,
) -> Exported:
    """Export a table to a location in AWS's format, DynamoDB JSON.

    The embedded engine exports one snapshot while writers continue. Other engines are scanned with consistent
    reads, at most `rate` read units a second. A killed export leaves no summary, so readers reject it; run it
    again.
    """
    described = describe_table(engine, table)
    started = datetime.fromtimestamp(clock(), UTC)
    writer = ExportWriter(
        location=location,
        table=ExportedTable(description=described),
        started=started,
        bucket="" if isinstance(location, FolderLocation) else str(location),
        file_bytes=file_bytes,
    )
    is_snapshot = engine.capabilities.table_snapshot is not None
    try:
        with open_snapshot(engine, table, clock=clock, rate=rate) as snapshot:
            for raw, size in snapshot.items:
                writer.add(raw, size)
                if progress is not None and not writer.items % _REPORT_EVERY:
                    progress(writer.items, described.get("ItemCount"))
    except BaseException:
        writer.abandon()
        raise
    summary = writer.finish(
        ended=datetime.fromtimestamp(clock(), UTC),
        export_time=datetime.fromtimestamp(snapshot.time, UTC),
    )
    if progress is not None:
        progress(writer.items, writer.items)
    return Exported(summary=summary, folder=f"AWSDynamoDB/{writer.export_id}", is_snapshot=is_snapshot)


def describe_table(engine: Engine, table: str) -> dict[str, Any]:
    """Return what DescribeTable says of a table, or raise TableNotFound."""
    request = Control(operation="DescribeTable", members={"TableName": table})
    described: dict[str, Any] = run(send(request, _retries()), engine)["Table"]
    return described


@contextmanager
def open_snapshot(
    engine: Engine, table: str, *, clock: Callable[[], float] = time.time, rate: float | None = None
) -> Iterator[TableSnapshot]:
    """Return a context with the items of a table: in one snapshot, or as a Scan finds them."""
    if rate is not None and rate <= 0:
        raise DataError(f"rate must be above 0 units per second, got {rate}.")
    of_engine = engine.capabilities.table_snapshot
    if of_engine is None:
        yield TableSnapshot(time=clock(), items=_scan(engine, table, clock, rate))
        return
    with of_engine(table) as snapshot:
        try:
            yield snapshot
        finally:
            # A generator that stopped in the middle has a cursor, which must not outlive the engine.
            if isinstance(snapshot.items, Generator):
                snapshot.items.close()


def _scan(
    engine: Engine, table: str, clock: Callable[[], float], rate: float | None
) -> Iterator[tuple[bytes, int]]:
    pace = None if rate is None else Pace(rate, clock)
    start: Item | None = None
    while True:
        page = run(_scan_page(table, start, pace), engine)
        for item in decode_items(page.items or ()):
            yield dumps(item), item_size(item)
        start = page.last_key
        if start is None:
            return


def _scan_page(table: str, start: Item | None, pace: Pace | None) -> Flow[Page]:
    request = Scan(table=table, start=start, consistent=True, capacity="NONE" if pace is None else "TOTAL")
    page = yield from send(request, _retries())
    if (
        pace is not None
        and page.capacity is not None
        and (wait := pace.spend(page.capacity["CapacityUnits"]))
    ):
        yield Sleep(wait)
    return page


def _retries() -> Retries:
    return Retries(random=random.random)
