"""Exit codes: 0 for success, and one for each kind of failure. Scripts rely on them."""

from __future__ import annotations

from solotable import errors as e

FAILED = 1
USAGE = 2
NOT_FOUND = 3
CONDITION_FAILED = 4
UNAVAILABLE = 5
INTERRUPTED = 130


def exit_code(error: e.SolotableError) -> int:
    """Return the exit code of an error."""
    match error:
        case e.TableNotFound() | e.NotFound():
            return NOT_FOUND
        case e.ConditionFailed() | e.TransactionCancelled() | e.NotUnique() | e.LeaseHeld() | e.LeaseLost():
            return CONDITION_FAILED
        case e.MigrationConflict() | e.MigrationNotReady():
            return CONDITION_FAILED
        case e.SwitchTimedOut() | e.WritesPaused():
            return UNAVAILABLE
        case e.CursorRejected() | e.TenantViolation() | e.NotConfigured():
            return USAGE
        case e.TransportError() | e.Throttled() | e.BatchIncomplete():
            return UNAVAILABLE
        case e.ServiceError(retryable=True):
            return UNAVAILABLE
        case _:
            return FAILED


def sentence(error: e.SolotableError) -> str:
    """Return the message to print for an error: the store's, or DynamoDB's."""
    if isinstance(error, e.TransactionFailed):
        return str(error.args[0])
    return error.message if isinstance(error, e.ServiceError) else str(error)
