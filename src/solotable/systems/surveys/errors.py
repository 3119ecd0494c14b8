"""Errors of the surveys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solotable.errors import AlreadyExists, ConditionFailed, NotFound, TransactionFailed, VersionConflict
from solotable.systems.errors import InvalidInput, first_error


class InUse(ConditionFailed):
    """Something refers to what should be deleted."""


class ParentGone(NotFound):
    """The survey, section or element that a part belongs to does not exist, or is being deleted."""


@contextmanager
def missing_is_not_found(what: str) -> Iterator[None]:
    """Raise NotFound for a version that was expected of what does not exist: it is not a conflict (C4.13)."""
    try:
        yield
    except VersionConflict as conflict:
        if conflict.theirs is not None:
            raise
        raise NotFound(f"The {what} does not exist.") from conflict


@contextmanager
def unwrap_part_failure(parent: str | None = None, *, within: str = "this survey") -> Iterator[None]:
    """Raise the error of the first failed action of a part's transaction.

    With a parent, the first action of all checks it (a section's is checked by its counter): ParentGone. A
    missing item behind it is a photo.
    """
    try:
        yield
    except TransactionFailed as failed:
        cause = first_error(failed)
        is_first = failed.failures[0].position == 0
        if parent is not None and is_first and not isinstance(cause, AlreadyExists):
            text = f"The {parent} does not exist in {within}, or is being deleted."
            raise ParentGone(text) from failed
        if not is_first and isinstance(cause, NotFound):
            raise InvalidInput("photos: an image does not exist.") from failed
        raise cause from failed
