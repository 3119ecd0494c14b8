"""Outbox: every mutation of an entity leaves an event in its own transaction, to be delivered later.

Here is the declaration. What is written is in `flows.outbox`; delivery is the job `jobs.deliver`.
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
    """Keep an event of every change: `events = Outbox(title="title")`.

    `title` is the field that people know the entity by; `snapshot` names the fields that an event
    carries, all of them unless given; `actor_required` refuses changes outside of `db.acting(...)`;
    `days` is how long an event stays in the table, delivered or not, before its time to live ends
    (None: for good).
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
        """Check that the fields are there, and that events can be delivered and can vanish."""
        where = f"{draft.name}.{self.name}"
        for field in (*([self.title] if self.title else []), *(self.snapshot or ())):
            if field not in draft.attributes:
                raise DeclarationError(
                    f"{where} names {field!r}, which is no field; {suggestion(field, draft.attributes)}"
                )
        if not draft.table.stream:
            raise DeclarationError(
                f"{where} is delivered from the change feed, which table {draft.table.name!r} does not keep; "
                f"write Table(..., stream=True)."
            )
        if self.days is not None and self.days < 2:
            raise DeclarationError(
                f"{where}: an event stays at least 2 days, longer than the stream; or None."
            )
        if self.days is not None and draft.table.ttl is None:
            raise DeclarationError(
                f"{where} ends its events after {self.days} days by the time to live, which table "
                f"{draft.table.name!r} does not have; write Table(..., ttl='expires_at'), "
                f"or Outbox(days=None) to keep them."
            )
        return self
