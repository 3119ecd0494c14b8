"""Read and write units of items, and a meter that reports them as DynamoDB does.

The engine decides which items count, and at which size.
"""

from __future__ import annotations

from typing import Any, Literal

from solotable._values.limits import READ_STEP, WRITE_STEP

from .requests import CapacityReport

Transactional = Literal["read", "write"]
_SPLIT = {"read": "ReadCapacityUnits", "write": "WriteCapacityUnits"}


def read_units(size: int, consistent: bool, transactional: bool = False) -> float:
    """Return the units of reading so many bytes: 4 KB steps, at least one, halved if eventually consistent.

    >>> read_units(0, consistent=False), read_units(4097, consistent=True)
    (0.5, 2.0)
    """
    if size <= READ_STEP and not transactional:
        # Most items: every GetItem counts its units.
        return 1.0 if consistent else 0.5
    steps = max(1, -(-size // READ_STEP))
    if transactional:
        return steps * 2.0
    return float(steps) if consistent else steps / 2


def write_units(size: int, transactional: bool = False) -> float:
    """Return the units of writing so many bytes: 1 KB steps, at least one, doubled in a transaction.

    >>> write_units(1025), write_units(1, transactional=True)
    (2.0, 2.0)
    """
    if size <= WRITE_STEP and not transactional:
        return 1.0
    steps = max(1, -(-size // WRITE_STEP))
    return steps * 2.0 if transactional else float(steps)


class CapacityMeter:
    """Sums the units that one request consumes on one table and its indexes."""

    __slots__ = ("_global", "_local", "_table", "_table_name")

    def __init__(self, table_name: str) -> None:
        self._table_name = table_name
        self._table = 0.0
        self._local: dict[str, float] = {}
        self._global: dict[str, float] = {}

    def table(self, units: float) -> None:
        """Count units of the table itself."""
        self._table += units

    def local(self, index: str, units: float) -> None:
        """Count units of a local secondary index."""
        self._local[index] = self._local.get(index, 0.0) + units

    def index(self, index: str, units: float) -> None:
        """Count units of a global secondary index."""
        self._global[index] = self._global.get(index, 0.0) + units

    @property
    def total(self) -> float:
        """Return all units counted so far."""
        return self._table + sum(self._local.values()) + sum(self._global.values())

    def report(
        self, kind: CapacityReport, transactional: Transactional | None = None
    ) -> dict[str, Any] | None:
        """Return ConsumedCapacity in wire form, or None if the request does not ask for it.

        `transactional` names the direction that DynamoDB reports beside the sum, for transactions only.
        """
        if kind == "NONE":
            return None
        report: dict[str, Any] = {"TableName": self._table_name, **_units(self.total, transactional)}
        if kind == "INDEXES":
            # DynamoDB: lists the table even if the request read only an index.
            report["Table"] = _units(self._table, transactional)
            for member, counted in (
                ("LocalSecondaryIndexes", self._local),
                ("GlobalSecondaryIndexes", self._global),
            ):
                if counted:
                    report[member] = {name: _units(units, transactional) for name, units in counted.items()}
        return report


def _units(units: float, transactional: Transactional | None) -> dict[str, float]:
    if transactional is None:
        return {"CapacityUnits": units}
    return {"CapacityUnits": units, _SPLIT[transactional]: units}
