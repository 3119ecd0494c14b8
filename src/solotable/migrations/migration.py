"""Migration: the object that commands, workers, routers and comparisons of a migration share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from solotable._entities.declare.table import Table
from solotable._flows.scope import Scope
from solotable._protocol.engine import Engine
from solotable._protocol.requests import ConditionCheck, WriteAction
from solotable._store import Database
from solotable._values import Item
from solotable.errors import DataError

from . import commands
from .apply import repair
from .mapping import DeadLetter
from .status import Status, apply_cursor, lag_of, status
from .switching import ending
from .switching.ending import Ended
from .switching.switch import Switched, SwitchOptions, switch_writes
from .threads import work
from .workflow import control, dead_letters, fences
from .workflow.control import ControlRecord
from .workflow.sides import CONTROL_TABLE, Side
from .workflow.states import SideName, State

if TYPE_CHECKING:
    from .mapping import Mapping, Source

ResultT = TypeVar("ResultT")


class Migration:
    """A migration from the tables of a mapping's sources to its target table.

    - `sources` is a store or an engine that has the source tables.
    - `target` is the store of the mapping's target table.
    - `control_table` names the small table, on each engine, with the migration's own items.

    Both sides may be on one engine. The object has no state: the control record has it, so any number of
    processes can create the same migration and work on it.
    """

    def __init__(
        self,
        name: str,
        mapping: Mapping,
        *,
        sources: Database | Engine,
        target: Database,
        control_table: str = CONTROL_TABLE,
    ) -> None:
        if not name or "#" in name:
            raise DataError(f"A migration's name is not empty and has no '#', got {name!r}.")
        self.name = name
        self.mapping = mapping
        self.store = target
        self.sources = sources
        sources_scope = sources.scope if isinstance(sources, Database) else target.scope
        self.source = _side(
            "source",
            sources.engine if isinstance(sources, Database) else sources,
            sources_scope if isinstance(sources, Database) else replace(sources_scope, names={}),
            {each: _table_of(source) for each, source in mapping.sources.items()},
            control_table,
        )
        tables = {mapping.target.name: mapping.target}
        self.target = _side("target", target.engine, target.scope, tables, control_table)

    def side(self, name: SideName) -> Side:
        """Return a side by its name."""
        return self.source if name == "source" else self.target

    def record(self) -> ControlRecord:
        """Read the control record, or raise MigrationError if the migration does not exist."""
        return self.target.run(control.require_record(self.target, self.name))

    def find_record(self) -> ControlRecord | None:
        """Read the control record; None if the migration does not exist."""
        return self.target.run(control.load_record(self.target, self.name))

    def transition(self, record: ControlRecord, state: State | None = None, **changes: Any) -> ControlRecord:
        """Change the control record, or raise MigrationConflict if another process changed it first."""
        return self.target.run(control.transition(self.target, record, state, **changes))

    def fences_of(self, side: SideName) -> list[tuple[str, Item]]:
        """Return the table and the key of each fence item of a side."""
        return fences.fences_of(self.side(side), self.name)

    def fence_check(self, side: SideName) -> ConditionCheck:
        """Return the check of a transaction that a side takes writes."""
        return fences.fence_check(self.side(side), self.name)

    def guard(self, side: SideName, actions: Sequence[WriteAction]) -> list[WriteAction]:
        """Return what a client's transaction with these actions adds while writes are switched."""
        return fences.guard(self.side(side), self.name, actions)

    def create(
        self,
        *,
        segments: int = 4,
        rate: float | None = None,
        window_seconds: float = 60.0,
        allow_non_empty: bool = False,
        samples: int = 100,
        dry_run: bool = False,
    ) -> ControlRecord:
        """Check the mapping and the tables, and store the control record.

        - `segments` is the number of segments of each source's Scan, which workers share.
        - `rate` limits the write units in a second, of all workers together.
        - `window_seconds` is how long the copy runs before changes are applied again.
        - `allow_non_empty` migrates beside items of the target, which are never overwritten.
        - `samples` items of each source check the mapping.
        - `dry_run` checks, and stores nothing.
        """
        return commands.create(
            self,
            segments=segments,
            rate=rate,
            window_seconds=window_seconds,
            allow_non_empty=allow_non_empty,
            samples=samples,
            dry_run=dry_run,
        )

    def start(self, *, copy_again: bool = False) -> ControlRecord:
        """Start or resume; `copy_again` copies everything once more."""
        return commands.start(self, copy_again=copy_again)

    def stop(self) -> ControlRecord:
        """Stop the workers; `start` resumes where they were."""
        return commands.stop(self)

    def work(
        self,
        *,
        workers: int = 1,
        until: Callable[[ControlRecord], bool] | None = None,
        poll_seconds: float = 0.2,
        stop: threading.Event | None = None,
    ) -> ControlRecord | None:
        """Work in some threads until the migration ends, `until` is true of its record, or `stop` is set."""
        return work(self, workers=workers, until=until, poll_seconds=poll_seconds, stop=stop)

    def status(self) -> Status:
        """Return the state, the progress of the copy, the lag and the number of dead letters."""
        return status(self)

    def lag(self, record: ControlRecord | None = None) -> float | None:
        """Return the seconds by which the replication is behind; None if no worker applies changes."""
        record = self.record() if record is None else record
        return lag_of(apply_cursor(self, record), self.target.clock())

    def dead_letters(self) -> list[DeadLetter]:
        """Return the source items that could not be migrated, with the cause."""
        return self.target.run(dead_letters.dead_letters(self.target, self.name))

    def reconcile(self, keys: Sequence[tuple[str, Item]]) -> int:
        """Make the outputs of source items what the items are now; return the number of writes.

        `keys` are names of tables of the mapping and primary keys: of sources while the sources take writes,
        of the target afterwards. The keys of dead letters can be reconciled after their cause is repaired.
        """
        return repair.reconcile(self, keys)

    def set_rate(self, rate: float | None) -> ControlRecord:
        """Change the limit of write units in a second, while workers run; None removes it."""
        return commands.set_rate(self, rate)

    def mirror(self, percent: float) -> ControlRecord:
        """Repeat a share of the reads on the other side, and compare."""
        return commands.mirror(self, percent)

    def switch_reads(self, percent: float, *, entity: str | None = None) -> ControlRecord:
        """Let the target serve a share of the reads, of all entities or of one by its class name."""
        return commands.switch_reads(self, percent, entity=entity)

    def record_diff(self, *, compared: int, differences: int, flips: int) -> ControlRecord:
        """Store the outcome of a comparison that began when the record had these `flips`."""
        return commands.record_diff(self, compared=compared, differences=differences, flips=flips)

    def switch_writes(self, options: SwitchOptions | None = None) -> Switched:
        """Switch the writes to the target; the target's writes are replicated to the sources from then on."""
        return switch_writes(self, "target", options or SwitchOptions())

    def reverse(self, options: SwitchOptions | None = None) -> Switched:
        """Switch the writes back to the sources; nothing that the target took is lost."""
        return switch_writes(self, "source", options or SwitchOptions())

    def cancel(self, *, dry_run: bool = False) -> Ended:
        """Remove everything that the migration wrote; allowed before reads or writes are switched."""
        return ending.cancel(self, dry_run=dry_run)

    def complete(
        self, *, keep_data: bool = False, park_days: float | None = None, dry_run: bool = False
    ) -> Ended:
        """End the migration: delete the source data, keep it, or park it until a second `complete`."""
        return ending.complete(self, keep_data=keep_data, park_days=park_days, dry_run=dry_run)

    def __repr__(self) -> str:
        return f"Migration({self.name!r})"


def _side(name: SideName, engine: Engine, scope: Scope, tables: Dict[str, Table], control_table: str) -> Side:
    names = {each: scope.names.get(each, each) for each in tables}
    return Side(
        name=name,
        engine=engine,
        scope=replace(scope.of_admin(), names=names, tables=tuple(tables.values())),
        tables=tables,
        key_names={names[each]: table.key_names for each, table in tables.items()},
        control=control_table,
    )


def _table_of(source: Source) -> Table:
    """Return the table of a source; the types of its key attributes do not matter here."""
    if source.table is not None:
        return source.table
    partition, *sort = source.key_names
    return Table(source.name, partition=partition, sort=sort[0] if sort else None)
