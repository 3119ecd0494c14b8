"""Retention as it is declared: how long an entity is kept, told by the time to live or stated as for good."""

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
    """Keep an entity for so long: `retention = Retention(timedelta(days=90), since="created_at")`.

    A write that leaves the entity's time to live empty gets `since` and the period as its end; one that
    was given stays. Nothing ends while `since` is None. `Retention(None)` states that it is kept for good.
    """

    writes_along = False
    ttl: str | None = None

    def __init__(self, period: timedelta | None, *, since: str = "created_at") -> None:
        self.period = period
        self.since = since

    def bind(self, draft: Draft) -> Self:
        """Check that the entity has an end to be filled in, and a beginning to count from."""
        where = f"{draft.name}.{self.name}"
        ttl = next((name for name, attribute in draft.attributes.items() if attribute.ttl), None)
        if self.period is None:
            if ttl is not None:
                raise DeclarationError(
                    f"{where} says that it is kept for good, but {draft.name}.{ttl} is a time to live; "
                    f"leave one of them out."
                )
            return self
        if self.period < timedelta(seconds=1):
            raise DeclarationError(f"{where}: nothing is kept for {self.period}; give a period, or None.")
        if ttl is None:
            raise DeclarationError(
                f"{where} ends {draft.name} by its time to live, which it does not have; "
                f"add a field: expires_at: Annotated[datetime | None, TTL()] = None."
            )
        if self.since not in draft.attributes:
            raise DeclarationError(
                f"{where} counts from {self.since!r}, which is no field; "
                f"{suggestion(self.since, draft.attributes)}"
            )
        for name, wanted in ((self.since, "counts from"), (ttl, "fills in")):
            if not _is_moment(draft.annotations[name]):
                raise DeclarationError(f"{where} {wanted} {name!r}, which is no datetime.")
        for path in draft.keys.values():
            if ttl in path.fields:
                raise DeclarationError(
                    f"{where} fills in {ttl!r}, which is part of {draft.name}.{path.name}; "
                    f"a key is made of what the caller gives."
                )
        bound = copy(self)
        bound.ttl = ttl
        return bound

    def end_of(self, values: Mapping[str, Any]) -> datetime | None:
        """Return when an entity ends by the rule; None when there is nothing to fill in."""
        if self.period is None or self.ttl is None or values.get(self.ttl) is not None:
            return None
        since = values.get(self.since)
        return since + self.period if isinstance(since, datetime) else None


def _is_moment(annotation: Any) -> bool:
    return annotation is datetime or datetime in get_args(annotation)
