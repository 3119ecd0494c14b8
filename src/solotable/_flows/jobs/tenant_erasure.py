"""Erase a tenant: every item of one tenant in the opened tables, page by page.

A Query of each partition that the declared keys assign to the tenant finds its items. A table is scanned if
an entity stores a tenant's items in other partitions. No state is stored between calls: the remaining items
are the remaining work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.codecs import unescape
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, PURGE_AT
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import KeyTerm
from solotable._flows.internal_items import internal_partition
from solotable._flows.retry import Flow, send
from solotable._flows.scope import INTERNAL, Scope
from solotable._flows.traits.outbox import EVENT
from solotable._flows.traits.unique import lock_key
from solotable._flows.verbs.batch import delete_items
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import Query, Scan
from solotable._values import Item
from solotable.errors import DataError, StoredDataError

from .purge_queue import queue_key

#: The items of one Query or Scan, which take four batches of deletes.
_PAGE_ITEMS = 100
#: The number of parts after the kind of an internal partition key whose first part is a tenant.
_TENANT_PARTS = {"AUDIT": 1, "OUTBOX": 1, "LEASE": 2, "TOKEN": 2, "COUNTER": 3}
#: Kinds of internal partitions that a tenant has one of.
_LISTED = ("OUTBOX", "AUDIT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The progress of a tenant's erasure; in a dry run, `removed` counts the items to remove."""

    tenant: str
    #: Items that were read; a scan reads those of every tenant.
    read: int = 0
    removed: int = 0
    #: Items under a hold, which stay.
    held: int = 0
    #: Whether every partition and every scan was read to its end.
    done: bool = False
    #: The tables that were scanned.
    scanned: tuple[str, ...] = ()


Progress = Callable[[Erasure], None]


def erase_tenant(
    scope: Scope,
    tenant: str,
    *,
    dry_run: bool = False,
    scan: bool | None = None,
    most: int | None = None,
    progress: Progress | None = None,
) -> Flow[Erasure]:
    """Remove every item of a tenant; call it again to continue after a stop, a kill or `most` items."""
    if not tenant:
        raise DataError("erase_tenant() takes the id of a tenant, got an empty string.")
    tables = [table for table in scope.tables if table.tenant is not None]
    scanned = [table for table in tables if (bool(unreached(table)) if scan is None else scan)]
    state = Erasure(tenant=tenant, scanned=tuple(table.name for table in scanned))
    reads: list[tuple[Table, tuple[KeyTerm, ...] | None]] = [
        (table, terms) for table in tables for terms in partitions(table, tenant)
    ]
    reads += [(table, None) for table in scanned]
    for table, terms in reads:
        start: Item | None = None
        while True:
            page = yield from _page(scope, table, terms, start)
            items = [item for item in decode_items(page.items or ()) if _is_owned(table, item, tenant, terms)]
            free = [item for item in items if HELD not in item]
            if not dry_run:
                yield from _delete(scope, table, free)
            state = replace(
                state,
                read=state.read + page.scanned,
                removed=state.removed + len(free),
                held=state.held + len(items) - len(free),
            )
            if progress is not None:
                progress(state)
            if most is not None and state.removed >= most:
                return state
            start = page.last_key or None
            if start is None:
                break
    return replace(state, done=True)


def unreached(table: Table) -> list[str]:
    """Return the entities of a table whose items a Query by tenant cannot find."""
    return [plan.name for plan in table.plans.values() if plan.tenant is not None and not _is_listed(plan)]


def partitions(table: Table, tenant: str) -> list[tuple[KeyTerm, ...]]:
    """Return the key conditions of the partitions that hold items of this tenant alone."""
    found: dict[str, tuple[KeyTerm, ...]] = {}
    for plan in table.plans.values():
        if plan.tenant is None or not _is_listed(plan):
            continue
        partition, arguments = plan.primary.partition, {plan.tenant: tenant}
        each = [partition.equals(arguments)]
        if isinstance(partition, TemplateLayout):
            each = [
                (KeyTerm(partition.attribute, "=", ({"S": text},)),)
                for text in partition.partitions(arguments)
            ]
        found |= {repr(terms): terms for terms in each}
    if table.partition.kind == "S" and table.sort is not None:
        for kind in _LISTED:
            terms = (KeyTerm(table.partition.name, "=", ({"S": internal_partition(kind, tenant)},)),)
            found[repr(terms)] = terms
    return list(found.values())


