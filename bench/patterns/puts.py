"""What the data patterns cost: units as the design says, and time beside as many plain writes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from bench.clock import race
from bench.patterns.backfill import backfill_rate
from bench.patterns.purge import purge_rate
from solotable import Database, Entity, History, Key, Outbox, Table, Unique, Version, connect
from solotable._connect import over
from solotable.testing import RecordingEngine

_TEXT = "x" * 300

kept = Table("Patterns", stream=True, ttl="expires_at")


class Plain(Entity, table=kept):
    """A thing with nothing kept along."""

    key = Key("PLAIN#{name}", "PLAIN")
    name: str
    text: str = _TEXT
    version: Annotated[int, Version()] = 0


class Historic(Entity, table=kept):
    """A thing whose every version is kept."""

    key = Key("HISTORIC#{name}", "LATEST")
    history = History("v{version:06d}")
    name: str
    text: str = _TEXT
    version: Annotated[int, Version()] = 0


class Named(Entity, table=kept):
    """A thing with a unique name."""

    key = Key("NAMED#{name}", "NAMED")
    name: str
    title: Annotated[str, Unique()]
    text: str = _TEXT
    version: Annotated[int, Version()] = 0


class Told(Entity, table=kept):
    """A thing whose changes are told."""

    key = Key("TOLD#{name}", "TOLD")
    events = Outbox(title="name", snapshot=("name",))
    name: str
    text: str = _TEXT
    version: Annotated[int, Version()] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One pattern: what a put does, how many items it writes, and the units that the design predicts."""

    title: str
    put: Callable[[Database, int], object]
    writes: int
    units: str
    predicted: tuple[float, float]


class _Putting:
    """Puts one entity over and over, each time as it was stored last."""

    def __init__(self, first: Entity, change: Callable[[int], dict[str, Any]]) -> None:
        self._last = first
        self._change = change

    def __call__(self, db: Database, number: int) -> object:
        self._last = db.put(self._last.model_copy(update=self._change(number)))
        return self._last


def patterns() -> list[Pattern]:
    """Return the patterns; all items are under 1 KB, so an item is 2 units in a transaction."""
    text = {"text": _TEXT}
    return [
        Pattern(
            title="history",
            put=_Putting(Historic(name="h"), lambda _: text),
            writes=2,
            units="read 1 (what it replaces), write 2 items in a transaction",
            predicted=(1.0, 4.0),
        ),
        Pattern(
            title="unique, the value changes",
            put=_Putting(Named(name="u", title="t"), lambda number: {"title": f"t{number}"}),
            writes=3,
            units="read 1, write the item, take a lock, give one back",
            predicted=(1.0, 6.0),
        ),
        Pattern(
            title="outbox",
            put=_Putting(Told(name="o"), lambda _: text),
            writes=2,
            units="read 1, write the item and its event",
            predicted=(1.0, 4.0),
        ),
    ]


def measure(*, quick: bool) -> dict[str, dict[str, Any]]:
    """Return for each pattern its units beside the predicted ones, and its time beside plain writes."""
    figures: dict[str, dict[str, Any]] = {}
    for pattern in patterns():
        with connect("sqlite://", kept) as db:
            pattern.put(db, 0)
            pattern.put(db, 1)
            recorded = RecordingEngine(db.engine)
            pattern.put(over(recorded, [kept]), 2)
            spent = [record for record in recorded.journal.records if record.rcu or record.wcu]
            times = race(
                {
                    "pattern": _numbered(pattern.put, db),
                    "plain": _plain(db, pattern.writes),
                },
                rounds=5 if quick else 25,
                calls=100,
            )
        figures[pattern.title] = {
            **times,
            "writes": pattern.writes,
            "units": pattern.units,
            "rcu": sum(record.rcu for record in spent),
            "wcu": sum(record.wcu for record in spent),
            "predicted": pattern.predicted,
        }
    return figures


def _numbered(put: Callable[[Database, int], object], db: Database) -> Callable[[int], object]:
    # Three were put before, and a value must not come twice.
    return lambda number: put(db, number + 3)


def _plain(db: Database, writes: int) -> Callable[[int], object]:
    rows: list[Plain] = [Plain(name=str(number)) for number in range(writes)]

    def put(_: int) -> None:
        with db.transaction() as tx:
            rows[:] = [tx.put(row) for row in rows]

    return put


def rates(*, quick: bool) -> dict[str, float]:
    """Return items a second of the jobs."""
    items = 2_000 if quick else 100_000
    return {"purge": purge_rate(items), "backfill": backfill_rate(items)}
