"""Export a table to a bucket: its state at a position, or what changed between two positions."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from solotable._export_files import manifests
from solotable._export_files.manifests import OutputView
from solotable._export_files.writer import ExportedTable, ExportWriter
from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.engines.sqlite.items.keys import BEYOND
from solotable.engines.sqlite.items.storage import find
from solotable.engines.sqlite.recovery.copying import CopySource, read_step
from solotable.engines.sqlite.recovery.positions import require_window
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.recovery.undo import UndoIndex, check_file, read_old_image
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.engines.sqlite.tables.descriptions import describe
from solotable.errors import Corrupt, DataError, EngineError, RecoveryError, TableNotFound
from solotable.locations import Location

from . import jobs
from .jobs import Job, JobError

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_LOG = logging.getLogger(__name__)
#: How many items a step reads in one snapshot.
_STEP_ITEMS = 500
_NO_BUCKET = (
    "The specified bucket does not exist (Service: Amazon S3; Status Code: 404; Error Code: NoSuchBucket)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPlan:
    """What an export reads: the state at `until`, or the changes after `after` up to it."""

    table: Table
    until: int
    after: int | None = None
    view: OutputView | None = None


def open_bucket(engine: SqliteEngine, name: str) -> Location:
    """Return the location of a bucket, or raise JobError as S3 answers."""
    if engine.buckets is None:
        _LOG.warning(
            "Bucket %s is not reachable: the engine has no buckets. Pass buckets= to sqlite.open, or "
            "--buckets to solotable serve.",
            name,
        )
        raise JobError("S3NoSuchBucket", _NO_BUCKET)
    try:
        return engine.buckets.open_bucket(name)
    except FileNotFoundError as error:
        _LOG.warning("Bucket %s does not exist in %s: %s", name, engine.buckets, error)
        raise JobError("S3NoSuchBucket", _NO_BUCKET) from None
    except (DataError, OSError) as error:
        raise JobError("S3AccessDenied", str(error)) from error


def run_export(engine: SqliteEngine, job: Job, plan: ExportPlan, stopped: threading.Event) -> None:
    """Export until the summary is written, and record the result."""
    try:
        _export(engine, job, plan, stopped)
    except JobError as error:
        jobs.fail(engine, job, error.code, str(error))
    except (RecoveryError, TableNotFound) as error:
        jobs.fail(engine, job, "PointInTimeRecoveryUnavailableException", str(error))
    except (Corrupt, DataError) as error:
        jobs.fail(engine, job, "InternalServerError", str(error))
    except EngineError:
        # The file itself fails; the record cannot be written either.
        raise
    except Exception as error:  # noqa: BLE001  # a client of S3 raises its own errors
        _LOG.warning("%s failed", job.arn, exc_info=True)
        jobs.fail(
            engine, job, "S3AccessDenied" if isinstance(error, OSError) else "InternalServerError", str(error)
        )


def _export(engine: SqliteEngine, job: Job, plan: ExportPlan, stopped: threading.Event) -> None:
    described = job.description
    bucket = open_bucket(engine, described["S3Bucket"])
    check_file(engine)
    prefix = described.get("S3Prefix")
    is_full = plan.after is None
    writer = ExportWriter(
        location=bucket.below(prefix or ""),
        table=ExportedTable(description=describe(engine, plan.table)),
        started=_datetime(job.started_micros / 1_000_000),
        bucket=described["S3Bucket"],
        prefix=prefix,
        type="FULL_EXPORT" if is_full else "INCREMENTAL_EXPORT",
        view=plan.view,
        export_id=job.arn.rpartition("/")[2],
    )
    try:
        if is_full:
            _write_items(engine, plan, writer, stopped)
        else:
            _write_changes(engine, plan, writer, stopped)
    except BaseException:
        writer.abandon()
        raise
    period = described.get("IncrementalExportSpecification", {})
    summary = writer.finish(
        ended=_datetime(engine.now_micros() / 1_000_000),
        export_time=_datetime(described["ExportTime"]) if is_full else None,
        period=None if is_full else (_datetime(period["ExportFromTime"]), _datetime(period["ExportToTime"])),
    )
    jobs.end(
        engine,
        job,
        ItemCount=summary.item_count,
        BilledSizeBytes=summary.billed_size_bytes,
        ExportManifest=summary.manifest_files_key.replace(manifests.FILES, manifests.SUMMARY),
    )


def _write_items(
    engine: SqliteEngine, plan: ExportPlan, writer: ExportWriter, stopped: threading.Event
) -> None:
    """Write the state at the position."""
    undo = UndoIndex(plan.table.definition["TableId"], plan.until)
    try:
        undo.read_all(engine)
        source = CopySource(
            engine=engine,
            name=plan.table.name,
            table_id=plan.table.definition["TableId"],
            undo=undo,
            scope=Scope(),
        )
        start: bytes | None = b""
        while start is not None:
            jobs.check_running(stopped)
            rows, start = read_step(source, start, _STEP_ITEMS)
            for _, size, _, raw in rows:
                writer.add(raw, size)
    finally:
        undo.close()


def _write_changes(
    engine: SqliteEngine, plan: ExportPlan, writer: ExportWriter, stopped: threading.Event
) -> None:
    """Write each item that changed in the period, as it was before and after it."""
    assert plan.after is not None
    stream = plan.table.definition["TableId"]
    before, until = UndoIndex(stream, plan.after), UndoIndex(stream, plan.until)
    try:
        before.read_all(engine)
        until.read_all(engine)
        times = _read_times(engine, stream, plan)
        start: bytes | None = b""
        while start is not None:
            jobs.check_running(stopped)
            with engine.database.snapshot() as connection:
                table = _check_window(connection, plan)
                until.catch_up(connection)
                firsts = before.firsts(start, BEYOND, _STEP_ITEMS)
                later = dict(
                    until.firsts(start, BEYOND if len(firsts) < _STEP_ITEMS else firsts[-1][0] + b"\0")
                )
                for change in _changed(connection, table, firsts, later, plan.until):
                    key, old, new = change
                    _add_change(writer, table, old, new, times[key])
            start = firsts[-1][0] + b"\0" if len(firsts) == _STEP_ITEMS else None
    finally:
        before.close()
        until.close()


def _changed(
    connection: sqlite3.Connection,
    table: Table,
    firsts: list[tuple[bytes, int]],
    later: dict[bytes, int],
    until: int,
) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """Yield the key and both images of items whose first change is in the period."""
    for key, first in firsts:
        if first > until:
            continue
        row = read_old_image(connection, table, key, first)
        old = None if row is None else row[3]
        if key in later:
            row = read_old_image(connection, table, key, later[key])
            new = None if row is None else row[3]
        else:
            stored = find(connection, table, key)
            new = None if stored is None else stored.raw
        # AWS: an item that was inserted and deleted in the period has no line.
        if old is not None or new is not None:
            yield key, old, new


def _add_change(
    writer: ExportWriter, table: Table, old: bytes | None, new: bytes | None, micros: int
) -> None:
    images: list[Item | None] = [None if raw is None else loads(raw) for raw in (old, new)]
    known = images[1] if images[1] is not None else images[0]
    assert known is not None
    keys = {name: known[name] for name in table.schema.names}
    writer.add_change(keys=keys, old=images[0], new=images[1], micros=micros)


def _read_times(engine: SqliteEngine, stream: str, plan: ExportPlan) -> dict[bytes, int]:
    """Return the time of the last change in the period for each key."""
    with engine.database.snapshot() as connection:
        _check_window(connection, plan)
        rows: Any = connection.execute(
            "SELECT key, max(at_micros) FROM changes WHERE sequence > ? AND sequence <= ? AND stream = ? "
            "GROUP BY key",
            (plan.after, plan.until, stream),
        )
        return dict(rows.fetchall())


def _check_window(connection: sqlite3.Connection, plan: ExportPlan) -> Table:
    table = read_table(connection, plan.table.name)
    assert plan.after is not None
    window = require_window(connection, table)
    if table.definition["TableId"] != plan.table.definition["TableId"] or window.start > plan.after:
        raise RecoveryError(f"The window of table {table.name} does not reach back to this period any more.")
    return table


def _datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
