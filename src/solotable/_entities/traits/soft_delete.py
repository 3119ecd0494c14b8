"""SoftDelete: keep deleted entities for a grace period, then purge them with their children.

A deleted item stays under its key, but in no index, and reads do not return it. `_flows.traits.soft_delete`
implements the writes; the job `jobs.purge` removes items that are due.
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

#: The time of the delete as text, and the earliest time of the purge in epoch seconds.
DELETED_AT, PURGE_AT = "_deleted_at", "_purge_at"
#: The index key attributes of the deleted item, for undelete.
KEYS_ASIDE = "_deleted_keys"
#: Set when a purge starts to remove the children; undelete is impossible after that.
PURGING = "_purging"
#: The hold on an item, with its reason; a purge skips the item.
HELD = "_held"
#: Attributes that a decoded entity omits; it keeps a hold as an unknown attribute.
HIDING = frozenset({DELETED_AT, PURGE_AT, KEYS_ASIDE, PURGING})


class SoftDelete(Trait):
    """Keep deleted entities for a grace period: `deletion = SoftDelete(grace=timedelta(days=30))`.

    `undelete` restores the item during `grace`. After it, the purge removes the item and its children of the
    classes in `cascade`. Use a string for a class that is defined later. A child has a field of the same
    name for every part of the parent's key.
    """

    carries = (HELD,)

    def __init__(self, *, grace: timedelta, cascade: tuple[type[Entity] | str, ...] = ()) -> None:
        self.grace = grace
        self.cascade = cascade

    def bind(self, draft: Draft) -> Self:
        """Reject a declaration that prevents purge or undelete."""
        where, table = f"{draft.name}.{self.name}", draft.table
        if self.grace < timedelta(seconds=1):
            raise DeclarationError(
                f"{where}: grace={self.grace} leaves no time to undelete; remove the trait to delete "
                f"immediately."
            )
        if not isinstance(self.cascade, tuple):
            raise DeclarationError(f"{where}: cascade= is a tuple of entities; write cascade=(..., ).")
        if table.sort is None or (table.partition.kind, table.sort.kind) != ("S", "S"):
            raise DeclarationError(
                f"{where}: the purge queue is stored in the table itself, so table "
                f"{table.name!r} needs a partition key and a sort key of type S."
            )
        for attribute in draft.attributes.values():
            if attribute.wire in HIDING or attribute.wire == HELD:
                raise DeclarationError(
                    f"{where} uses the attribute {attribute.wire!r}; "
                    f"give {draft.name}.{attribute.field} another attribute name with Attr(...)."
                )
        return self

    def children(self, owner: Plan) -> tuple[Plan, ...]:
        """Return the plans of the classes in `cascade`; look up strings by class name."""
        by_name = {plan.name: plan for plan in owner.table.plans.values()}
        found = []
        for each in self.cascade:
            if isinstance(each, str) and each not in by_name:
                raise DeclarationError(
                    f"{owner.name}.{self.name}: cascade names {each!r}, which is not an entity of table "
                    f"{owner.table.name!r}; {suggestion(each, by_name)}"
                )
            plan = by_name[each] if isinstance(each, str) else each.plan()
            missing = [part for part in owner.primary.parts if part not in plan.attributes]
            if missing:
                raise DeclarationError(
                    f"{owner.name}.{self.name}: {plan.name} has no field {missing[0]!r} of {owner.name}.key, "
                    f"so its parent is unknown; add that field."
                )
            found.append(plan)
        return tuple(found)

    def occupied(self, item: Item, values: Mapping[str, Any]) -> str | None:
        """Describe the deleted entity under the key of a new one."""
        if DELETED_AT not in item:
            return None
        until = datetime.fromtimestamp(int(item[PURGE_AT]["N"]), UTC)
        return (
            f"it was deleted at {item[DELETED_AT]['S']} and keeps its key until the purge; "
            f"undelete() it until {until:%Y-%m-%d %H:%M:%S} UTC, or use another key"
        )
