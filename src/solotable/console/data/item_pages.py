"""Read items in bounded pages: of an entity, of a partition, of no entity. Never a whole table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._expressions.ast import And, Attr, BeginsWith, Compare, Condition, Const, In, KeyTerm
from solotable._flows.consumption import units_of
from solotable._protocol.engine import Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import GetItem, Query, Scan
from solotable._values import Item, canonical_number, item_size
from solotable.errors import DataError, SolotableError

from .catalog import UNCLAIMED, Facet, LiveTable

PAGE_ITEMS = 50
#: The most items that one page of the console reads.
MOST_READ = 1_000
#: DynamoDB: the most bytes that one Query or Scan reads.
PAGE_BYTES = 1024 * 1024
_REQUEST_ITEMS = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """Some items, and what reading them took."""

    items: list[Item]
    read: int
    rcu: float
    #: "Query" or "Scan".
    operation: str
    index: str | None = None
    after: Item | None = None

    @property
    def bytes(self) -> int:
        """The size of the items."""
        return sum(item_size(each) for each in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """A filter on one attribute, as a person writes it."""

    attribute: str
    comparison: str
    text: str

    def condition(self) -> Condition:
        """Return the condition on an item; a value may be a string or a number."""
        path = Attr((self.attribute,))
        if self.comparison == "begins":
            return BeginsWith(path, Const({"S": self.text}))
        texts = [each.strip() for each in self.text.split(",") if each.strip()] or [self.text]
        values = [value for text in texts for value in _values(text)]
        if len(values) == 1:
            return Compare("=", path, Const(values[0]))
        return In(path, tuple(Const(value) for value in values[:100]))


def _values(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"S": text}]
    if text in ("true", "false"):
        found.append({"BOOL": text == "true"})
    with suppress(SolotableError, ValueError):
        found.append({"N": canonical_number(text)})
    return found


def get_item(engine: Engine, table: LiveTable, key: Item) -> tuple[Item | None, float]:
    """Return an item as it is stored, and the read units."""
    request = GetItem(table=table.name, key=key, consistent=True, capacity="INDEXES")
    reply = engine.handle(request)
    found = None if reply.item is None else decode_items([reply.item])[0]
    return found, units_of(request, reply).rcu


def partition_page(
    engine: Engine,
    table: LiveTable,
    value: dict[str, Any],
    *,
    prefix: str = "",
    after: Item | None = None,
    most: int = 100,
) -> ItemPage:
    """Read items of one partition in the order of their sort key."""
    terms = [KeyTerm(table.partition.name, "=", (value,))]
    if prefix and table.sort is not None:
        if table.sort.kind == "S":
            terms.append(KeyTerm(table.sort.name, "begins_with", ({"S": prefix},)))
        else:
            terms.append(KeyTerm(table.sort.name, ">=", ({table.sort.kind: prefix},)))
    request = Query(table=table.name, key=tuple(terms), limit=most, start=after, capacity="INDEXES")
    reply = engine.handle(request)
    return ItemPage(
        items=decode_items(reply.items or ()),
        read=reply.scanned,
        rcu=units_of(request, reply).rcu,
        operation="Query",
        after=reply.last_key,
    )


def facet_request(
    table: LiveTable, facet: Facet, tenant: str | None, wanted: ItemFilter | None
) -> Query | Scan:
    """Return the cheapest request that reads the items of an entity, one tenant's or all."""
    conditions: list[Condition] = [] if wanted is None else [wanted.condition()]
    plan = facet.plan
    if plan is None:
        return Scan(table=table.name, filter=_all(conditions))
    given = {} if tenant is None or plan.tenant is None else {plan.tenant: tenant}
    for path in (plan.primary, *plan.indexes):
        terms = _terms(path, given)
        if terms is not None:
            if plan.entity_filter is not None:
                conditions.append(plan.entity_filter)
            index = None if path.index is None else path.index.name
            return Query(table=table.name, index=index, key=terms, filter=_all(conditions))
    if plan.scan_filter is not None:
        conditions.append(plan.scan_filter)
    if given and plan.tenant is not None:
        wire = plan.attributes[plan.tenant].wire
        conditions.append(Compare("=", Attr((wire,)), Const({"S": str(tenant)})))
    return Scan(table=table.name, filter=_all(conditions))


def _terms(path: AccessPath, given: dict[str, Any]) -> tuple[KeyTerm, ...] | None:
    """Return the key condition of all items of an entity; None if it has more than one partition."""
    if path.index is not None and (path.index.projection != "ALL" or path.when):
        return None
    # An item with None in an index key is not in the index.
    if path.index is not None and any(getattr(each, "optional", False) for each in _layouts(path)):
        return None
    if (
        path.is_split
        or not set(path.partition.fields) <= given.keys()
        or not given.keys() >= set(path.partition.fields)
    ):
        return None
    try:
        return path.terms({name: given[name] for name in path.partition.fields}, None)
    except DataError:
        return None


def _layouts(path: AccessPath) -> list[Any]:
    layouts = [each for each in (path.partition, path.sort) if isinstance(each, TemplateLayout)]
    return [each.template for each in layouts]


def facet_page(
    engine: Engine,
    table: LiveTable,
    facet: Facet,
    *,
    tenant: str | None = None,
    wanted: ItemFilter | None = None,
    after: Item | None = None,
) -> ItemPage:
    """Read up to 50 items of an entity; it reads at most `MOST_READ` items."""
    request = facet_request(table, facet, tenant, wanted)

    def matches(item: Item) -> bool:
        return table.facet_of(item) is facet and _of_tenant(facet.plan, item, tenant)

    return _read(engine, table, request, matches, after)


def unclaimed_page(engine: Engine, table: LiveTable, *, after: Item | None = None) -> ItemPage:
    """Read items that no model describes; it reads at most `MOST_READ` items."""
    scan = Scan(table=table.name)
    return _read(engine, table, scan, lambda item: table.facet_of(item) is UNCLAIMED, after)


def _of_tenant(plan: Plan | None, item: Item, tenant: str | None) -> bool:
    return tenant is None or plan is None or plan.tenant is None or plan.tenant_of(item) == tenant


def _read(
    engine: Engine,
    table: LiveTable,
    request: Query | Scan,
    matches: Callable[[Item], bool],
    after: Item | None,
) -> ItemPage:
    found: list[Item] = []
    read, rcu = 0, 0.0
    while True:
        size = PAGE_ITEMS if request.filter is None and isinstance(request, Query) else _REQUEST_ITEMS
        sent = replace(request, start=after, limit=min(size, MOST_READ - read), capacity="INDEXES")
        reply = engine.handle(sent)
        read, rcu, after = read + reply.scanned, rcu + units_of(sent, reply).rcu, reply.last_key
        fitting = [each for each in decode_items(reply.items or ()) if matches(each)]
        room = PAGE_ITEMS - len(found)
        if len(fitting) > room:
            # The next page begins after the last item that this page shows.
            after = table.position_of(fitting[room - 1], request.index)
        found += fitting[:room]
        if len(found) >= PAGE_ITEMS or after is None or read >= MOST_READ:
            break
    operation = type(request).__name__
    return ItemPage(items=found, read=read, rcu=rcu, operation=operation, index=request.index, after=after)


def _all(conditions: list[Condition]) -> Condition | None:
    return And(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)
