"""Compare the sides of a migration and record the outcome, or repair what differs."""

from __future__ import annotations

from dataclasses import replace

from solotable._expressions.ast import Exists, Not
from solotable._flows.retry import send
from solotable._protocol.requests import DeleteItem
from solotable.errors import ConditionFailed
from solotable.migrations.apply.markers import MARKER, owner_text
from solotable.migrations.apply.reconcile import Change
from solotable.migrations.apply.repair import reconcile_changes
from solotable.migrations.mapping import Output, output_key
from solotable.migrations.migration import Migration

from .comparison import DiffOptions, compare
from .report import Difference, DiffReport

_BATCH = 100


def diff(migration: Migration, options: DiffOptions | None = None) -> DiffReport:
    """Compare what the serving side should have become with the other side, and record the outcome.

    The record is what `switch_writes` and `complete` require: equal sides since the last switch.
    """
    chosen = _directed(migration, options)
    report = compare(migration, chosen)
    migration.record_diff(
        compared=report.expected,
        differences=report.total + report.unsettled + report.dead_letters,
        flips=report.flips,
    )
    return report


def repair(migration: Migration, options: DiffOptions | None = None) -> DiffReport:
    """Compare the sides, and write again what differs; `repaired` of the report counts the items.

    The source item decides, as it is now. Some differences are left, because only a person can decide about
    them: two source items with one output, an item under the key of an output that no migration wrote, and
    items of a source that the target does not have. Compare again afterwards.
    """
    repairer = _Repairer(migration)
    chosen = replace(_directed(migration, options), on_difference=repairer.take)
    report = compare(migration, chosen)
    repairer.flush()
    report.repaired = repairer.repaired
    return report


def _directed(migration: Migration, options: DiffOptions | None) -> DiffOptions:
    record = migration.record()
    return replace(options or DiffOptions(), forward=record.writes == "source", flips=record.flips)


class _Repairer:
    """Collects differences, and reconciles them in batches."""

    def __init__(self, migration: Migration) -> None:
        self._migration = migration
        self._changes: list[Change] = []
        #: The owners of each difference that waits.
        self._waiting: list[set[str]] = []
        self.repaired = 0

    def take(self, difference: Difference) -> bool:
        """Take a difference; the repair may come later."""
        if difference.kind == "conflict":
            return False
        if not difference.origins:
            self.repaired += self._delete_unmarked(difference)
            return False
        output = Output(difference.table, difference.key, {}, difference.entity)
        touched = {output_key(output.table, output.key): output}
        self._changes += [
            Change(source=source, key=key, touched=dict(touched)) for source, key in difference.origins
        ]
        self._waiting.append({owner_text(source, key) for source, key in difference.origins})
        if len(self._waiting) == _BATCH:
            self.flush()
        return False

    def flush(self) -> None:
        """Reconcile what was taken."""
        if self._changes:
            reconcile_changes(self._migration, self._changes)
            # What cannot be written is a dead letter now.
            dead = {owner_text(letter.source, letter.key) for letter in self._migration.dead_letters()}
            self.repaired += sum(owners.isdisjoint(dead) for owners in self._waiting)
        self._changes, self._waiting = [], []

    def _delete_unmarked(self, difference: Difference) -> int:
        """Delete an item of the target that no source item has and no migration wrote."""
        side = self._migration.target
        if difference.table not in side.names:
            return 0
        request = DeleteItem(
            table=side.names[difference.table], key=difference.key, condition=Not(Exists((MARKER,)))
        )
        try:
            side.run(send(request, side.scope.retries))
        except ConditionFailed:
            return 0
        return 1
