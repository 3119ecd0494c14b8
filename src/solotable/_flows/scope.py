"""The scope of a flow: its tables, its tenant and its clock.

A scope is frozen. It fills in the tenant, rejects keys of other tenants, and decodes only stored items
that have a known type, belong to this tenant, and are neither expired nor deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Literal

from solotable._entities.codecs.item_decoder import STORED, Admit
from solotable._entities.declare.fields import is_from_scope
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import is_internal, recognise, tag_of
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Actor
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or, TypeIs
from solotable._protocol.json_codec import loads
from solotable._protocol.replies import SomeItem
from solotable._values import Item
from solotable.errors import DataError, DeclarationError, TenantViolation, UnknownEntity

from .cursors import CursorSigner
from .retry import Retries

#: What to do with an item that no entity matches.
Unknown = Literal["raise", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The tables, tenant and clock of a flow; with neither tenant nor admin it sees global entities only."""

    #: The name of each open table in the engine, by its declared name.
    names: Mapping[str, str]
    clock: Callable[[], float]
    retries: Retries
    cursor_signer: CursorSigner
    #: Generates the token of a transaction if the caller gives none.
    tokens: Callable[[], str]
    tenant: str | None = None
    admin: bool = False
    #: The open tables as declared.
    tables: tuple[Table, ...] = ()
    #: The actor and the request id that audit events record.
    actor: Actor | None = None
    request_id: str | None = None
    #: What a read of several items does with an item that no entity matches.
    unknown: Unknown = "raise"
    #: Whether the caller logs the changes of synced entities itself, once for several writes.
    logs_later: bool = False

    def of_tenant(self, tenant: str) -> Scope:
        """Return the scope of one tenant."""
        given: object = tenant
        if not isinstance(given, str) or len(given) == 0:
            raise TenantViolation(f"tenant() takes a non-empty string, got {tenant!r}.")
        # Every web request creates a scope, and `replace` takes twice as long.
        return Scope(
            names=self.names,
            clock=self.clock,
            retries=self.retries,
            cursor_signer=self.cursor_signer,
            tokens=self.tokens,
            tenant=_exact(tenant),
            tables=self.tables,
            actor=self.actor,
            request_id=self.request_id,
            logs_later=self.logs_later,
        )

    def of_admin(self) -> Scope:
        """Return the scope that sees every tenant."""
        return replace(self, tenant=None, admin=True)

    def acting(self, actor: Actor, request_id: str | None) -> Scope:
        """Return the scope in which an actor writes."""
        return replace(self, actor=actor, request_id=request_id)

    def reading(self, unknown: Unknown) -> Scope:
        """Return the scope of a read that raises UnknownEntity, or skips items that no entity matches."""
        if unknown not in ("raise", "skip"):
            raise DataError(f'unknown= is "raise" or "skip", got {unknown!r}.')
        return self if unknown == self.unknown else replace(self, unknown=unknown)

    def table(self, table: Table) -> str:
        """Return the name of a table in the engine."""
        name = self.names.get(table.name)
        if name is None:
            raise DeclarationError(
                f"Table {table.name!r} is not open in this store; pass it to connect(url, ...tables)."
            )
        return name

    def bind(self, plan: Plan, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a caller's arguments or an entity's values with the tenant filled in."""
        field = plan.tenant
        if field is None:
            if self.tenant is not None:
                raise TenantViolation(
                    f"{plan.name} is global and cannot be used in the scope of tenant {self.tenant!r}; "
                    f"use the store that you called tenant() on."
                )
            return given
        tenant = given.get(field)
        unset = tenant is None or is_from_scope(tenant)
        if self.tenant is not None:
            if not unset and _exact(tenant) != self.tenant:
                raise TenantViolation(
                    f"{plan.name} of tenant {tenant!r} cannot be used in the scope of tenant "
                    f"{self.tenant!r}; use db.tenant({tenant!r}). Nothing was done."
                )
            return given if type(tenant) is str else {**given, field: self.tenant}
        if not self.admin:
            raise TenantViolation(
                f"{plan.name} belongs to a tenant; use db.tenant(...), or db.admin() for jobs."
            )
        if unset:
            raise DataError(f"{plan.name} needs {field} in the admin scope, which has no tenant.")
        return given

    def admit(self, plan: Plan, item: Item) -> Any:
        """Decode a stored item; return None if it is hidden or belongs to another entity."""
        if item.get(plan.table.internal_tag) != plan.tag_value:
            found = self.known(plan.table, item)
            if found is None or not plan.covers(found):
                return None
            plan = found
        if (plan.deletion is not None or plan.ttl is not None) and self.is_hidden(plan, item):
            return None
        entity = plan.decode(item, STORED)
        self.check_tenant(plan, entity)
        plan.check_key(item, entity)
        return entity

    def admit_page(self, plan: Plan, first: Item | None = None) -> Admit:
        """Return `admit` for the items of one page; most have the same attributes as the first one."""
        exactly = partial(self.admit, plan)
        if plan.tenant is not None and self.tenant is None and not self.admin:
            return exactly
        is_hidden = partial(self.is_hidden, plan)
        compiled: dict[tuple[str, ...], Admit] = {}

        def admit(item: Item) -> Any:
            names = tuple(item)
            found = compiled.get(names)
            if found is None:
                make = plan.make_admit(item)
                found = exactly if make is None else make(exactly, self.tenant, is_hidden)
                compiled[names] = found
            return found(item)

        make = None if first is None else plan.make_admit(first)
        return admit if make is None else make(admit, self.tenant, is_hidden)

    def known(self, table: Table, item: Item) -> Plan | None:
        """Return the plan of an item's entity; None for an internal item, or an unknown one to be skipped."""
        plan = recognise(table, item)
        if plan is None and self.unknown == "raise" and not is_internal(table, item):
            raise unknown_entity(table, item)
        return plan

    def is_unknown(self, table: Table, item: Item | None) -> bool:
        """Return whether a read skips an item because no entity matches it."""
        if self.unknown == "raise" or item is None:
            return False
        return recognise(table, item) is None and not is_internal(table, item)

    def check_tenant(self, plan: Plan, entity: Any) -> None:
        """Raise TenantViolation for an entity that names another tenant, even under a key of this one."""
        if plan.tenant is None or self.admin:
            return
        if self.tenant is None:
            raise TenantViolation(
                f"{plan.name} belongs to a tenant; use db.tenant(...), or db.admin() for jobs."
            )
        if _exact(getattr(entity, plan.tenant)) != self.tenant:
            raise TenantViolation(f"A stored {plan.name} under tenant {self.tenant!r} names another tenant.")

    def check_item_tenant(self, plan: Plan, item: Item) -> None:
        """Raise TenantViolation for an item of another tenant; its key names the tenant if no field does."""
        if plan.tenant is None or self.tenant is None:
            return
        value = item.get(plan.attributes[plan.tenant].wire)
        tenant = (plan.arguments_of(item) or {}).get(plan.tenant) if value is None else value.get("S")
        if tenant != self.tenant:
            raise TenantViolation(f"A stored {plan.name} under tenant {self.tenant!r} names another tenant.")

    def is_hidden(self, plan: Plan, item: Item) -> bool:
        """Return whether reads hide an item because it was deleted or its time to live has passed."""
        if plan.deletion is not None and DELETED_AT in item:
            return True
        return plan.ttl is not None and self.has_passed(plan, item)

    def has_passed(self, plan: Plan, item: Item) -> bool:
        """Return whether an item's time to live has passed; DynamoDB may not have removed it yet."""
        if plan.ttl is None:
            return False
        value = item.get(plan.attributes[plan.ttl].wire)
        return value is not None and "N" in value and float(value["N"]) <= self.clock()

    def alive(self, plan: Plan) -> Condition | None:
        """Return the condition that an item's time to live has not passed; None without a ttl field."""
        if plan.ttl is None:
            return None
        path = (plan.attributes[plan.ttl].wire,)
        # DynamoDB: an attribute that is not a number, such as NULL, never expires.
        now = Const({"N": str(int(self.clock()))})
        return Or((Not(TypeIs(Attr(path), "N")), Compare(">", Attr(path), now)))

    def undeleted(self, plan: Plan) -> Condition | None:
        """Return the condition that an item is not soft-deleted; None without soft deletes."""
        return None if plan.deletion is None else Not(Exists((DELETED_AT,)))

    def absent(self, plan: Plan) -> Condition:
        """Return the condition that the item does not exist or has expired.

        A soft-deleted item, which can be restored, still occupies its key.
        """
        nothing = Not(Exists((plan.table.partition.name,)))
        alive = self.alive(plan)
        return nothing if alive is None else Or((nothing, Not(alive)))

    def present(self, plan: Plan) -> Condition:
        """Return the condition that the item exists, is this entity, and is not hidden."""
        is_entity = self.is_entity(plan)
        is_visible = [each for each in (self.alive(plan), self.undeleted(plan)) if each is not None]
        return And((is_entity, *is_visible)) if is_visible else is_entity

    def is_entity(self, plan: Plan) -> Condition:
        """Return the condition that the item is an entity of this class and of the scope's tenant.

        Every write of an entity has it, because a write must not change an item that it does not recognise.
        """
        is_tenant = self.is_tenant(plan)
        return plan.is_entity if is_tenant is None else And((plan.is_entity, is_tenant))

    def is_tenant(self, plan: Plan) -> Condition | None:
        """Return the condition that an item names the scope's tenant; None if the scope has no tenant."""
        if self.tenant is None or plan.tenant is None:
            return None
        tenant = plan.attributes[plan.tenant]
        same = _has_text(tenant.wire, self.tenant)
        if tenant.stored and plan.table.tag_required:
            return same
        # The key contains the tenant, and another program may have written it only there.
        return Or((same, Not(Exists((tenant.wire,)))))

    def replaceable(self, plan: Plan) -> Condition:
        """Return the condition that the key is free, or that the item is this entity."""
        if plan.ttl is not None:
            return Or((self.absent(plan), self.is_entity(plan)))
        if self.tenant is None or plan.tenant is None:
            return plan.is_replaceable
        return Or((_is_free(plan.table.partition.name), self.is_entity(plan)))

    def token(self, given: str | None, *kind: str) -> str:
        """Return the token of a transaction: a new one, or the caller's, hashed with tenant and tables.

        A DynamoDB token is valid for the whole account, so equal tokens of two tenants would collide.
        """
        if given is None:
            return self.tokens()
        words = repr((sorted(self.names.values()), self.tenant, self.admin, kind, given))
        return blake2b(words.encode(), digest_size=16).hexdigest()

    def now(self) -> datetime:
        """Return the current time as stored in timestamps."""
        return datetime.fromtimestamp(self.clock(), UTC)


def unknown_entity(table: Table, item: Item) -> UnknownEntity:
    """Return the error for an item that no entity of its table matches."""
    tag = tag_of(table, item)
    remedy = "import the module that declares it, or repair the item"
    if table.tag is not None and tag is not None:
        why = f"has the type tag {tag!r} ({table.tag}), which no entity has"
    elif table.tag_required:
        why = f"has no type tag ({table.tag})"
        remedy = "add it with `solotable tag`, or declare tag_required=False to recognise items by their keys"
    else:
        key = {name: item.get(name) for name in table.key_names}
        why = f"has the key {key}, which matches the key of no entity"
    return UnknownEntity(
        f"An item of table {table.name!r} {why}; {remedy}. "
        f'A read of several items can skip it: unknown="skip".',
        tag=tag,
        item=item,
    )


def _exact(tenant: Any) -> Any:
    """Return a str without the methods of its class, which could compare in another way."""
    return tenant if type(tenant) is str or not isinstance(tenant, str) else str.__str__(tenant)


def decode_item(item: SomeItem) -> Item:
    """Return an item of a reply as a dict."""
    if isinstance(item, bytes):
        found: Item = loads(item)
        return found
    return item


# Every write of a tenant's entity has these conditions.
@lru_cache(1024)
def _has_text(name: str, text: str) -> Condition:
    return Compare("=", Attr((name,)), Const({"S": text}))


@lru_cache(64)
def _is_free(partition: str) -> Condition:
    return Not(Exists((partition,)))
