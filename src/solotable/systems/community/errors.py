"""Errors of the community."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solotable.errors import AlreadyExists, ConditionFailed, NotFound, NotUnique, SolotableError
from solotable.systems.errors import unwrap_failure


class Forbidden(SolotableError):
    """The caller may not do this."""


class AlreadyMember(AlreadyExists):
    """The user is a member of the neighbourhood, or waits for its approval."""


class NotMember(NotFound):
    """The user is not a member of the neighbourhood."""


class LastAdmin(ConditionFailed):
    """The neighbourhood would have no admin left."""


class InvitationOver(NotFound):
    """The invitation does not exist, was used, was revoked or has expired."""


class NameTaken(AlreadyExists):
    """Another neighbourhood, site or user has the slug, the subdomain or the handle."""

    def __init__(self, field: str, value: str) -> None:
        super().__init__(f"The {field.replace('_', ' ')} {value!r} is taken; choose another one.")
        self.field = field
        self.value = value


class AccountDeleted(ConditionFailed):
    """The account is in its 30 days of grace; recover it first."""


class NotRecoverable(NotFound):
    """The account is not deleted, or its 30 days are over."""


class TooMany(ConditionFailed):
    """The user has as many as one may have."""


class ExportRunning(ConditionFailed):
    """Another process writes the export of the day."""


@contextmanager
def name_taken() -> Iterator[None]:
    """Raise the error of the first failed action of a transaction; NameTaken for a value that is in use."""
    try:
        with unwrap_failure():
            yield
    except NotUnique as error:
        raise NameTaken(error.field, str(error.value)) from error
