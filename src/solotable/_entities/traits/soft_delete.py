"""Soft delete as it is declared: how long what was deleted can be had back, and what goes with it then.

A deleted item stays under its key, in no index and hidden on every read. What is written when is in
`flows.deletion`; the job `jobs.purge` removes for good what is due, with the children declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from solotable._entities.declare.table import suggestion
from solotable._values import Item
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.plan import Draft, Plan

#: When an item was deleted, as text, and from when on it may be purged, in epoch seconds.
DELETED_AT, PURGE_AT = "_deleted_at", "_purge_at"
#: The index key attributes that the item had, so that it is itself again when it is undeleted.
KEYS_ASIDE = "_deleted_keys"
#: Says that a purge has begun to remove what belongs to the item: there is no way back.
PURGING = "_purging"
#: Why an item must not be purged.
HELD = "_held"
#: What the decode of an entity leaves out; a hold is carried along like any attribute it does not know.
HIDING = frozenset({DELETED_AT, PURGE_AT, KEYS_ASIDE, PURGING})


class SoftDelete(Trait):
    """Let deleted entities be had back: `deletion = SoftDelete(grace=timedelta(days=30))`.

    For the time of `grace`, `undelete` gives the same item back; then the purge removes it for good, and
    with it the children of the classes in `cascade`. A class that is defined later is named by a text.
    A child has every part of the parent's key as a field of the same name.
    """

    carries = (HELD,)

    def __init__(self, *, grace: timedelta, cascade: tuple[type[Entity] | str, ...] = ()) -> None:
        self.grace = grace
        self.cascade = cascade

    def bind(self, draft: Draft) -> Self:
        """Refuse what could not be purged, or not be had back."""
        where, table = f"{draft.name}.{self.name}", draft.table
        if self.grace < timedelta(seconds=1):
            raise DeclarationError(
                f"{where}: grace={self.grace} leaves no time to undelete; "
                f"leave the trait out to delete at once."
            )
        if not isinstance(self.cascade, tuple):
            raise DeclarationError(f"{where}: cascade= is a tuple of entities; write cascade=(..., ).")
        if table.sort is None or (table.partition.kind, table.sort.kind) != ("S", "S"):
            raise DeclarationError(
                f"{where}: what waits for the purge is listed in the table itself, so table "
                f"{table.name!r} needs a partition key and a sort key that are texts."
            )
        for attribute in draft.attributes.values():
            if attribute.wire in HIDING or attribute.wire == HELD:
                raise DeclarationError(
                    f"{where} keeps {attribute.wire!r} for itself; "
                    f"rename {draft.name}.{attribute.field} on the wire with Attr(...)."
                )
        return self

    def children(self, owner: Plan) -> tuple[Plan, ...]:
        """Return the plans of the classes that go with an entity, those that are named looked up."""
        by_name = {plan.name: plan for plan in owner.table.plans.values()}
        found = []
        for each in self.cascade:
            if isinstance(each, str) and each not in by_name:
                raise DeclarationError(
                    f"{owner.name}.{self.name}: cascade names {each!r}, which is no entity of table "
                    f"{owner.table.name!r}; {suggestion(each, by_name)}"
                )
            plan = by_name[each] if isinstance(each, str) else each.plan()
            missing = [part for part in owner.primary.parts if part not in plan.attributes]
            if missing:
                raise DeclarationError(
                    f"{owner.name}.{self.name}: {plan.name} has no field {missing[0]!r} of {owner.name}.key, "
                    f"so it cannot be told whose child it is; give it that field."
                )
            found.append(plan)
        return tuple(found)

    def occupied(self, item: Item, values: Mapping[str, Any]) -> str | None:
        """Say that a deleted entity stands where a new one was to be."""
        if DELETED_AT not in item:
            return None
        until = datetime.fromtimestamp(int(item[PURGE_AT]["N"]), UTC)
        return (
            f"it was deleted at {item[DELETED_AT]['S']} and its key is kept until it is purged; "
            f"undelete() it until {until:%Y-%m-%d %H:%M:%S} UTC, or use another key"
        )
