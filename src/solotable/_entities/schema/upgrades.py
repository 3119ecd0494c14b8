"""`@upgrade` and `@downgrade`: pure functions from one schema version of an item to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from solotable.errors import DataError, StoredDataError

#: The attributes of an item as Python values, by their names in the table; without keys and tag.
Record = dict[str, Any]
Step = Callable[[Record], Record]
Newer = Literal["refuse", "read"]

#: What a faulty function raises because of an item; other errors pass through.
_FAULTS: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class _SchemaChange:
    """A function from one schema version to another, callable as itself."""

    kind = ""
    #: The error for a function that fails: upgrades read stored items, downgrades those of the caller.
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
        """Return the function's result for a record, or raise an error that names the function."""
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
    """The function from the schema version before `to` to it."""

    kind = "upgrade"
    error = StoredDataError

    def __init__(self, to: int, function: Step, replaces: tuple[str, ...]) -> None:
        super().__init__(to, function)
        self.replaces = replaces


class Downgrade(_SchemaChange):
    """The function that fills what the upgrade from `to` replaced."""

    kind = "downgrade"


def upgrade(*, to: int, replaces: Iterable[str] = ()) -> Callable[[Step], Upgrade]:
    """Declare how stored items of the schema version before `to` become those of `to`.

    The function takes and returns a dict of attributes. `replaces` names attributes that the new version
    no longer has: they are dropped, or written by a `downgrade` as long as there is one.
    """
    names = (replaces,) if isinstance(replaces, str) else tuple(replaces)
    return lambda function: Upgrade(to, _unwrap(function), names)


def downgrade(*, to: int) -> Callable[[Step], Downgrade]:
    """Declare how writes fill the attributes for code of schema version `to`."""
    return lambda function: Downgrade(to, _unwrap(function))


def _unwrap(function: Any) -> Step:
    found: Step = function.__func__ if isinstance(function, staticmethod) else function
    return found
