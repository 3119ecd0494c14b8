"""What callers get when a transaction is refused: the reason, as if the one write had been made alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solotable.errors import SolotableError, TransactionFailed


@contextmanager
def first_reason() -> Iterator[None]:
    """Raise the first reason of a failed transaction instead of the failure of the whole."""
    try:
        yield
    except TransactionFailed as failed:
        reasons = [each.error for each in failed.failures if isinstance(each.error, SolotableError)]
        if not reasons:
            raise
        raise reasons[0] from failed
