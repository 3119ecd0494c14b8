"""Compare what the serving side should have become with what the other side has.

Each side is scanned once, in any order: sums of digests by key show whether they are equal, in constant
memory. Only keys in unequal sums are looked at one by one. Such an item counts as a difference if it is the
same, and still differs, when both sides are read consistently again after the lag of the migration. So a
permanent difference is always found, and a write during the comparison never counts as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from solotable._values import Item
from solotable.errors import DataError
from solotable.migrations.mapping import DeadLetter, Output
from solotable.migrations.migration import Migration
from solotable.migrations.status import apply_cursor

from .digests import BucketSums, bytes_of_key, digest, key_bytes
from .report import Difference, DifferenceKind, DiffReport
from .sides import ActualSide, ExpectedSide, Origin, merged, origin_of, read_item, read_page, rows_of
from .state import DiffState

#: The most keys of unequal sums that are kept at once.
_MOST_ROWS = 200_000
_BUCKETS = 1 << 20
_SAVE_SECONDS = 5.0
_DEAD_SAMPLES = 20
#: How often, and how long, to wait for a worker that is behind.
_MOST_WAITS = 240
_WAIT_SECONDS = 0.25


@dataclass(slots=True)
class _Row:
    """A key in an unequal sum: where it comes from, and the sums of both sides."""

    table: str
    key: Item
    entity: str
    origins: list[Origin] = field(default_factory=list)
    expected: int = 0
    actual: int | None = None
    #: The source item that the stored item names as its owner.
    owner: Origin | None = None
    #: Both sides at the last reading: the digests of what is expected and of what is there.
    seen: tuple[int | None, int | None] | None = None


@dataclass(slots=True, kw_only=True)
class DiffOptions:
    """How a comparison runs."""

    forward: bool = True
    #: The number of switches before the comparison.
    flips: int = 0
    #: The file from which a killed comparison resumes.
    state: Path | None = None
    samples: int = 20
    #: The least seconds to wait before both sides of an item that differs are read again. While a worker
    #: runs, it is longer if the changes before the first reading are not applied by then.
    settle_seconds: float = 1.0
    #: How often an item is read that changes between two readings.
    rounds: int = 10
    sleep: Callable[[float], None] = time.sleep
    #: Gets the number of items read so far on both sides.
    progress: Callable[[int], None] | None = None
    #: Gets every difference; returns whether it was repaired.
    on_difference: Callable[[Difference], bool] | None = None
    save_seconds: float = _SAVE_SECONDS


def compare(migration: Migration, options: DiffOptions | None = None) -> DiffReport:
    """Compare both sides of a migration."""
    return _Comparison(migration, options or DiffOptions()).run()


class _Comparison:
    def __init__(self, migration: Migration, options: DiffOptions) -> None:
        self._migration = migration
        self._options = options
        self._expected = ExpectedSide(migration, forward=options.forward)
        self._actual = ActualSide(migration, forward=options.forward)
        self._report = DiffReport(forward=options.forward)
        self._saved = time.monotonic()

    def run(self) -> DiffReport:
        """Scan both sides, then look at the keys in unequal sums."""
        began = time.monotonic()
        state, report = self._load_state(), self._report
        if state.stage == "expected":
            self._sum(state, self._expected.tables, self._add_expected)
            state.stage, state.table, state.start = "actual", 0, None
        if state.stage == "actual":
            self._sum(state, self._actual.tables, self._add_actual)
            state.stage = "done"
            self._save(state, at_once=True)
        report.expected, report.actual, report.flips = state.expected, state.actual, state.flips
        report.dead_letters = state.dead_letters
        report.dead_samples = [DeadLetter(**each) for each in state.dead]
        for buckets in _groups(sorted(state.sums.unequal()), max(state.expected, state.actual)):
            self._settle(self._rows(buckets))
        if self._options.state is not None:
            self._options.state.unlink(missing_ok=True)
        report.seconds = time.monotonic() - began
        return report

    def _load_state(self) -> DiffState:
        path, migration = self._options.state, self._migration
        new = DiffState(
            migration=migration.name,
            fingerprint=migration.mapping.fingerprint,
            forward=self._options.forward,
            flips=self._options.flips,
        )
        if path is None or not path.exists():
            return new
        state = DiffState.load(path)
        for name in ("migration", "fingerprint", "forward", "flips"):
            if getattr(state, name) != getattr(new, name):
                raise DataError(
                    f"{path} is the state of another comparison ({name} is {getattr(state, name)!r}, not "
                    f"{getattr(new, name)!r}); delete it to begin again."
                )
        return state

    def _sum(
        self, state: DiffState, tables: list[str], add: Callable[[DiffState, str, Iterable[Item]], None]
    ) -> None:
        side = self._expected.side if state.stage == "expected" else self._actual.side
        while state.table < len(tables):
            page = read_page(side, tables[state.table], state.start)
            add(state, tables[state.table], page.items)
            state.start = page.following
            if page.following is None:
                state.table += 1
            self._save(state)
            if self._options.progress is not None:
                self._options.progress(state.expected + state.actual)

    def _add_expected(self, state: DiffState, table: str, items: Iterable[Item]) -> None:
        add, expected = state.sums.add, self._expected
        for item in items:
            outputs = expected.outputs(table, item)
            for key, output in outputs.items.items():
                add(bytes_of_key(key), expected.digest_of(output))
            state.expected += len(outputs.items)
            for letter in outputs.dead:
                state.dead_letters += 1
                if len(state.dead) < _DEAD_SAMPLES:
                    state.dead.append({"source": letter.source, "key": letter.key, "cause": letter.cause})

    def _add_actual(self, state: DiffState, table: str, items: Iterable[Item]) -> None:
        subtract, actual, names = state.sums.subtract, self._actual, self._actual.key_names(table)
        for item in items:
            if actual.includes(table, item):
                subtract(key_bytes(table, names, item), actual.digest_of(table, item))
                state.actual += 1

    def _save(self, state: DiffState, *, at_once: bool = False) -> None:
        path = self._options.state
        if path is None:
            return
        if at_once or time.monotonic() - self._saved >= self._options.save_seconds:
            state.save(path)
            self._saved = time.monotonic()

    def _rows(self, buckets: set[int]) -> dict[bytes, _Row]:
        """Scan both sides again, and return the keys of these buckets that differ.

        The side that is compared comes first: what a client deletes in between is gone when it is read again.
        """
        rows: dict[bytes, _Row] = {}
        bucket_of, actual, expected = BucketSums.bucket_of, self._actual, self._expected
        for table in actual.tables:
            names = actual.key_names(table)
            for items in self._pages(actual, table):
                for item in items:
                    key = key_bytes(table, names, item)
                    if bucket_of(key) in buckets and actual.includes(table, item):
                        row = _Row(table, {name: item[name] for name in names}, actual.tag_of(table, item))
                        row.actual = actual.digest_of(table, item)
                        row.owner = actual.owner_of(item)
                        rows[key] = row
        for table in expected.tables:
            for items in self._pages(expected, table):
                for key, output, item in rows_of(expected, table, items):
                    if bucket_of(key) in buckets:
                        found = rows.setdefault(key, _Row(output.table, output.key, output.entity))
                        found.origins.append(origin_of(expected, table, item))
                        found.expected += expected.digest_of(output)
        return {
            key: row for key, row in rows.items() if row.actual != row.expected % (1 << 64) or not row.origins
        }

    def _pages(self, side: ExpectedSide | ActualSide, table: str) -> Iterator[Iterable[Item]]:
        start: Item | None = None
        while True:
            page = read_page(side.side, table, start)
            yield page.items
            start = page.following
            if start is None:
                return

    def _settle(self, rows: dict[bytes, _Row]) -> None:
        """Read both sides of the keys that differ until each is equal, or differs twice in the same way."""
        read_at = 0.0
        for attempt in range(self._options.rounds):
            if not rows:
                return
            if attempt:
                self._wait_for_changes(read_at)
            read_at = self._migration.target.clock()
            left: dict[bytes, _Row] = {}
            for key, row in rows.items():
                difference = self._read(key, row)
                if difference is None:
                    self._report.settled += 1
                    continue
                seen = (
                    None if difference.expected is None else digest(difference.expected),
                    None if difference.actual is None else digest(difference.actual),
                )
                if row.seen == seen:
                    self._count(difference)
                else:
                    row.seen = seen
                    left[key] = row
            rows = left
        self._report.unsettled += len(rows)

    def _wait_for_changes(self, read_at: float) -> None:
        """Wait until a worker that runs has applied the changes before the last reading."""
        seconds, migration = self._options.settle_seconds, self._migration
        self._options.sleep(seconds)
        for _ in range(_MOST_WAITS if seconds else 0):
            record = migration.find_record()
            cursor = None if record is None else apply_cursor(migration, record)
            if cursor is None or cursor.owner is None or cursor.until < migration.target.clock():
                return
            if max(float(cursor.data.get(name) or 0) for name in ("drained_at", "last_at")) >= read_at:
                return
            self._options.sleep(min(seconds, _WAIT_SECONDS))

    def _count(self, difference: Difference) -> None:
        report, options = self._report, self._options
        report.count(difference)
        if len(report.samples) < options.samples:
            report.samples.append(difference.shown(self._migration.mapping.target))
        if options.on_difference is not None and options.on_difference(difference):
            report.repaired += 1

    def _read(self, key: bytes, row: _Row) -> Difference | None:
        """Read both sides of an item; None if they are equal."""
        if not row.origins and row.owner is not None:
            # The owner may have been created again since it was scanned.
            row.origins.append(row.owner)
        outputs = [output for origin in row.origins for output in self._outputs(key, origin)]
        stored = read_item(self._actual.side, row.table, row.key)
        actual = None if stored is None else self._actual.plain(row.table, stored)
        wanted = merged(outputs)
        expected = None if wanted is None else self._expected.plain(row.table, wanted)
        is_conflict = len(outputs) > 1 and any(output.kind != "part" for output in outputs)
        if (expected == actual and not is_conflict) or self._is_expired(expected, actual):
            return None
        kind: DifferenceKind = "changed"
        if is_conflict:
            kind = "conflict"
        elif expected is None or actual is None:
            kind = "extra" if expected is None else "missing"
        origins = tuple(dict.fromkeys((source, _Frozen(at)) for source, at in row.origins))
        return Difference(
            kind=kind,
            entity=row.entity,
            table=row.table,
            key=row.key,
            origins=tuple((source, at.item) for source, at in origins),
            expected=expected,
            actual=actual,
        )

    def _outputs(self, key: bytes, origin: Origin) -> list[Output]:
        table, at = origin
        item = read_item(self._expected.side, table, at)
        if item is None:
            return []
        outputs = self._expected.outputs(table, item).items
        return [output for each, output in outputs.items() if bytes_of_key(each) == key]

    def _is_expired(self, expected: Item | None, actual: Item | None) -> bool:
        """Return whether one side has only removed an expired item first."""
        name = self._migration.mapping.target.ttl
        item = expected or actual
        if name is None or item is None or (expected is not None and actual is not None):
            return False
        ends = item.get(name, {}).get("N")
        return ends is not None and float(ends) <= self._migration.target.clock()


@dataclass(frozen=True, slots=True)
class _Frozen:
    """An item as a member of a set."""

    item: Item

    def __hash__(self) -> int:
        return hash(repr(self.item))


def _groups(buckets: list[int], items: int) -> Iterator[set[int]]:
    """Yield the unequal buckets in groups whose keys fit in memory."""
    size = max(1, _MOST_ROWS * _BUCKETS // max(items + _BUCKETS, 1))
    for at in range(0, len(buckets), size):
        yield set(buckets[at : at + size])
