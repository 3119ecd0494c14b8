"""Ship a database file: a snapshot, then every committed page, at most a moment behind.

The shipper reads SQLite's write-ahead log while other processes write. Its read transaction keeps frames in
the log until they are shipped. The transaction moves on under the lock of the file, so no commit or
checkpoint comes between. The shipper never changes the database; it only runs checkpoints.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from solotable.engines.sqlite.file.file_lock import FileLock
from solotable.engines.sqlite.tables import layout
from solotable.errors import DataError, EngineError, SolotableError
from solotable.locations import Location

from .archive import Archive, in_use, newest_header
from .records import LARGEST_SEGMENT, RecordHeader, digest, pack_pages
from .snapshot import SnapshotThread, connect, store_snapshot
from .wal import LogDiscontinuity, LogPosition, frame_checksum, read_frames, read_position

_LOCK_SECONDS = 30.0
_FIRST_BACKOFF_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippingLimits:
    """When a shipper cuts a segment, lets the log continue, and makes another snapshot."""

    #: The most pages of one segment: 64 MB of 4 KB pages.
    segment_pages: int = 16_384
    #: The read transaction is renewed when it keeps this many frames in the log.
    held_frames: int = 256
    #: A checkpoint runs when the log has this many frames: 16 MB.
    checkpoint_frames: int = 4_096
    #: While the location fails, the log grows to this many frames (1 GB); then a new generation begins.
    most_frames: int = 262_144
    snapshot_seconds: float = 86_400.0
    #: How often to check that no other shipper has begun a generation at the location.
    check_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """What has been shipped so far."""

    generation: str
    sequence: int
    #: Segments and bytes since the shipper started.
    segments: int
    bytes: int
    #: Microseconds since the epoch; everything committed before is shipped.
    micros: int


class Shipper:
    """Ships one database file to one location. Several shippers must not use one location."""

    def __init__(
        self,
        path: str,
        location: Location,
        *,
        limits: ShippingLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not Path(path).is_file():
            raise DataError(f"{path} does not exist; pass a database file.")
        self._path = os.path.realpath(path)
        self._archive = Archive(location)
        self._clock = clock
        self._limits = limits or ShippingLimits()
        self._file_lock = FileLock(f"{self._path}-lock", timeout_seconds=_LOCK_SECONDS)
        self._reader = connect(self._path)
        #: Where the read transaction began: the log keeps every frame after it.
        self._mark: LogPosition
        #: The last record that is stored; its position may be behind the mark while an upload fails.
        self._last: RecordHeader
        self._page_size = 0
        self._segments = self._bytes = 0
        self._micros = 0
        #: The latest time in a record, which no later record goes below.
        self._latest = 0
        #: Pages that are read but not stored yet.
        self._unsent: list[tuple[RecordHeader, bytes]] = []
        self._snapshot: SnapshotThread | None = None
        #: The newest stored snapshot.
        self._snapshot_at: RecordHeader
        #: When it was made, by the clock.
        self._snapshot_micros = 0
        self._checked_at = time.monotonic()
        self._pid = os.getpid()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def ship(self) -> Shipped:
        """Ship what was committed since the last call."""
        if os.getpid() != self._pid:
            raise EngineError("This process was forked from one with a Shipper; open another one in it.")
        try:
            self._send()
            self._read()
            self._send()
            position = self._last.position
            held = position.frame - (self._mark.frame if position.salts == self._mark.salts else 0)
            if held >= self._limits.held_frames or position.frame >= self._limits.checkpoint_frames:
                self._renew()
            self._look_after_snapshot()
        except LogDiscontinuity:
            self._begin_generation()
        return self.progress

    @property
    def progress(self) -> Shipped:
        """What has been shipped so far."""
        return Shipped(
            generation=self._last.generation,
            sequence=self._last.sequence,
            segments=self._segments,
            bytes=self._bytes,
            micros=self._micros,
        )

    def run(
        self,
        stop: threading.Event,
        *,
        interval_seconds: float = 0.5,
        progress: Callable[[Shipped], None] | None = None,
        problem: Callable[[Exception], None] | None = None,
    ) -> None:
        """Ship until `stop` is set. A location that fails is tried again, later and later."""
        wait = 0.0
        while True:
            is_last = stop.wait(wait)
            try:
                shipped = self.ship()
            except (SolotableError, OSError) as error:
                if is_last:
                    raise
                self._let_log_continue()
                if problem is not None:
                    problem(error)
                wait = min(max(_FIRST_BACKOFF_SECONDS, 2 * wait), _LONGEST_BACKOFF_SECONDS)
            else:
                if progress is not None:
                    progress(shipped)
                wait = interval_seconds
            if is_last:
                return

    def close(self) -> None:
        """End the read transaction, and wait for a snapshot that is being made."""
        if os.getpid() != self._pid:
            return  # the connection is the parent's
        if self._snapshot is not None:
            self._snapshot.join()
            self._snapshot = None
        # The last connection to a file checkpoints it when it closes.
        with self._file_lock:
            self._reader.close()
        self._file_lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        if not layout.is_ours(self._reader, self._path):
            raise DataError(f"{self._path} is empty; pass a database file.")
        # An empty log does not say it.
        (self._page_size,) = self._reader.execute("PRAGMA page_size").fetchone()
        if self._limits.segment_pages * (self._page_size + 4) > LARGEST_SEGMENT:
            raise DataError(f"segment_pages is too large for pages of {self._page_size:,} bytes.")
        with self._file_lock:
            self._mark = self._begin()
            last = self._find_last()
            if last is not None:
                self._last = last
                # Now: once the lock is free, a writer may start the log over.
                self._read()
        if last is None:
            self._begin_generation()
        else:
            newest = self._archive.snapshots(last.generation)[-1]
            self._snapshot_at = self._archive.snapshot_header(last.generation, newest)
            self._snapshot_micros = self._snapshot_at.micros

    def _begin_generation(self) -> None:
        """Store a snapshot of the database; segments follow it."""
        self._unsent.clear()
        with self._file_lock:
            if self._reader.in_transaction:
                self._reader.execute("COMMIT")
            micros = self._now()
            self._mark = self._begin()
        self._latest += 1  # the names of two generations differ, also on a clock that stands still
        generation = f"{self._now():016d}-{secrets.token_hex(4)}"
        header = self._header(generation, 0, self._mark, micros, previous="")
        self._last = self._snapshot_at = store_snapshot(self._archive, header, self._reader)
        self._micros = micros
        self._snapshot_micros = self._read_clock()

    def _find_last(self) -> RecordHeader | None:
        """Return the last stored record if the log has every frame since; otherwise None."""
        generations = self._archive.generations()
        if not generations:
            return None
        last = newest_header(self._archive)
        self._latest = max(last.micros, int(generations[-1][:16]))
        mark = self._mark
        if last.sequence and not self._archive.segments(generations[-1]):
            return None  # the segment whose digest the next one needs is gone
        if not last.complete or last.frame == 0 or last.salts != mark.salts or last.frame > mark.frame:
            return None
        found = frame_checksum(self._path, last.frame, last.page_size)
        return last if found == (last.salts, last.checksum) else None

    def _begin(self) -> LogPosition:
        """Begin a read transaction, under the lock of the file, and return its position."""
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return read_position(self._path)

    def _read(self) -> None:
        """Read the committed pages since the last segment, into segments that are yet to be stored."""
        micros = self._now()
        position = read_position(self._path)
        last = self._newest
        if (position.salts, position.frame) == (last.salts, last.frame):
            if not self._unsent:
                self._micros = micros
            return
        after = last.frame
        if position.salts != last.salts:
            # The log has started over. While the read transaction was the newest reader, that needs that no
            # frame came after it: so the frames of the new log are all that is missing.
            if (last.salts, last.frame) != (self._mark.salts, self._mark.frame):
                raise LogDiscontinuity(f"{self._path}-wal started over before its frames were shipped.")
            after = 0
        pages: dict[int, bytes] = {}
        frame = after
        for page, content in read_frames(self._path, position, after=after):
            frame += 1
            pages[page] = content
            if len(pages) == self._limits.segment_pages and frame < position.frame:
                part = replace(position, frame=frame, checksum=(0, 0))
                self._add(part, pages, micros, complete=False)
                pages = {}
        self._add(position, pages, micros, complete=True)

    @property
    def _newest(self) -> RecordHeader:
        """The header of the last segment that was read, whether it is stored or not."""
        return self._unsent[-1][0] if self._unsent else self._last

    def _add(self, position: LogPosition, pages: dict[int, bytes], micros: int, *, complete: bool) -> None:
        last = self._newest
        payload = pack_pages(pages)
        header = replace(
            self._header(last.generation, last.sequence + 1, position, micros, previous=last.digest),
            complete=complete,
            payload=digest(payload),
        )
        self._unsent.append((header, payload))

    def _send(self) -> None:
        """Store the segments that were read, in order."""
        if self._unsent and time.monotonic() - self._checked_at >= self._limits.check_seconds:
            if self._archive.all_generations()[-1:] > [self._last.generation]:
                raise in_use(self._archive.location)
            self._checked_at = time.monotonic()
        while self._unsent:
            header, payload = self._unsent[0]
            self._archive.write_segment(header, payload)
            self._last = header
            self._unsent.pop(0)
            self._segments += 1
            self._bytes += len(payload)
            if header.complete:
                self._micros = header.micros

    def _renew(self) -> None:
        """Begin another read transaction; run a checkpoint if the log is long, so that it can start over."""
        with self._file_lock:
            self._read()
            self._reader.execute("COMMIT")
            if self._newest.frame >= self._limits.checkpoint_frames:
                self._reader.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._mark = self._begin()
            if self._snapshot is None and self._is_snapshot_due():
                self._snapshot = self._begin_snapshot()
        self._send()

    def _let_log_continue(self) -> None:
        """End the read transaction if the location has failed for so long that the log is too large."""
        with suppress(EngineError):
            if self._reader.in_transaction and read_position(self._path).frame > self._limits.most_frames:
                self._reader.execute("COMMIT")
                # No frame has this position, so the next call begins a generation.
                self._mark = replace(self._mark, frame=-1)
                self._unsent.clear()

    def _is_snapshot_due(self) -> bool:
        age = self._read_clock() - self._snapshot_micros
        # A negative age: the clock was set back.
        is_old = age < 0 or age >= self._limits.snapshot_seconds * 1e6
        return is_old and self._newest.sequence > self._snapshot_at.sequence

    def _begin_snapshot(self) -> SnapshotThread:
        """Begin a snapshot of the position that was read under the lock which the caller holds."""
        last = self._newest
        reader = connect(self._path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return SnapshotThread(self._archive, replace(last, previous=last.digest), reader)

    def _look_after_snapshot(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            if self._is_snapshot_due():
                self._renew()
            return
        if snapshot.is_alive():
            return
        self._snapshot = None
        with self._file_lock:
            snapshot.reader.close()
        if snapshot.error is not None:
            raise snapshot.error
        self._snapshot_at = snapshot.header
        self._snapshot_micros = self._read_clock()

    def _header(
        self, generation: str, sequence: int, position: LogPosition, micros: int, *, previous: str
    ) -> RecordHeader:
        return RecordHeader(
            generation=generation,
            sequence=sequence,
            micros=micros,
            salts=position.salts,
            frame=position.frame,
            checksum=position.checksum,
            pages=position.pages,
            page_size=self._page_size,
            complete=True,
            payload="",
            previous=previous,
        )

    def _now(self) -> int:
        """Return the time, which never goes back: restores and names of generations go by it."""
        self._latest = max(self._latest, self._read_clock())
        return self._latest

    def _read_clock(self) -> int:
        return int(self._clock() * 1_000_000)
