"""Import the objects of a bucket into a new table, in short transactions.

As on AWS, an item that is rejected makes the import FAILED at its end, and the items before and after it are
imported; of two items with one key the last one stays.
"""

from __future__ import annotations

import copy
import logging
import sqlite3
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from solotable._protocol.requests import PutItem
from solotable.engines.sqlite.file.forks import block_forks
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items.storage import Writer
from solotable.engines.sqlite.operations.items.writes import check_item_size, prepare
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import Catalog, Definition, Table
from solotable.errors import DataError, EngineError, ServiceError
from solotable.locations import Location

from . import jobs
from .exporting import open_bucket
from .jobs import Job, JobError
from .objects import ImportLine, ObjectFormat, read_object

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_LOG = logging.getLogger(__name__)
_REJECTED = (
    "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs "
    "for more details."
)
#: The most rejected items of an import that are logged one by one.
_LOGGED = 100
#: The most bytes that a transaction writes.
_BATCH_BYTES = 2_000_000

_Prepared = tuple[bytes, PutItem, int]


@dataclass(kw_only=True)
class _Counters:
    """What DescribeImport counts."""

    size: int = 0
    processed: int = 0
    imported: int = 0
    errors: int = 0

    def members(self) -> dict[str, int]:
        return {
            "ProcessedSizeBytes": self.size,
            "ProcessedItemCount": self.processed,
            "ImportedItemCount": self.imported,
            "ErrorCount": self.errors,
        }


def run_import(engine: SqliteEngine, job: Job, definition: Definition, stopped: threading.Event) -> None:
    """Create the table, import every object, and record the result."""
    counters = _Counters()
    try:
        _import(engine, job, definition, stopped, counters)
    except JobError as error:
        _end(engine, job, counters, error.code, str(error))
    except DataError as error:
        _end(engine, job, counters, "S3AccessDenied", str(error))
    except EngineError:
        # The file itself fails; the record cannot be written either.
        raise
    except Exception as error:  # noqa: BLE001  # a client of S3 raises its own errors
        _LOG.warning("%s failed", job.arn, exc_info=True)
        _end(engine, job, counters, "InternalServerError", str(error))
    else:
        if counters.errors:
            _end(engine, job, counters, "ItemValidationError", _REJECTED)
        else:
            _end(engine, job, counters)


def _end(engine: SqliteEngine, job: Job, counters: _Counters, code: str = "", message: str = "") -> None:
    if code:
        jobs.fail(engine, job, code, message, **counters.members())
    else:
        jobs.end(engine, job, **counters.members())


def _import(
    engine: SqliteEngine, job: Job, definition: Definition, stopped: threading.Event, counters: _Counters
) -> None:
    described = job.description
    source = described["S3BucketSource"]
    bucket = open_bucket(engine, source["S3Bucket"])
    table = _add_table(engine, job, definition)
    importer = _Importer(
        engine=engine, job=job, table=table, counters=counters, pace=BatchPacer(engine.database)
    )
    options = described.get("InputFormatOptions", {}).get("Csv", {})
    format_ = ObjectFormat(
        is_csv=described["InputFormat"] == "CSV",
        is_gzip=described["InputCompressionType"] == "GZIP",
        key_types={
            each["AttributeName"]: each["AttributeType"] for each in definition["AttributeDefinitions"]
        },
        delimiter=options.get("Delimiter", ","),
        header=tuple(options["HeaderList"]) if "HeaderList" in options else None,
    )
    for name in bucket.find(source.get("S3KeyPrefix", "")):
        importer.read(bucket, name, format_, stopped)
    importer.flush()


def _add_table(engine: SqliteEngine, job: Job, definition: Definition) -> Table:
    name = definition["TableName"]

    def run(connection: sqlite3.Connection) -> Table:
        if Catalog().load(connection, name) is not None:
            raise JobError("TableAlreadyExists", f"Table already exists: {name}")
        return catalog.add(connection, name, copy.deepcopy(definition) | {"Import": job.arn})

    try:
        return engine.database.write(run)
    finally:
        engine.catalog.forget()


@dataclass(kw_only=True)
class _Importer:
    """Writes the items of one import in batches."""

    engine: SqliteEngine
    job: Job
    table: Table
    counters: _Counters
    pace: BatchPacer
    _batch: list[_Prepared] = field(default_factory=list)
    _bytes: int = 0

    def read(self, bucket: Location, name: str, format_: ObjectFormat, stopped: threading.Event) -> None:
        """Import the items of one object."""
        with bucket.open(name) as file:
            for index, line in enumerate(read_object(file, format_)):
                self._take(name, index, line)
                if len(self._batch) >= self.pace.items or self._bytes > _BATCH_BYTES:
                    jobs.check_running(stopped)
                    self.flush()
                    self.pace.yield_to_writers()

    def _take(self, name: str, index: int, line: ImportLine) -> None:
        counters = self.counters
        counters.processed += 1
        counters.size += line.size
        if line.item is None:
            self._reject(name, index, line.problem)
            return
        # Imported here: a store sends records, and needs neither the parser nor the constraints.
        with block_forks():
            from solotable._protocol.decode.requests import decode_request
        try:
            put: Any = decode_request("PutItem", {"TableName": self.table.name, "Item": line.item})
            size = check_item_size(put)
            self._batch.append((prepare(self.table, put), put, size))
            self._bytes += size
        except ServiceError as error:
            self._reject(name, index, error.message)

    def _reject(self, name: str, index: int, problem: str) -> None:
        self.counters.errors += 1
        if self.counters.errors <= _LOGGED:
            # AWS writes the object, the index of the item and the message to CloudWatch.
            _LOG.warning("%s: %s, item %d: %s", self.job.arn, name, index, problem)

    def flush(self) -> None:
        """Write the items that were read."""
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return

        def action(writer: Writer) -> None:
            for key, put, size in batch:
                writer.save(self.table, key, writer.find(self.table, key), put.item, size)
            self.pace.adapt(writer.connection)

        self.engine.write(action)
        self.counters.imported += len(batch)
