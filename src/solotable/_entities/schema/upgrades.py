"""Upgrades and downgrades as an entity declares them: pure functions from one schema version to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from solotable.errors import DataError, StoredDataError

#: The attributes of an item as Python values, by their names in the table; keys and tag are not among them.
Record = dict[str, Any]
Step = Callable[[Record], Record]
Newer = Literal["refuse", "read"]

#: What a faulty upgrader raises; anything else is no fault of the item.
_FAULTS: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class _Change:
    """One step between two shapes; called, it is its function."""

    kind = ""
    #: What a step at fault is raised as: upgrades meet what is stored, downgrades what is given.
    fault: type[DataError] = DataError

    def __init__(self, to: int, function: Step) -> None:
        self.to = to
        self.function = function
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, record: Record) -> Record:
        return self.function(record)

    def applied(self, record: Record, entity: str) -> Record:
        """Return what the function makes of a record, or say that it is at fault."""
        try:
            made = self.function(dict(record))
        except _FAULTS as fault:
            raise self.fault(
                f"{entity}.{self.name} ({self.kind} to shape {self.to}) failed for a stored item: "
                f"{type(fault).__name__}: {fault}."
            ) from fault
        if not isinstance(made, dict):
            raise self.fault(f"{entity}.{self.name} returned {type(made).__name__}; it returns a dict.")
        return made


class Upgrade(_Change):
    """The way from the shape before to this one."""

    kind = "upgrade"
    fault = StoredDataError

    def __init__(self, to: int, function: Step, replaces: tuple[str, ...]) -> None:
        super().__init__(to, function)
        self.replaces = replaces


class Downgrade(_Change):
    """The way back, for what the upgrade replaced."""

    kind = "downgrade"


def upgrade(*, to: int, replaces: Iterable[str] = ()) -> Callable[[Step], Upgrade]:
    """Declare how stored items become those of shape `to`, from the shape before.

    The function takes and returns a dict of attributes. `replaces` names attributes that the new shape
    no longer has: they are dropped, or kept up to date by a `downgrade` as long as there is one.
    """
    names = (replaces,) if isinstance(replaces, str) else tuple(replaces)
    return lambda function: Upgrade(to, _bare(function), names)


def downgrade(*, to: int) -> Callable[[Step], Downgrade]:
    """Declare how code of the shape `to` is served: writes fill what the upgrade from it replaced."""
    return lambda function: Downgrade(to, _bare(function))


def _bare(function: Any) -> Step:
    found: Step = function.__func__ if isinstance(function, staticmethod) else function
    return found
