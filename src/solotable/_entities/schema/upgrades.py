"""`@upgrade` and `@downgrade`: pure functions from one schema version of an item to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from solotable.errors import DataError, StoredDataError

#: The attributes of an item as Python values, by their stored names, without keys and tag.
Record = dict[str, Any]
Step = Callable[[Record], Record]
Newer = Literal["raise", "read"]

#: Errors of an upgrade function that get a message; other errors pass through.
_FAULTS: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class _SchemaChange:
    """A function from one schema version to another; a call runs the function."""

    kind = ""
    #: The error for a failing function: an upgrade reads stored items, a downgrade the caller's items.
    error: type[DataError] = DataError

    def __init__(self, to: int, function: Step) -> None:
        self.to = to
        self.function = function
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, record: Record) -> Record:
        return self.function(record)

    def apply(self, record: Record, entity: str) -> Record:
        """Call the function with a copy of a record; errors name the function."""
        try:
            result = self.function(dict(record))
        except _FAULTS as fault:
            raise self.error(
                f"{entity}.{self.name} ({self.kind} to schema version {self.to}) failed for a stored item: "
                f"{type(fault).__name__}: {fault}."
            ) from fault
        if not isinstance(result, dict):
            raise self.error(f"{entity}.{self.name} returned {type(result).__name__}; return a dict.")
        return result


class Upgrade(_SchemaChange):
    """The function from the schema version before `to` to version `to`."""

    kind = "upgrade"
    error = StoredDataError

    def __init__(self, to: int, function: Step, replaces: tuple[str, ...]) -> None:
        super().__init__(to, function)
        self.replaces = replaces


class Downgrade(_SchemaChange):
    """The function that fills the attributes that the upgrade from version `to` replaced."""

    kind = "downgrade"


def upgrade(*, to: int, replaces: Iterable[str] = ()) -> Callable[[Step], Upgrade]:
    """Declare how to convert stored items of the version before `to` to schema version `to`.

    The function takes and returns a dict of attributes. `replaces` names attributes that the new version
    no longer has. Writes drop them, or fill them while the class has a `downgrade` to the version before.
    """
    names = (replaces,) if isinstance(replaces, str) else tuple(replaces)
    return lambda function: Upgrade(to, _unwrap(function), names)


def downgrade(*, to: int) -> Callable[[Step], Downgrade]:
    """Declare how writes fill the attributes that code of schema version `to` reads."""
    return lambda function: Downgrade(to, _unwrap(function))


def _unwrap(function: Any) -> Step:
    found: Step = function.__func__ if isinstance(function, staticmethod) else function
    return found
