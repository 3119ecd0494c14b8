"""Erase a tenant: every item of one tenant in the opened tables, page by page.

A Query of each partition that the declared keys assign to the tenant finds its items. A table is scanned
instead if an entity stores a tenant's items in other partitions. No state is stored between calls: the
remaining items are the remaining work.

Entities on hold stay, with their locks, snapshots and redirects. Global entities and items of undeclared
entities stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import is_internal, tag_of
from solotable._entities.declare.table import Table
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.parts.codecs import unescape
from solotable._entities.traits.history import History
from solotable._entities.traits.names import Names
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, PURGE_AT
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import KeyTerm
from solotable._flows.internal_items import internal_partition
from solotable._flows.reads.get import get_items
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.traits.names import key_at
from solotable._flows.traits.outbox import EVENT
from solotable._flows.traits.unique import TAG, lock_key
from solotable._flows.writes.batch import delete_items
from solotable._protocol.replies import Page, decode_items
from solotable._protocol.requests import Query, Scan
from solotable._values import Item
from solotable.errors import DataError, StoredDataError

from .purge_queue import queue_key

#: The items of one Query or Scan, which take four batches of deletes.
_PAGE_ITEMS = 100
#: The number of parts after the kind of an internal partition key whose first part is a tenant.
_TENANT_PARTS = {"AUDIT": 1, "OUTBOX": 1, "LEASE": 2, "SYNC": 2, "TOKEN": 2, "COUNTER": 3}
#: Kinds of internal partitions that a tenant has one of.
_LISTED = ("OUTBOX", "AUDIT")
#: Kinds whose sort key is one more part of the partition key in a table without a sort key.
_WITH_SORT = ("LEASE", "TOKEN")
#: What only a scan finds, as `Erasure.not_searched` names it.
_SCANNED_KINDS = ("leases", "tokens", "counters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The progress of a tenant's erasure; in a dry run, `removed` counts the items to remove."""

    tenant: str
    #: Items that were read; a scan reads those of every tenant.
    read: int = 0
    #: Items that were removed, without purge queue entries; locks count only in a scanned table.
    removed: int = 0
    #: Entities on hold, which stay with their locks, snapshots and redirects.
    held: int = 0
    #: Items of entities that are not declared, which stay.
    unknown: int = 0
    #: Whether every partition and every scan was read to its end.
    done: bool = False
    #: The tables that were scanned.
    scanned: tuple[str, ...] = ()
    #: For each table without a scan: the entities and kinds of internal items that only a scan finds.
    not_searched: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


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
    if not isinstance(tenant, str):
        raise DataError(f"erase_tenant() takes the id of a tenant as a str, got {type(tenant).__name__}.")
    if not tenant:
        raise DataError("erase_tenant() takes the id of a tenant, got an empty string.")
    if most is not None and most < 1:
        raise DataError(f"erase_tenant(): most={most}; pass at least 1, or None for no limit.")
    tables = [table for table in scope.tables if table.tenant is not None]
    scanned = [table for table in tables if (bool(unreached(table)) if scan is None else scan)]
    state = Erasure(
        tenant=tenant,
        scanned=tuple(table.name for table in scanned),
        not_searched={
            table.name: (*unreached(table), *_SCANNED_KINDS) for table in tables if table not in scanned
        },
    )
    for table in tables:
        found = partitions(table, tenant)
        # A scan finds what the queries find.
        reads: Sequence[tuple[KeyTerm, ...] | None] = [None] if table in scanned else found
        for terms in reads:
            start: Item | None = None
            while True:
                page = yield from _page(scope, table, terms, start)
                found_items = _classify(table, decode_items(page.items or ()), tenant, found)
                free = yield from _without_hold(scope, table, found_items.owned)
                if most is not None:
                    free = free[: most - state.removed]
                if not dry_run:
                    yield from _delete(scope, table, free, with_locks=terms is not None)
                state = replace(
                    state,
                    read=state.read + page.scanned,
                    removed=state.removed + len(free),
                    held=state.held + found_items.held,
                    unknown=state.unknown + found_items.unknown,
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
        each: list[tuple[KeyTerm, ...]]
        if isinstance(partition, TemplateLayout):
            each = [
                (KeyTerm(partition.attribute, "=", ({"S": text},)),)
                for text in partition.partitions(arguments)
            ]
        else:
            each = [partition.equals(arguments)]
        found |= {repr(terms): terms for terms in each}
    if table.partition.kind == "S" and table.sort is not None:
        for kind in _LISTED:
            terms = (KeyTerm(table.partition.name, "=", ({"S": internal_partition(kind, tenant)},)),)
            found[repr(terms)] = terms
        if any(plan.synced is not None for plan in table.plans.values()):
            terms = (KeyTerm(table.partition.name, "=", ({"S": internal_partition("SYNC", tenant, "")},)),)
            found[repr(terms)] = terms
    return list(found.values())


def tenant_of(table: Table, item: Item) -> str | None:
    """Return the tenant of an entity's item or, by its key, of an internal item; None without a tenant."""
    plan = table.recognise(item)
    if plan is not None:
        return plan.tenant_of(item)
    if not is_internal(table, item):
        return None if table.tenant is None else _text(item, table.tenant)
    if EVENT in item:
        return _text(item[EVENT].get("M", {}), "tenant")
    kind, *parts = item[table.partition.name].get("S", "").split("#")
    if kind == "UNIQUE":
        holder = table.plans.get(item.get("entity", {}).get("S", ""))
        return unescape(parts[0]) if holder is not None and holder.tenant is not None else None
    if kind in _WITH_SORT and table.sort is None:
        parts = parts[:-1]
    if kind in _TENANT_PARTS:
        return unescape(parts[0]) if len(parts) == _TENANT_PARTS[kind] else None
    beside = table.plans.get(_entity_tag(tag_of(table, item) or ""))
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
    # The names of finer spaces are in no list, so a scan finds their logs.
    has_spaces = plan.synced is not None and bool(plan.synced.space_template.fields)
    return set(partition.fields) == {plan.tenant} and not has_buckets and not has_spaces


@dataclass(slots=True)
class _PageItems:
    """The items of one page by what the erasure does with them; items of other owners are left out."""

    owned: list[Item] = field(default_factory=list)
    held: int = 0
    unknown: int = 0


def _classify(
    table: Table, items: Sequence[Item], tenant: str, found: Sequence[tuple[KeyTerm, ...]]
) -> _PageItems:
    result = _PageItems()
    for item in items:
        is_inside = any(all(item.get(term.name) == term.values[0] for term in terms) for terms in found)
        tag = (tag_of(table, item) or "") if is_internal(table, item) else ""
        plan = table.plans.get(_entity_tag(tag)) if tag else table.recognise(item)
        owner = tenant_of(table, item)
        if plan is None and (":" in tag or not tag):
            result.unknown += is_inside or _text(item, table.tenant or "") == tenant
        elif owner == tenant or (
            owner is None and is_inside and plan is not None and plan.tenant is not None
        ):
            # The snapshots of an entity on hold have a copy of the hold, also after its release.
            if HELD in item and not tag:
                result.held += 1
            else:
                result.owned.append(item)
    return result


def _entity_tag(tag: str) -> str:
    """Return the tag of the entity of a snapshot or a redirect, which follows the colon in its own tag."""
    return tag.partition(":")[2]


def _without_hold(scope: Scope, table: Table, items: Sequence[Item]) -> Flow[list[Item]]:
    """Return the items that are not a lock, snapshot or redirect of an entity on hold."""
    holders = [_holder_key(table, item) for item in items]
    wanted = [key for key in holders if key is not None]
    if not wanted:
        return list(items)
    stored = yield from get_items(scope, table, wanted, consistent=True)
    held = [key for key, item in zip(wanted, stored, strict=True) if item is not None and HELD in item]
    return [item for item, key in zip(items, holders, strict=True) if key is None or key not in held]


def _holder_key(table: Table, item: Item) -> Item | None:
    """Return the key of the entity of a lock, snapshot or redirect; None if it cannot be on hold."""
    if not is_internal(table, item):
        return None
    tag = tag_of(table, item) or ""
    is_lock = tag == TAG
    plan = table.plans.get(item.get("entity", {}).get("S", "") if is_lock else _entity_tag(tag))
    if plan is None or plan.deletion is None:
        return None
    if is_lock:
        holder: Item | None = item.get("holder", {}).get("M")
        return holder
    key = {name: item[name] for name in table.key_names}
    for trait in plan.traits:
        if isinstance(trait, History) and {"S": tag} == trait.tag_value:
            values = trait.template.parse(item[trait.sort]["S"])
            # A snapshot shares the partition of its entity.
            sort = None if values is None or plan.primary.sort is None else plan.primary.sort.encode(values)
            return None if sort is None else key | sort
        if isinstance(trait, Names) and trait.is_redirect(item):
            with suppress(DataError):
                arguments = plan.arguments_of(key)
                return None if arguments is None else key_at(plan, trait, arguments, trait.target(item))
    return None


def _page(scope: Scope, table: Table, terms: tuple[KeyTerm, ...] | None, start: Item | None) -> Flow[Page]:
    name = scope.table(table)
    request: Query | Scan
    if terms is None:
        request = Scan(table=name, start=start, limit=_PAGE_ITEMS, consistent=True)
    else:
        request = Query(table=name, key=terms, start=start, limit=_PAGE_ITEMS, consistent=True)
    page: Page = yield from send(request, scope.retries)
    return page


def _delete(scope: Scope, table: Table, items: Sequence[Item], *, with_locks: bool) -> Flow[None]:
    # Delete derived items first: after a crash, their entity is still there to find them.
    derived = [key for item in items for key in _derived_keys(table, item, with_locks=with_locks)]
    yield from delete_items(scope, table, derived)
    keys = [{name: item[name] for name in table.key_names} for item in items]
    yield from delete_items(scope, table, keys)


def _derived_keys(table: Table, item: Item, *, with_locks: bool) -> Iterator[Item]:
    """Yield the keys of an entity's derived items in other partitions: its queue entry and its locks.

    A scan finds locks itself, and counts them.
    """
    plan = table.recognise(item)
    if plan is None:
        return
    if DELETED_AT in item and PURGE_AT in item:
        key = {name: item[name] for name in plan.primary.names}
        yield queue_key(plan, key, int(item[PURGE_AT]["N"]))
    rules = [trait for trait in plan.traits if isinstance(trait, UniqueRule)] if with_locks else []
    # Only a scan finds the locks of an item that its class cannot decode.
    with suppress(StoredDataError):
        entity = plan.decode(item) if rules else None
        for rule in rules:
            if (lock := lock_key(plan, rule, entity)) is not None:
                yield lock


def _text(item: Item, name: str) -> str | None:
    found: str | None = item.get(name, {}).get("S")
    return found
