"""Retention: compute an entity's time to live from another time, or declare that it never expires."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, get_args

from solotable._entities.declare.table import suggestion
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft


class Retention(Trait):
    """Keep an entity for a period: `retention = Retention(timedelta(days=90), since="created_at")`.

    A write without a time to live gets `since` plus the period; a time to live from the caller is not
    changed. While `since` is None, the entity does not expire. `Retention(None)` declares that the entity
    never expires.
    """

    writes_along = False
    ttl: str | None = None

    def __init__(self, period: timedelta | None, *, since: str = "created_at") -> None:
        self.period = period
        self.since = since

    def bind(self, draft: Draft) -> Self:
        """Check that the entity has a time to live field, and a time to count from."""
        where = f"{draft.name}.{self.name}"
        ttl = next((name for name, attribute in draft.attributes.items() if attribute.ttl), None)
        if self.period is None:
            if ttl is not None:
                raise DeclarationError(
                    f"{where} declares that the entity never expires, but {draft.name}.{ttl} is a time to "
                    f"live; "
                    f"remove one of them."
                )
            return self
        if self.period < timedelta(seconds=1):
            raise DeclarationError(
                f"{where}: the period {self.period} is too short; use at least a second, or None."
            )
        if ttl is None:
            raise DeclarationError(
                f"{where} sets the time to live of {draft.name}, which has none; "
                f"add a field: expires_at: Annotated[datetime | None, TTL()] = None."
            )
        if self.since not in draft.attributes:
            raise DeclarationError(
                f"{where} counts from {self.since!r}, which is not a field; "
                f"{suggestion(self.since, draft.attributes)}"
            )
        for name, wanted in ((self.since, "counts from"), (ttl, "sets")):
            if not _is_moment(draft.annotations[name]):
                raise DeclarationError(f"{where} {wanted} {name!r}, which is not a datetime.")
        for path in draft.keys.values():
            if ttl in path.sources:
                raise DeclarationError(
                    f"{where} sets {ttl!r}, which is part of {draft.name}.{path.name}; "
                    f"the caller must set the fields of a key, so remove it from the key."
                )
        bound = copy(self)
        bound.ttl = ttl
        return bound

    def end_of(self, values: Mapping[str, Any]) -> datetime | None:
        """Return the computed time to live; None when the entity already has one or never expires."""
        if self.period is None or self.ttl is None or values.get(self.ttl) is not None:
            return None
        since = values.get(self.since)
        return since + self.period if isinstance(since, datetime) else None


def _is_moment(annotation: Any) -> bool:
    return annotation is datetime or datetime in get_args(annotation)
