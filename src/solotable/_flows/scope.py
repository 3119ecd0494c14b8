"""The scope that every flow runs in: which tables, which tenant, whose clock.

A scope is frozen. It fills the tenant into what callers give, refuses what reaches outside, and
admits stored items: of a known type, of this tenant, and alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any

from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.declare.fields import is_from_scope
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Actor
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or, TypeIs
from solotable._protocol.json_codec import loads
from solotable._protocol.replies import SomeItem
from solotable._values import Item
from solotable.errors import DataError, DeclarationError, TenantViolation, UnknownEntity

from .cursors import Sealer
from .retry import Retries

#: The first character of the type tags of internal items, such as locks.
INTERNAL = "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where flows run; `tenant` None with `admin` False sees global entities only."""

    #: The name of each opened table in the engine, by its declared name.
    names: Mapping[str, str]
    clock: Callable[[], float]
    retries: Retries
    sealer: Sealer
    #: Gives the token of a transaction that the caller gave none.
    tokens: Callable[[], str]
    tenant: str | None = None
    admin: bool = False
    #: The opened tables as they were declared.
    tables: tuple[Table, ...] = ()
    #: On whose behalf it is, and the request that it was asked by, for the events of changes.
    actor: Actor | None = None
    request_id: str | None = None

    def of_tenant(self, tenant: str) -> Scope:
        """Return the scope of one tenant."""
        if not tenant:
            raise TenantViolation(f"A tenant is text that is not empty; {tenant!r} was given.")
        # Written out, for every request makes one: `replace` takes twice as long.
        return Scope(
            names=self.names,
            clock=self.clock,
            retries=self.retries,
            sealer=self.sealer,
            tokens=self.tokens,
            tenant=tenant,
            tables=self.tables,
            actor=self.actor,
            request_id=self.request_id,
        )

    def of_admin(self) -> Scope:
        """Return the scope that sees every tenant."""
        return replace(self, tenant=None, admin=True)

    def acting(self, actor: Actor, request_id: str | None) -> Scope:
        """Return the scope of what somebody does."""
        return replace(self, actor=actor, request_id=request_id)

    def table(self, table: Table) -> str:
        """Return the name of a table in the engine."""
        name = self.names.get(table.name)
        if name is None:
            raise DeclarationError(
                f"This store has not opened table {table.name!r}; open it with connect(url, ...tables)."
            )
        return name

    def bind(self, plan: Plan, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a caller's arguments or an entity's values with the tenant filled in."""
        field = plan.tenant
        if field is None:
            if self.tenant is not None:
                raise TenantViolation(
                    f"{plan.name} is global and lies outside of tenant {self.tenant!r}; "
                    f"use the store that the tenant's was made from."
                )
            return given
        theirs = given.get(field)
        unset = theirs is None or is_from_scope(theirs)
        if self.tenant is not None:
            if not unset and theirs != self.tenant:
                raise TenantViolation(
                    f"{plan.name} of tenant {theirs!r} is out of reach of tenant {self.tenant!r}; "
                    f"nothing was done."
                )
            return {**given, field: self.tenant} if unset else given
        if not self.admin:
            raise TenantViolation(
                f"{plan.name} belongs to a tenant; use db.tenant(...), or db.admin() for jobs."
            )
        if unset:
            raise DataError(f"{plan.name} needs {field} in the admin scope, which has no tenant of its own.")
        return given

    def admit(self, plan: Plan, item: Item) -> Any:
        """Return a stored item as the entity, or None if it is hidden or another's."""
        tag = item.get(plan.table.tag)
        if tag != plan.tag_value:
            self.known(plan.table, item)
            return None
        if (plan.deletion is not None or plan.ttl is not None) and self.is_hidden(plan, item):
            return None
        entity = plan.decode(item, STORED)
        self.check_tenant(plan, entity)
        return entity

    def admit_page(self, plan: Plan) -> Callable[[Item], Any]:
        """Return `admit` for the items of one page, without asking each what the entity answers for all."""
        may_hide = plan.deletion is not None or plan.ttl is not None
        if may_hide or (self.tenant is not None and plan.tenant is not None):
            return partial(self.admit, plan)
        tag, ours, load = plan.table.tag, plan.tag_value, plan.decode

        def admit(item: Item) -> Any:
            return load(item, STORED) if item.get(tag) == ours else self.admit(plan, item)

        return admit

    def known(self, table: Table, item: Item) -> Plan | None:
        """Return which entity an item is, None for the store's own, or refuse a tag that nobody has."""
        tag = item.get(table.tag, {}).get("S")
        plan = table.plans.get(tag) if tag is not None else None
        if plan is None and (tag is None or not tag.startswith(INTERNAL)):
            raise UnknownEntity(
                f"An item of table {table.name!r} has the type tag {tag!r} ({table.tag}), which no entity "
                f"has; import the module that declares it, or repair the item.",
                tag=tag,
                item=item,
            )
        return plan

    def check_tenant(self, plan: Plan, entity: Any) -> None:
        """Refuse an entity of another tenant, whatever key it was found under."""
        if self.tenant is not None and plan.tenant is not None:
            theirs = getattr(entity, plan.tenant)
            if theirs != self.tenant:
                raise TenantViolation(
                    f"A stored {plan.name} under tenant {self.tenant!r} names another tenant."
                )

    def is_hidden(self, plan: Plan, item: Item) -> bool:
        """Whether an item of an entity is shown to nobody: it was deleted, or its time has passed."""
        if plan.deletion is not None and DELETED_AT in item:
            return True
        return plan.ttl is not None and self.has_passed(plan, item)

    def has_passed(self, plan: Plan, item: Item) -> bool:
        """Whether an item's time to live has passed, though DynamoDB may not have removed it yet."""
        if plan.ttl is None:
            return False
        value = item.get(plan.attributes[plan.ttl].wire)
        return value is not None and "N" in value and float(value["N"]) <= self.clock()

    def alive(self, plan: Plan) -> Condition | None:
        """Return the condition that an item's time has not passed."""
        if plan.ttl is None:
            return None
        path = (plan.attributes[plan.ttl].wire,)
        # DynamoDB: what is no number, as NULL, never expires.
        now = Const({"N": str(int(self.clock()))})
        return Or((Not(TypeIs(Attr(path), "N")), Compare(">", Attr(path), now)))

    def undeleted(self, plan: Plan) -> Condition | None:
        """Return the condition that an item was not deleted; None where nothing stays behind a delete."""
        return None if plan.deletion is None else Not(Exists((DELETED_AT,)))

    def absent(self, plan: Plan) -> Condition:
        """Return the condition that there is no such item, or only one whose time has passed.

        One that was deleted and can be had back is in the way of a new one.
        """
        nothing = Not(Exists((plan.table.partition.name,)))
        alive = self.alive(plan)
        return nothing if alive is None else Or((nothing, Not(alive)))

    def present(self, plan: Plan) -> Condition:
        """Return the condition that there is such an item, and that it is not hidden."""
        # By its tag: what another entity keeps under the same key is not this one's to change.
        there: Condition = Compare("=", Attr((plan.table.tag,)), Const(plan.tag_value))
        shown = [
            each
            for each in (self.tenant_condition(plan), self.alive(plan), self.undeleted(plan))
            if each is not None
        ]
        return And((there, *shown)) if shown else there

    def tenant_condition(self, plan: Plan) -> Condition | None:
        """Return the condition that an item names the scope's tenant, whatever key it lies under."""
        if self.tenant is None or plan.tenant is None:
            return None
        return Compare("=", Attr((plan.attributes[plan.tenant].wire,)), Const({"S": self.tenant}))

    def not_another_entity(self, plan: Plan) -> Condition:
        """Return the condition that no other entity keeps an item under the same key."""
        tag = (plan.table.tag,)
        ours: Condition = Compare("=", Attr(tag), Const(plan.tag_value))
        own = self.tenant_condition(plan)
        return Or((Not(Exists(tag)), ours if own is None else And((ours, own))))

    def token(self, given: str | None, *kind: str) -> str:
        """Return the token of a transaction: a new one, or the caller's, made its own tenant's and tables'.

        DynamoDB keeps tokens for the whole account, so two tenants that use the same words would meet.
        """
        if given is None:
            return self.tokens()
        words = repr((sorted(self.names.values()), self.tenant, self.admin, kind, given))
        return blake2b(words.encode(), digest_size=16).hexdigest()

    def now(self) -> datetime:
        """Return the time as entities are stamped with it."""
        return datetime.fromtimestamp(self.clock(), UTC)


def decode_item(item: SomeItem) -> Item:
    """Return an item of a reply as a dict."""
    if isinstance(item, bytes):
        found: Item = loads(item)
        return found
    return item
