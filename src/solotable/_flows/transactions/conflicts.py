"""Optimistic concurrency: repeat a read and its conditional write after a conflict.

Every such loop uses `Conflicts` and the same bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable.errors import (
    ConditionFailed,
    ServiceError,
    SolotableError,
    TooManyConflicts,
    TransactionCancelled,
)

ResultT = TypeVar("ResultT")

#: The number of attempts of a read and its write before the conflict is raised.
CONFLICT_ATTEMPTS = 20


def is_conflict(error: SolotableError) -> bool:
    """Return whether another writer caused an error, so that a new read and write may succeed.

    A failed condition is a conflict, also in a transaction. OutcomeUnknown is not, because the write may
    have been applied.
    """
    if isinstance(error, TransactionCancelled):
        codes = {reason["Code"] for reason in error.reasons} - {"None"}
        return codes <= {"ConditionalCheckFailed", *TransactionCancelled.TRANSIENT}
    if isinstance(error, ConditionFailed):
        return not isinstance(error, TooManyConflicts)
    return isinstance(error, ServiceError) and error.code == "TransactionConflictException"


class Conflicts:
    """The conflicts of one operation so far, and the wait before its next attempt."""

    def __init__(
        self,
        scope: Scope,
        *,
        when: Callable[[SolotableError], bool] = is_conflict,
        attempts: int = CONFLICT_ATTEMPTS,
    ) -> None:
        self._scope = scope
        self._when = when
        self._attempts = attempts
        self.count = 0

    def wait_after(self, error: SolotableError) -> Flow[None]:
        """Wait after a conflict; raise the error if it is not a conflict or no attempt is left."""
        self.count += 1
        if self.count >= self._attempts or not self._when(error):
            raise error
        yield self._scope.retries.wait(self.count)


def retry_conflicts(
    scope: Scope,
    attempt: Callable[[], Flow[ResultT]],
    *,
    when: Callable[[SolotableError], bool] = is_conflict,
    attempts: int = CONFLICT_ATTEMPTS,
) -> Flow[ResultT]:
    """Run a flow that reads and writes; repeat it after a wait while `when` accepts its error.

    Raises the last error after `attempts` attempts. Waits double up to two seconds, with full jitter.
    """
    conflicts = Conflicts(scope, when=when, attempts=attempts)
    while True:
        try:
            return (yield from attempt())
        except SolotableError as error:
            yield from conflicts.wait_after(error)
