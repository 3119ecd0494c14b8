"""Delete the objects of offloaded fields to which no item refers any more.

An object is deleted if it is older than the grace period, if no item of the table contains its checksum
(also soft-deleted items, snapshots of a history, and events), and if no writer has touched it since. A store
stores or touches an object before it writes the item, so a write that takes less than the grace period never
loses its object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from solotable._entities.codecs.opaque.offloading import object_prefix
from solotable._entities.declare.field_storage import BlobStorage, StoredObject
from solotable._entities.declare.table import Table
from solotable._flows.internal_items import only_table
from solotable._flows.retry import Flow, send
from solotable._protocol.replies import SomeItem
from solotable._protocol.requests import Scan
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import DataError, DeclarationError

_AT_ONCE = 1_000
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


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
    grace: timedelta = timedelta(days=1),
    tenant: str | None = None,
    dry_run: bool = False,
    allow_all: bool = False,
    progress: Callable[[BlobCollection], None] | None = None,
) -> BlobCollection:
    """Delete the objects of a table to which no item refers, and return what was deleted.

    Reads at most `budget` items; if the table has more, nothing is deleted. `grace` must be longer than the
    longest write. `tenant` limits it to the objects of one tenant, such as an erased one. `allow_all` permits
    to delete every object; without it, a run that finds no reference at all raises DataError, because it
    probably reads another database than the writers.
    """
    table = only_table(db.scope, table, "has the references")
    if grace < timedelta(0) or budget < 1:
        raise DataError(f"grace must not be negative and budget at least 1, got {grace} and {budget}.")
    storages = _storages_of(table)
    cutoff = datetime.fromtimestamp(db.scope.clock(), UTC) - grace
    show = progress or (lambda _: None)
    objects = _Objects()
    for number, storage in enumerate(storages):
        for found in storage.list(object_prefix(table.name, tenant)):
            objects.add(number, found, is_old=found.modified <= cutoff)
    report = BlobCollection(
        table=table.name, dry_run=dry_run, objects=objects.count, old=len(objects.unreferenced)
    )
    start: Item | None = None
    while objects.unreferenced:
        if report.items >= budget:
            return report
        page = run(_digests(db, table, start, min(_AT_ONCE, budget - report.items)), db.engine)
        objects.keep(page.digests)
        report, start = replace(report, items=report.items + page.items), page.last_key
        show(report)
        if start is None:
            break
    left = objects.unreferenced
    size = sum(each.size for each in left.values())
    report = replace(report, done=True, unreferenced=len(left), unreferenced_bytes=size)
    if dry_run:
        return report
    if left and not (objects.is_any_referenced or tenant or allow_all):
        raise DataError(
            f"No item of table {table.name!r} refers to any of its {objects.count:,} objects; nothing was "
            f"deleted. Check that this is the writers' database; pass allow_all=True to delete every object."
        )
    for number, name in left:
        if storages[number].delete(name, unless_modified_after=cutoff):
            report = replace(report, deleted=report.deleted + 1)
        else:
            report = replace(report, touched=report.touched + 1)
        show(report)
    return report


class _Objects:
    """The objects of a table, and those that no item is known to refer to."""

    def __init__(self) -> None:
        self.count = 0
        self.is_any_referenced = False
        #: Old objects by the number of their storage and their name.
        self.unreferenced: dict[tuple[int, str], StoredObject] = {}
        self._by_digest: dict[bytes, list[tuple[int, str]]] = {}

    def add(self, number: int, found: StoredObject, *, is_old: bool) -> None:
        """Add an object of a storage."""
        self.count += 1
        same = self._by_digest.setdefault(found.name.rpartition("/")[2].encode(), [])
        if is_old:
            same.append((number, found.name))
            self.unreferenced[number, found.name] = found

    def keep(self, digests: set[bytes]) -> None:
        """Keep the objects with these checksums."""
        for digest in digests & self._by_digest.keys():
            self.is_any_referenced = True
            for each in self._by_digest.pop(digest):
                del self.unreferenced[each]


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


def _digests(db: AdminStore, table: Table, start: Item | None, limit: int) -> Flow[_DigestPage]:
    """Return every checksum in the next page of a scan, at any place of its items."""
    # A consistent read: without a grace period, it must see every write that has ended.
    request = Scan(table=db.scope.table(table), start=start, limit=limit, consistent=True)
    reply = yield from send(request, db.scope.retries)
    found: set[bytes] = set()
    for item in reply.items or ():
        found.update(_DIGEST.findall(_text(item)))
    return _DigestPage(found, reply.scanned, reply.last_key or None)


def _text(item: SomeItem) -> bytes:
    return item if isinstance(item, bytes) else json.dumps(item).encode()
