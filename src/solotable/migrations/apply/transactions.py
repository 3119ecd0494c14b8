"""Write decisions in transactions that move a fenced cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from solotable._flows.retry import Flow, Sleep
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.migrations.workflow import cursors
from solotable.migrations.workflow.cursors import Cursor, Written, write
from solotable.migrations.workflow.pace import Pacer
from solotable.migrations.workflow.sides import Side

from .reconcile import Decision

#: The cursor's update is an action too.
MOST_DECISIONS = MOST_TRANSACTION_ACTIONS - 1
#: DynamoDB: the items of a transaction have at most 4 MB; leave space for the cursor.
MOST_BYTES = 3_500_000


def chunks(decisions: Sequence[Decision]) -> Iterator[list[Decision]]:
    """Yield the decisions of each transaction, in order: each output at most once, within the limits."""
    chunk: list[Decision] = []
    outputs: set[Any] = set()
    size = 0
    for decision in decisions:
        full = len(chunk) == MOST_DECISIONS or size + decision.size > MOST_BYTES
        if chunk and (full or decision.output in outputs):
            yield chunk
            chunk, outputs, size = [], set(), 0
        chunk.append(decision)
        outputs.add(decision.output)
        size += decision.size
    if chunk:
        yield chunk


class CursorWriter:
    """Writes transactions under one cursor, at a pace."""

    def __init__(self, side: Side, cursor: Cursor, pacer: Pacer) -> None:
        self._side = side
        self._pacer = pacer
        self.cursor = cursor
        self.units = 0.0

    def write(self, decisions: Sequence[Decision], **data: Any) -> None:
        """Write decisions in one transaction and save the position; wait for the pace."""
        actions = [decision.action for decision in decisions]
        written: Written = self._side.run(write(self._side, self.cursor, actions, **data))
        self.cursor = written.cursor
        self.units += written.units
        for _ in range(written.throttled):
            self._pacer.throttle()
        pause = self._pacer.spend(written.units)
        if pause > 0:
            self._side.run(_pause(pause))

    def keep(self) -> None:
        """Extend the lease if a third of it has passed: rules may be slow."""
        if self._side.clock() > self.cursor.until - cursors.LEASE_SECONDS * 2 / 3:
            self.write([])

    def write_all(self, decisions: Sequence[Decision], **data: Any) -> None:
        """Write decisions in as many transactions as needed; the last one saves the position."""
        parts = list(chunks(decisions))
        for part in parts[:-1]:
            self.write(part)
        self.write(parts[-1] if parts else [], **data)


def _pause(seconds: float) -> Flow[None]:
    yield Sleep(seconds)
