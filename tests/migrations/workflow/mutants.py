"""Bugs planted in migrations, each with the scenario that must find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from solotable._expressions.ast import Exists
from solotable._flows.feed.checkpoints import Checkpoint
from solotable.migrations import worker
from solotable.migrations.apply import applier, reconcile, transactions
from solotable.migrations.copy import preparation, segment
from solotable.migrations.switching import ending, switch
from solotable.migrations.workflow import control, cursors, fences

from . import failures, races, switches, test_commands
from .lab import Lab

Patch = Callable[[pytest.MonkeyPatch], None]
_ALWAYS = Exists(("PK",))


@dataclass(frozen=True)
class Mutant:
    """A bug and the scenario that must fail with it."""

    name: str
    patch: Patch
    scenario: Callable[[Lab], None]


def _set(target: object, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(target, name, value)


def _nothing(*_arguments: Any, **_options: Any) -> None:
    return None


def _no_flow(*_arguments: Any, **_options: Any) -> Any:
    return
    yield


def _later_positions(direction: Any) -> dict[str, str]:
    """Positions after changes that belong to the copy."""
    now = direction.origin.clock() + 3600
    position = Checkpoint(shards=(), begun=now - 3600, since=now).render()
    return dict.fromkeys(direction.origin.tables, position)


def _position_before_the_data(self: Any, decisions: Any, **data: Any) -> None:
    self.write([], **data)
    for part in transactions.chunks(decisions):
        self.write(part)


def _take_any_window(side: Any, migration: str, kind: str, *, owner: str, window: Any = None) -> Any:
    return (yield from _TAKE(side, migration, kind, owner=owner))


def _last_image(self: Any, changes: Any) -> list[Any]:
    """The image of the last change, instead of the item as it is now."""
    current = _CURRENT(self, changes)
    return [
        change.images[-1] if change.images else item for change, item in zip(changes, current, strict=True)
    ]


def _removed_whole(self: Any, change: Any, key: Any, output: Any, stored: Any) -> None:
    self._delete(change, key, output, stored)


def _unconditional(self: Any, *arguments: Any) -> Any:
    decision: Any = _DECISION(self, *arguments)
    return replace(decision, action=replace(decision.action, condition=None))


def _no_wait(self: Any) -> None:
    self._set_fences(self._serving.name, is_open=True)


def _never_closed(self: Any, name: Any, *, is_open: bool) -> None:
    _SET_FENCES(self, name, is_open=True)


def _guard_without_journal(side: Any, name: str, actions: Any) -> list[Any]:
    del actions
    return [fences.fence_check(side, name)]


def _no_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(switch, "_MOST_BATCHES_BEFORE", 0)
    patch.setattr(switch._Switch, "_drain", lambda *_: 0)


def _not_needed(self: Any, record: Any, error: str, *, needs_copy: bool) -> None:
    del needs_copy
    _FAIL(self, record, error, needs_copy=False)


def _no_bury(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(applier.Applier, "_bury", _nothing)
    patch.setattr(segment.SegmentCopier, "_bury", _nothing)


def _without_touched(self: Any, change: Any) -> Mapping[Any, Any]:
    return {key: output for key, output in _FORMER(self, change).items() if output.kind != "part"}


_TAKE = cursors.take
_CURRENT = reconcile.Reconciler.read_current
_DECISION = segment.SegmentCopier._decision
_SET_FENCES = switch._Switch._set_fences
_FAIL = worker.Worker._fail
_FORMER = reconcile.Reconciler._former

MUTANTS = [
    Mutant(
        "the stream is opened after the scan",
        _set(preparation, "start_positions", _later_positions),
        races.change_between_scan_and_write,
    ),
    Mutant("copies are not fenced", _set(cursors, "_is_at", lambda _: _ALWAYS), races.paused_copy_worker),
    Mutant("changes are not fenced", _set(cursors, "_is_at", lambda _: _ALWAYS), races.paused_apply_worker),
    Mutant("a late request is executed", _set(cursors, "_is_at", lambda _: _ALWAYS), failures.late_request),
    Mutant(
        "the position is saved before the data",
        _set(transactions.CursorWriter, "write_all", _position_before_the_data),
        failures.killed_at_every_request,
    ),
    Mutant(
        "a closed window does not seize its segments",
        _set(worker.Worker, "_seize_segments", _nothing),
        races.paused_copy_worker_in_a_closed_window,
    ),
    Mutant(
        "a segment is taken in any window",
        _set(cursors, "take", _take_any_window),
        races.stale_worker_after_the_window,
    ),
    Mutant(
        "a change is applied by its image",
        _set(reconcile.Reconciler, "read_current", _last_image),
        races.repeated_stream,
    ),
    Mutant(
        "outputs of the old image are not deleted",
        _set(reconcile.Reconciler, "_remove", _nothing),
        races.shrinking_survey,
    ),
    Mutant(
        "a delete does not look at the owner",
        _set(reconcile.Reconciler, "_owns", lambda *_: True),
        races.key_that_moves,
    ),
    Mutant(
        "a put does not look whether its owner has gone",
        _set(reconcile.Reconciler, "_still_produces", lambda *_: False),
        test_commands.test_two_source_items_with_one_output_are_refused_or_a_dead_letter,
    ),
    Mutant(
        "a part is removed with the whole item",
        _set(reconcile.Reconciler, "_remove_part", _removed_whole),
        races.parts_of_one_item,
    ),
    Mutant(
        "a former part is forgotten",
        _set(reconcile.Reconciler, "_former", _without_touched),
        races.parts_of_one_item,
    ),
    Mutant("dead letters are dropped", _no_bury, races.bad_item),
    Mutant("old outputs are not swept", _set(worker, "sweep", lambda *_: 0), races.stream_that_lost_changes),
    Mutant(
        "a trimmed stream needs no copy",
        _set(worker.Worker, "_fail", _not_needed),
        races.stream_that_lost_changes,
    ),
    Mutant(
        "an existing item is overwritten",
        _set(segment.SegmentCopier, "_decision", _unconditional),
        test_commands.test_a_target_with_items_is_refused_and_its_items_are_never_overwritten,
    ),
    Mutant(
        "the switch does not wait for the routers",
        _set(switch._Switch, "_announce", _no_wait),
        switches.switch_and_reverse_under_load,
    ),
    Mutant(
        "the fences are not closed",
        _set(switch._Switch, "_set_fences", _never_closed),
        switches.late_guarded_write,
    ),
    Mutant("the switch does not drain", _no_drain, switches.switch_before_changes_are_applied),
    Mutant(
        "the journal is not written",
        _set(fences, "guard", _guard_without_journal),
        switches.stream_that_is_late,
    ),
    Mutant(
        "the journal is not reconciled",
        _set(switch._Switch, "_reconcile_journal", lambda *_: 0),
        switches.stream_that_is_late,
    ),
    Mutant(
        "the way back starts too late",
        _set(switch, "start_positions", _later_positions),
        switches.changes_of_the_target_return,
    ),
    Mutant(
        "an undone switch leaves the fences closed",
        _set(fences, "set_fences", _no_flow),
        switches.switch_that_cannot_drain,
    ),
    Mutant(
        "a killed switch is never undone",
        _set(worker, "undo_late_switch", lambda *_: False),
        switches.killed_switch,
    ),
    Mutant(
        "transitions do not look at the epoch",
        _set(control, "has_epoch", lambda _: _ALWAYS),
        test_commands.test_an_older_epoch_changes_nothing,
    ),
    Mutant(
        "complete does not look at the comparison",
        _set(ending, "complete_reasons", lambda *_: []),
        test_commands.test_complete_needs_a_comparison_after_the_switch_and_no_dead_letters,
    ),
    Mutant(
        "cancel leaves control items",
        _set(ending, "_delete_control_items", _nothing),
        test_commands.test_cancel_leaves_the_sources_and_no_item_of_the_migration,
    ),
]