def tenant_of(table: Table, item: Item) -> str | None:
    """Return the tenant of an entity's item or, by its key, of an internal item; None without a tenant."""
    tag = item.get(table.tag, {}).get("S", "")
    plan = table.plans.get(tag)
    if plan is not None:
        return None if plan.tenant is None else _text(item, plan.attributes[plan.tenant].wire)
    if not tag.startswith(INTERNAL):
        return None if table.tenant is None else _text(item, table.tenant)
    if EVENT in item:
        return _text(item[EVENT].get("M", {}), "tenant")
    kind, *parts = item[table.partition.name].get("S", "").split("#")
    if kind == "UNIQUE":
        holder = table.plans.get(item.get("entity", {}).get("S", ""))
        return unescape(parts[0]) if holder is not None and holder.tenant is not None else None
    if kind in _TENANT_PARTS:
        return unescape(parts[0]) if len(parts) == _TENANT_PARTS[kind] else None
    # A snapshot or a redirect shares the partition of its entity, whose tag follows the colon.
    beside = table.plans.get(tag.partition(":")[2])
    if beside is None or beside.tenant is None:
        return None
    partition = beside.primary.partition
    if isinstance(partition, TemplateLayout):
        found = (partition.parse(item[partition.attribute].get("S", "")) or {}).get(beside.tenant)
        return None if found is None else str(found)
    return _text(item, beside.attributes[beside.tenant].wire)


def _is_listed(plan: Plan) -> bool:
    partition = plan.primary.partition
    has_buckets = isinstance(partition, TemplateLayout) and partition.bucket is not None
    return set(partition.fields) == {plan.tenant} and not has_buckets


def _is_owned(table: Table, item: Item, tenant: str, terms: tuple[KeyTerm, ...] | None) -> bool:
    owner = tenant_of(table, item)
    # An item without an owner in the tenant's partition belongs to the tenant.
    return owner == tenant or (owner is None and terms is not None)


def _page(scope: Scope, table: Table, terms: tuple[KeyTerm, ...] | None, start: Item | None) -> Flow[Page]:
    name = scope.table(table)
    request: Query | Scan
    if terms is None:
        request = Scan(table=name, start=start, limit=_PAGE_ITEMS, consistent=True)
    else:
        request = Query(table=name, key=terms, start=start, limit=_PAGE_ITEMS, consistent=True)
    page: Page = yield from send(request, scope.retries)
    return page


def _delete(scope: Scope, table: Table, items: Sequence[Item]) -> Flow[None]:
    # Delete derived items first: after a crash, their entity is still there to find them.
    elsewhere = [key for item in items for key in _derived_keys(table, item)]
    yield from delete_items(scope, table, elsewhere)
    keys = [{name: item[name] for name in table.key_names} for item in items]
    yield from delete_items(scope, table, keys)


def _derived_keys(table: Table, item: Item) -> Iterator[Item]:
    """Yield the keys of an entity's derived items in other partitions: unique locks and its queue entry."""
    plan = table.plans.get(item.get(table.tag, {}).get("S", ""))
    if plan is None:
        return
    if DELETED_AT in item and PURGE_AT in item:
        key = {name: item[name] for name in plan.primary.names}
        yield queue_key(plan, key, int(item[PURGE_AT]["N"]))
    rules = [trait for trait in plan.traits if isinstance(trait, UniqueRule)]
    # Only a scan finds the locks of an item that its class cannot decode.
    with suppress(StoredDataError):
        entity = plan.decode(item) if rules else None
        for rule in rules:
            if (lock := lock_key(plan, rule, entity)) is not None:
                yield lock


def _text(item: Item, name: str) -> str | None:
    found: str | None = item.get(name, {}).get("S")
    return found
