"""Check before an update that its model can decode the updated entity."""

from __future__ import annotations

from pydantic import ValidationError

from solotable._expressions.ast import Condition, Update
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Stored, Write, capitalize, refusal
from solotable.errors import DataError, ServiceError


def fitted(scope: Scope, write: Write, change: Update, before: Stored, condition: Condition | None) -> Stored:
    """Return an entity with a change applied, or raise DataError if its model could not decode it."""
    try:
        item = apply_update(change, before.item)
        return Stored(item, write.plan.decode(item))
    except (ServiceError, DataError) as refused:
        # A false condition is reported before an entity that does not fit.
        if condition is not None and not evaluate(condition, before.item):
            raise refusal(scope, write, before.item) from refused
        if isinstance(refused, ServiceError):
            raise DataError(f"{capitalize(write.title)}: {refused.message}.") from refused
        raise explain_misfit(write, refused) from refused


def explain_misfit(write: Write, refused: DataError) -> DataError:
    """Return the error of a change that would leave an entity its model cannot decode."""
    public = f"{write.plan.name} would not fit its model."
    shown = str(refused)
    if isinstance(refused.__cause__, ValidationError):
        first = refused.__cause__.errors()[0]
        where = ".".join(str(part) for part in (write.plan.name, *first["loc"]))
        shown, public = f"{where} = {first['input']!r}: {first['msg']}.", f"{where}: {first['msg']}."
    return DataError(
        f"{capitalize(write.title)} would not fit its model: {shown} Nothing was written.",
        public_message=public,
    )
