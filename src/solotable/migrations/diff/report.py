"""The result of a comparison: counts by entity, and samples of differences without secret values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from solotable._entities.declare.table import Table
from solotable._values import AttributeValue, Item
from solotable.migrations.mapping import DeadLetter

DifferenceKind = Literal["missing", "extra", "changed", "conflict"]
_LONGEST_SHOWN = 120
_MASKED = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An item that differs: missing, extra, changed, or the output of two source items (conflict)."""

    kind: DifferenceKind
    entity: str
    table: str
    key: Item
    #: The source items that the item comes from: the table in the mapping, and the key.
    origins: tuple[tuple[str, Item], ...] = ()
    #: What the other side should have, and what it has, without the attributes of the migration.
    expected: Item | None = field(default=None, repr=False)
    actual: Item | None = field(default=None, repr=False)

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes that differ."""
        one, other = self.expected or {}, self.actual or {}
        return sorted(name for name in {**one, **other} if one.get(name) != other.get(name))

    def shown(self, table: Table) -> dict[str, Any]:
        """Return the difference for a report; values of encrypted fields are masked."""
        plan = table.plans.get(self.entity)
        secret = set() if plan is None or plan.cipher is None else set(plan.cipher.markers)
        found: dict[str, Any] = {
            "kind": self.kind,
            "entity": self.entity,
            "table": self.table,
            "key": self.key,
        }
        if self.origins:
            found["origins"] = [{"source": source, "key": key} for source, key in self.origins]
        if self.kind == "changed":
            one, other = self.expected or {}, self.actual or {}
            found["attributes"] = {
                name: _MASKED
                if name in secret
                else {"expected": _short(one, name), "actual": _short(other, name)}
                for name in self.attributes
            }
        return found


def _short(item: Item, name: str) -> AttributeValue | str | None:
    value = item.get(name)
    if value is None or len(repr(value)) <= _LONGEST_SHOWN:
        return value
    return repr(value)[:_LONGEST_SHOWN] + "..."


@dataclass(slots=True, kw_only=True)
class DiffReport:
    """What a comparison found."""

    #: Whether the sources serve, and the target is compared with them.
    forward: bool
    #: Items that the other side should have, and has.
    expected: int = 0
    actual: int = 0
    #: Differences by kind, and for each entity by kind.
    differences: dict[str, int] = field(default_factory=dict)
    by_entity: dict[str, dict[str, int]] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    dead_letters: int = 0
    dead_samples: list[DeadLetter] = field(default_factory=list)
    #: Items that changed in every attempt to read both sides.
    unsettled: int = 0
    #: Items that differed during the scan, and were equal when they were read again.
    settled: int = 0
    repaired: int = 0
    seconds: float = 0.0
    #: The number of switches before the comparison.
    flips: int = 0

    @property
    def total(self) -> int:
        """The number of differences."""
        return sum(self.differences.values())

    @property
    def is_equal(self) -> bool:
        """Whether both sides are equal, with nothing left out."""
        return self.total == 0 and self.unsettled == 0 and self.dead_letters == 0

    @property
    def exit_code(self) -> int:
        """0 for equal sides, 1 for differences or dead letters, 2 if some items never settled."""
        if self.total or self.dead_letters:
            return 1
        return 2 if self.unsettled else 0

    def count(self, difference: Difference) -> None:
        """Count a difference."""
        self.differences[difference.kind] = self.differences.get(difference.kind, 0) + 1
        of_entity = self.by_entity.setdefault(difference.entity, {})
        of_entity[difference.kind] = of_entity.get(difference.kind, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return {
            "equal": self.is_equal,
            "direction": "source to target" if self.forward else "target to source",
            "expected": self.expected,
            "actual": self.actual,
            "differences": self.differences,
            "by_entity": self.by_entity,
            "samples": self.samples,
            "dead_letters": self.dead_letters,
            "dead_samples": [
                {"source": each.source, "key": each.key, "cause": each.cause} for each in self.dead_samples
            ],
            "unsettled": self.unsettled,
            "settled": self.settled,
            "repaired": self.repaired,
            "seconds": round(self.seconds, 3),
        }
