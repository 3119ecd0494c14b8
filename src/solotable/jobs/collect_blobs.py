"""Delete the objects of offloaded fields to which no item refers any more.

An object is deleted if it is older than the grace period, if no item of the table contains its checksum
(also soft-deleted items, snapshots of a history, and events), and if no writer has touched it since. A store
stores or touches an object before it writes the item, so a write that takes less than the grace period never
loses its object.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from solotable._entities.codecs.opaque.offloading import object_prefix
from solotable._entities.declare.field_storage import BlobStorage, StoredObject
from solotable._entities.declare.table import Table
from solotable._flows.internal_items import only_table
from solotable._flows.jobs.backfill import Pace, paced
from solotable._flows.reads.scan import ScanPart
from solotable._flows.retry import Flow, send
from solotable._protocol.replies import SomeItem
from solotable._protocol.requests import Scan
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import DataError, DeclarationError

from .segments import SharedBudget, check_scan_options, pace_of_segment, run_segments

_AT_ONCE = 1_000
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_NAME = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobCollection:
    """What a run of `collect_blobs` found and deleted."""

    table: str
    dry_run: bool
    #: Objects of the table, or of the tenant, and those that are older than the grace period.
    objects: int = 0
    old: int = 0
    #: Items that were read.
    items: int = 0
    #: Objects that no item refers to, and their bytes. In a dry run, they are not deleted.
    unreferenced: int = 0
    unreferenced_bytes: int = 0
    deleted: int = 0
    #: Objects that a writer used again during the run.
    touched: int = 0
    #: Whether the whole table was read; otherwise nothing was deleted.
    done: bool = False


def collect_blobs(  # noqa: PLR0913 - the settings of a job, each by name
    db: AdminStore,
    table: Table | None = None,
    *,
    budget: int,
    rate: float | None = None,
    segments: int = 1,
    grace: timedelta = timedelta(days=1),
    tenant: str | None = None,
    dry_run: bool = False,
    allow_all: bool = False,
    progress: Callable[[BlobCollection], None] | None = None,
) -> BlobCollection:
    """Delete the objects of a table to which no item refers, and return what was deleted.

    Reads at most `budget` items; if the table has more, nothing is deleted. `rate` is the capacity units a
    second that it may take. `segments` are read at the same time, and as many objects deleted. `grace` must
    be longer than the longest write. `tenant` limits it to the objects of one tenant, such as an erased one.
    `allow_all` permits to delete every object; without it, a run that finds no reference at all raises
    DataError, because it probably reads another database than the writers.

    A run that was killed has deleted unreferenced objects only; run it again for the rest.
    """
    table = only_table(db.scope, table, "has the references")
    check_scan_options(rate=rate, segments=segments, budget=budget)
    if grace < timedelta(0):
        raise DataError(f"grace must not be negative, got {grace}.")
    collection = _Collection(
        db=db,
        table=table,
        storages=_storages_of(table),
        prefix=object_prefix(table.name, tenant),
        cutoff=datetime.fromtimestamp(db.scope.clock(), UTC) - grace,
        budget=SharedBudget(budget),
        show=progress or (lambda _: None),
        report=BlobCollection(table=table.name, dry_run=dry_run),
    )
    collection.list_old_objects()
    paces = [pace_of_segment(rate, segments, db.scope) for _ in range(segments)]
    run_segments(
        collection.budget,
        [partial(collection.read, number, segments, pace) for number, pace in enumerate(paces)],
    )
    report = collection.report
    if collection.unreferenced and collection.finished < segments:
        return report
    if not dry_run and collection.unreferenced and not (collection.is_any_referenced or tenant or allow_all):
        raise DataError(
            f"No item of table {table.name!r} refers to any of its {report.objects:,} objects; nothing was "
            f"deleted. Check that this is the writers' database; pass allow_all=True to delete every object."
        )
    collection.report = replace(report, done=True)
    collection.delete_unreferenced(segments)
    return collection.report


@dataclass(kw_only=True)
class _Collection:
    """One running collection, shared by the threads of its segments. It keeps checksums only, not names."""

    db: AdminStore
    table: Table
    storages: list[BlobStorage]
    prefix: str
    cutoff: datetime
    budget: SharedBudget
    show: Callable[[BlobCollection], None]
    report: BlobCollection
    #: Checksums of the old objects that no item is known to refer to, and of the others.
    unreferenced: set[bytes] = field(default_factory=set)
    young: set[bytes] = field(default_factory=set)
    is_any_referenced: bool = False
    #: Segments that are read to their end.
    finished: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def list_old_objects(self) -> None:
        """Note the checksums of the objects."""
        for _, found, digest in self._objects():
            is_old = found.modified <= self.cutoff
            (self.unreferenced if is_old else self.young).add(digest)
            report = self.report
            self.report = replace(report, objects=report.objects + 1, old=report.old + is_old)
            if self.report.objects % _AT_ONCE == 0:
                self.show(self.report)

    def read(self, segment: int, segments: int, pace: Pace | None) -> None:
        """Read the references of one segment, until its end or until the budget is used up."""
        start: Item | None = None
        while self.unreferenced and (budget := self.budget.take(_AT_ONCE)):
            part = ScanPart(segment=segment, segments=segments, start=start, budget=budget)
            items = 0
            try:
                page = run(_digests(self.db, self.table, part, pace), self.db.engine)
                items = page.items
            finally:
                self.budget.release(budget - items)
            start = page.last_key
            with self.lock:
                known = (page.digests & self.unreferenced) or (page.digests & self.young)
                self.is_any_referenced = self.is_any_referenced or bool(known)
                self.unreferenced -= page.digests
                self.finished += start is None
                self.report = replace(self.report, items=self.report.items + items)
                self.show(self.report)
            if start is None:
                return

    def delete_unreferenced(self, at_once: int) -> None:
        """List the objects again, and delete those that no item refers to; in a dry run, count them."""
        objects = (
            (storage, found) for storage, found, digest in self._objects() if digest in self.unreferenced
        )
        with ThreadPoolExecutor(at_once) as threads:
            while chunk := list(islice(objects, _AT_ONCE)):
                size = sum(found.size for _, found in chunk)
                report = self.report
                self.report = replace(
                    report,
                    unreferenced=report.unreferenced + len(chunk),
                    unreferenced_bytes=report.unreferenced_bytes + size,
                )
                if not report.dry_run:
                    for is_deleted in threads.map(self._delete, chunk):
                        report = self.report
                        self.report = replace(
                            report,
                            deleted=report.deleted + is_deleted,
                            touched=report.touched + (not is_deleted),
                        )
                        self.show(self.report)

    def _delete(self, at: tuple[BlobStorage, StoredObject]) -> bool:
        storage, found = at
        return found.modified <= self.cutoff and storage.delete(found.name, unless_modified_after=self.cutoff)

    def _objects(self) -> Iterator[tuple[BlobStorage, StoredObject, bytes]]:
        """Yield the objects of offloaded fields with their checksums; no other objects."""
        for storage in self.storages:
            for found in storage.list(self.prefix):
                digest = found.name.rpartition("/")[2]
                if _NAME.fullmatch(digest) is not None:
                    yield storage, found, bytes.fromhex(digest)


def _storages_of(table: Table) -> list[BlobStorage]:
    found: list[BlobStorage] = []
    for plan in table.plans.values():
        for marker in () if plan.blobs is None else plan.blobs.markers.values():
            if all(marker.storage is not each for each in found):
                found.append(marker.storage)
    if not found:
        raise DeclarationError(f"No entity of table {table.name!r} has an Offloaded field.")
    return found


@dataclass(frozen=True, slots=True)
class _DigestPage:
    digests: set[bytes]
    items: int
    last_key: Item | None


def _digests(db: AdminStore, table: Table, part: ScanPart, pace: Pace | None) -> Flow[_DigestPage]:
    """Return every checksum in the next page of a scan, at any place of its items."""
    request = Scan(
        table=db.scope.table(table),
        start=part.start,
        limit=part.budget,
        segment=part.segment if part.segments > 1 else None,
        segments=part.segments if part.segments > 1 else None,
        # Without a grace period, it must see every write that has ended.
        consistent=True,
        capacity="NONE" if pace is None else "TOTAL",
    )
    reply = yield from send(request, db.scope.retries)
    yield from paced(pace, reply.capacity)
    found: set[bytes] = set()
    for item in reply.items or ():
        found.update(map(bytes.fromhex, _DIGEST.findall(_text(item))))
    return _DigestPage(found, reply.scanned, reply.last_key or None)


def _text(item: SomeItem) -> str:
    return item.decode() if isinstance(item, bytes) else json.dumps(item)
