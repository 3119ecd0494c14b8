"""Outbox: write an event for every change of an entity in the same transaction, for later delivery.

`_flows.traits.outbox` implements the writes; the job `jobs.deliver` delivers the events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from solotable._entities.declare.table import suggestion
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft


class Outbox(Trait):
    """Write an event for every change: `events = Outbox(title="title")`.

    - `title` names the field with the entity's title.
    - `snapshot` names the fields to include in an event (None: all that are not encrypted).
    - `actor_required` rejects changes outside of `db.acting(...)`.
    - `days` is the time to live of an event, whether delivered or not (None: it never expires).
    """

    whole = True

    def __init__(
        self,
        *,
        title: str | None = None,
        snapshot: Iterable[str] | None = None,
        actor_required: bool = False,
        days: int | None = 7,
    ) -> None:
        if isinstance(snapshot, str):
            raise DeclarationError(f"Outbox: snapshot is a list of fields; write ({snapshot!r},).")
        self.title = title
        self.snapshot = None if snapshot is None else tuple(snapshot)
        self.actor_required = actor_required
        self.days = days

    def bind(self, draft: Draft) -> Self:
        """Check that the fields exist, and that the table supports delivery and expiry of events."""
        where = f"{draft.name}.{self.name}"
        for field in (*([self.title] if self.title else []), *(self.snapshot or ())):
            if field not in draft.attributes:
                raise DeclarationError(
                    f"{where} names {field!r}, which is not a field; {suggestion(field, draft.attributes)}"
                )
            if draft.attributes[field].encrypted is not None:
                raise DeclarationError(
                    f"{where} names {field!r}, which is encrypted; an event would show its value. Remove it."
                )
        if not draft.table.stream:
            raise DeclarationError(
                f"{where} needs the change feed for delivery, but table {draft.table.name!r} has no stream; "
                f"write Table(..., stream=True)."
            )
        if self.days is not None and self.days < 2:
            raise DeclarationError(
                f"{where}: days={self.days}; an event must outlive the stream: at least 2 days, or None."
            )
        if self.days is not None and draft.table.ttl is None:
            raise DeclarationError(
                f"{where} expires its events after {self.days} days by the time to live, but table "
                f"{draft.table.name!r} has none; write Table(..., ttl='expires_at'), "
                f"or Outbox(days=None) to keep them."
            )
        return self
