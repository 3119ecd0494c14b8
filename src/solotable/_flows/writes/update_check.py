"""Check, before an update is sent, that the model accepts the updated entity."""

from __future__ import annotations

from pydantic import ValidationError

from solotable._expressions.ast import Condition, Update
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Stored, Write, capitalize, condition_error
from solotable.errors import DataError, ServiceError


def apply_checked(
    scope: Scope, write: Write, change: Update, before: Stored, condition: Condition | None
) -> Stored:
    """Return an entity with an update applied; raise DataError if its model rejects the result."""
    try:
        item = apply_update(change, before.item)
        return Stored(item, write.plan.decode(item))
    except (ServiceError, DataError) as error:
        # A failed condition takes precedence over a rejected result.
        if condition is not None and not evaluate(condition, before.item):
            raise condition_error(scope, write, before.item) from error
        if isinstance(error, ServiceError):
            raise DataError(f"{capitalize(write.title)}: {error.message}.") from error
        raise explain_misfit(write, error) from error


def explain_misfit(write: Write, error: DataError) -> DataError:
    """Return the error for an update whose result the model rejects."""
    public = f"{write.plan.name} would be invalid."
    shown = str(error)
    if isinstance(error.__cause__, ValidationError):
        first = error.__cause__.errors()[0]
        where = ".".join(str(part) for part in (write.plan.name, *first["loc"]))
        public = f"{where}: {first['msg']}."
        shown = public if write.plan.cipher is not None else f"{where} = {first['input']!r}: {first['msg']}."
    return DataError(
        f"{capitalize(write.title)} would make the entity invalid: {shown} Nothing was written.",
        public_message=public,
    )
