"""Errors of the portal."""

from __future__ import annotations

from solotable.errors import ConditionFailed, SolotableError


class Forbidden(SolotableError):
    """The role of the caller, or the owner of the content, does not allow it."""


class IllegalTransition(ConditionFailed):
    """The status of the content does not allow the change; see `services.lifecycle`."""


class TooMany(ConditionFailed):
    """The user has as many as one may have."""
