"""The records of exports and imports, and their threads.

A record is stored when a job starts and when it ends. A job whose process was killed is recorded as FAILED by
the next engine that opens the file and finds it open nowhere else.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from solotable._values.checksum import crc32
from solotable.engines.sqlite.tables import catalog, layout
from solotable.engines.sqlite.tables.catalog import Catalog
from solotable.engines.sqlite.tables.windows import DAY_MICROS
from solotable.errors import Corrupt, EngineError
from solotable.fork_safe import new_lock

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
#: AWS: records of jobs are removed after 90 days.
_KEPT_MICROS = 90 * DAY_MICROS
#: AWS: how long a client token is valid after its first request.
_TOKEN_MICROS = 8 * 3_600 * 1_000_000
_INTERRUPTED = "The process ended before the job was complete. Start another one."

_lock = new_lock()


@dataclass(slots=True)
class _Threads:
    """The jobs of one engine."""

    stopped: threading.Event = field(default_factory=threading.Event)
    running: set[threading.Thread] = field(default_factory=set)


_threads: WeakKeyDictionary[SqliteEngine, _Threads] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # A forked child has none of the parent's threads.
    os.register_at_fork(after_in_child=_threads.clear)


class JobError(Exception):
    """A job ends as FAILED with this code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An export or an import: what its description says, and what its client token stands for."""

    arn: str
    is_export: bool
    started_micros: int
    #: What DescribeExport or DescribeImport returns.
    description: dict[str, Any]
    #: The members of the request.
    request: dict[str, Any]

    @property
    def status(self) -> str:
        """IN_PROGRESS, COMPLETED or FAILED."""
        return str(self.description["ExportStatus" if self.is_export else "ImportStatus"])

    @property
    def token(self) -> str | None:
        """The client token."""
        return self.request.get("ClientToken")


def store(connection: sqlite3.Connection, job: Job) -> None:
    """Write the record of a job."""
    text = json.dumps(
        {
            "is_export": job.is_export,
            "started_micros": job.started_micros,
            "description": job.description,
            "request": job.request,
        }
    )
    connection.execute(
        "INSERT OR REPLACE INTO transfers (arn, record, crc) VALUES (?, ?, ?)",
        (job.arn, text, crc32(text.encode(), crc32(job.arn.encode()))),
    )


def find(connection: sqlite3.Connection, arn: str) -> Job | None:
    """Return a job by its ARN."""
    return next(iter(_read(connection, "WHERE arn = ?", (arn,))), None)


def list_jobs(connection: sqlite3.Connection, *, is_export: bool) -> list[Job]:
    """Return all exports or imports, newest first."""
    found = [job for job in _read(connection) if job.is_export is is_export]
    return sorted(found, key=lambda job: job.arn.rpartition("/")[2], reverse=True)


def find_token(
    connection: sqlite3.Connection, token: str | None, *, is_export: bool, now_micros: int
) -> Job | None:
    """Return the newest job of a client token that is still valid."""
    if token is None:
        return None
    for job in list_jobs(connection, is_export=is_export):
        if job.token == token and job.started_micros > now_micros - _TOKEN_MICROS:
            return job
    return None


def new_arn(connection: sqlite3.Connection, resource: str, request: dict[str, Any], now_micros: int) -> str:
    """Return the ARN of a new job: as on AWS, its id has the milliseconds of the start and a number."""
    number = crc32(f"{resource} {now_micros} {json.dumps(request)}".encode())
    while True:
        arn = f"{resource}/{now_micros // 1000:014d}-{number:08x}"
        if find(connection, arn) is None:
            return arn
        number = (number + 1) % 2**32


def add(connection: sqlite3.Connection, job: Job) -> None:
    """Write the record of a new job, and remove those of very old ones."""
    for old in _read(connection):
        if old.started_micros < job.started_micros - _KEPT_MICROS and old.status != IN_PROGRESS:
            connection.execute("DELETE FROM transfers WHERE arn = ?", (old.arn,))
    store(connection, job)


def end(engine: SqliteEngine, job: Job, **members: Any) -> None:
    """Write how a job ended, and let requests reach the table of an import.

    If another engine has ended the job already, its record stays.
    """
    status = "ExportStatus" if job.is_export else "ImportStatus"
    described = job.description | {status: COMPLETED, "EndTime": engine.now_micros() // 1000 / 1000} | members

    def run(connection: sqlite3.Connection) -> None:
        stored = find(connection, job.arn)
        if stored is not None and stored.status == IN_PROGRESS:
            store(
                connection,
                Job(
                    arn=job.arn,
                    is_export=job.is_export,
                    started_micros=job.started_micros,
                    description=described,
                    request=job.request,
                ),
            )
            if not job.is_export:
                _release(connection, job)

    try:
        engine.database.write(run)
    finally:
        engine.catalog.forget()


def _release(connection: sqlite3.Connection, job: Job) -> None:
    table = Catalog().load(connection, job.description["TableCreationParameters"]["TableName"])
    if table is not None and table.definition.get("Import") == job.arn:
        definition = copy.deepcopy(table.definition)
        del definition["Import"]
        catalog.replace(connection, table, definition)


def fail(engine: SqliteEngine, job: Job, code: str, message: str, **members: Any) -> None:
    """Write that a job failed."""
    status = "ExportStatus" if job.is_export else "ImportStatus"
    end(engine, job, **{status: FAILED, "FailureCode": code, "FailureMessage": message}, **members)


def fail_interrupted(engine: SqliteEngine) -> None:
    """Write that the jobs of processes that died have failed; only the first engine on the file can know."""
    if not engine.presence.is_first:
        return
    with engine.database.read() as connection:
        interrupted = [job for job in _read(connection) if job.status == IN_PROGRESS]
    for job in interrupted:
        fail(engine, job, "InternalServerError", _INTERRUPTED)


def start(engine: SqliteEngine, name: str, run: Callable[[threading.Event], None], *, now: bool) -> None:
    """Run a job in this thread, or in another one; `run` checks the event between its steps."""
    with _lock:
        threads = _threads.setdefault(engine, _Threads())
    if now:
        run(threads.stopped)
        return

    def target() -> None:
        try:
            # If the file cannot be written, the next engine records the failure.
            with contextlib.suppress(EngineError):
                run(threads.stopped)
        finally:
            with _lock:
                threads.running.discard(thread)

    thread = threading.Thread(target=target, name=name, daemon=True)
    with _lock:
        threads.running.add(thread)
    thread.start()


def stop(engine: SqliteEngine) -> None:
    """Stop the jobs of an engine before it is closed; each ends as FAILED."""
    with _lock:
        threads = _threads.get(engine)
        running = [] if threads is None else list(threads.running)
    if threads is not None:
        threads.stopped.set()
    for thread in running:
        if thread is not threading.current_thread():
            thread.join()


def check_running(stopped: threading.Event) -> None:
    """Raise JobError if the engine is being closed."""
    if stopped.is_set():
        raise JobError("InternalServerError", "The engine was closed before the job was complete.")


def _read(connection: sqlite3.Connection, where: str = "", values: tuple[Any, ...] = ()) -> list[Job]:
    if layout.layout_of(connection) < 4:
        # A file of an older layout, opened for reading only.
        return []
    jobs = []
    for arn, text, crc in connection.execute(f"SELECT arn, record, crc FROM transfers {where}", values):
        if not isinstance(text, str) or crc32(text.encode(), crc32(arn.encode())) != crc:
            raise Corrupt(f"The record of {arn} does not match its checksum.")
        jobs.append(Job(arn=arn, **json.loads(text)))
    return jobs
