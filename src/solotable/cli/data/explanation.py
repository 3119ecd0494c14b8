"""Build the request of a pattern, a get or a put, and count its capacity units.

A store over an empty engine in memory builds the request. A database, if given, runs reads and reports their
units; a put never runs there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

import click

from solotable._connect import open_engine, over
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.patterns.cost import (
    SECONDS_PER_MONTH,
    Prices,
    Units,
    get_units,
    query_units,
    storage_per_month,
)
from solotable._entities.patterns.samples import argument_types, sample
from solotable._store import AdminStore, Database, Store
from solotable.cli.options.arguments import build_entity, build_query, find_pattern, find_plan, parse_fields
from solotable.cli.options.database import Exchange, Recorder, parse_url, render_requests, select_scope
from solotable.cli.options.target import Target
from solotable.cli.output import plain
from solotable.errors import ConditionFailed, NotFound, TransactionCancelled
from solotable.urls import Url

from .cost_report import estimate_put, measure, report_units, sum_written_bytes
from .explain import DEFAULT_ITEM_SIZE, DEFAULT_ITEMS
from .reads import parse_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What to explain: the arguments of the command, and its assumptions."""

    tables: Sequence[Table]
    target: Target
    arguments: tuple[str, ...]
    items: int | None
    item_size: int | None


def explain(subject: Subject, what: str) -> dict[str, Any]:
    """Explain a pattern, or a `get` or `put` of the entity that the first argument names."""
    if what not in ("get", "put"):
        return _explain_pattern(subject, what)
    if not subject.arguments or "=" in subject.arguments[0]:
        raise click.UsageError(f"Missing entity; write: solotable explain {what} ENTITY")
    plan = find_plan(subject.tables, subject.arguments[0])
    return (_explain_get if what == "get" else _explain_put)(subject, plan, subject.arguments[1:])


def monthly_cost(explanation: Mapping[str, Any], prices: Prices, rate: float | None) -> dict[str, Any]:
    """Price the units of an explanation: per million calls, and per month at a rate per second."""
    basis = "measured" if explanation["measured"] else "estimated"
    counted = explanation[basis]
    parts = (
        Units(table=counted["units"], writes=counted["kind"] == "write"),
        Units(table=counted.get("read_first", 0.0)),
    )
    cost: dict[str, Any] = {
        "basis": basis,
        "region": prices.region,
        "prices_of": prices.date,
        "dollars_per_million": round(sum(part.per_million(prices) for part in parts), 6),
        "rate_per_second": rate,
        "dollars_per_month": None,
    }
    if rate is not None:
        cost["dollars_per_month"] = round(sum(part.per_month(prices, rate) for part in parts), 4)
    if rate is not None and "item_size" in explanation:
        items = round(rate * SECONDS_PER_MONTH)
        storage = storage_per_month(items, explanation["item_size"], prices)
        cost["storage_dollars_per_month"] = round(storage, 4)
    return cost


def _explain_pattern(subject: Subject, name: str) -> dict[str, Any]:
    plan, pattern = find_pattern(subject.tables, name)
    given = list(subject.arguments)
    named = {text.partition("=")[0].removesuffix(":") for text in given}
    kinds = argument_types(plan.entity, pattern)
    missing = [
        each.name for each in pattern.parameters if each.default is each.empty and each.name not in named
    ]
    if missing and subject.target.db is None:
        given += [_format_argument(each, sample(kinds[each], each, at)) for at, each in enumerate(missing)]
    query = build_query(plan, pattern, given)
    subject.target.require_tenant(plan, query.arguments)
    items, size = subject.items or DEFAULT_ITEMS, subject.item_size or DEFAULT_ITEM_SIZE
    with _memory_store(subject, plan) as (store, recorder):
        prepared = store.explain(query)
        hydrates, queries = prepared.hydrates, prepared.queries
        store.page(query, limit=items)
        sent = recorder.exchanges[:1]
    units = query_units(
        items,
        size,
        index=None if query.path.index is None else query.path.index.name,
        consistent=query.consistently,
        hydrates=hydrates,
    )
    explanation = _new_explanation(query.described, plan, sent, report_units(units))
    explanation["index"] = None if query.path.index is None else query.path.index.name
    explanation["assumed"] = {
        "items": items,
        "item_size": size,
        "sample_values": missing if not subject.target.db else [],
    }
    if queries > 1:
        explanation["queries"] = queries
    if hydrates:
        explanation["then"] = "BatchGetItem of the whole items, which the index does not hold"
    if subject.target.db is not None:
        with subject.target.open(subject.tables, plan.table, metered=True) as opened:
            opened.store.page(query, limit=items)
            plans = [part.plan for part in query.parts]
            explanation["measured"] = measure(opened.recorder.exchanges, opened.url.text, *plans)
    return explanation


def _explain_get(subject: Subject, plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    values = parse_fields(plan, given)
    missing = [part for part in plan.primary.parts if part not in values and part != plan.tenant]
    infos = plan.entity.model_fields
    if subject.target.db is None:
        more = [_format_argument(part, sample(infos[part].annotation, part)) for part in missing]
    else:
        more, missing = [], []
    key = parse_key(plan, (*given, *more))
    subject.target.require_tenant(plan, key)
    size = subject.item_size or DEFAULT_ITEM_SIZE
    with _memory_store(subject, plan) as (store, recorder):
        store.get(plan.entity, **key)
        explanation = _new_explanation(
            f"get {plan.name}", plan, recorder.exchanges, report_units(get_units(size))
        )
    explanation["assumed"] = {"item_size": size, "sample_values": missing}
    if subject.target.db is not None:
        with subject.target.open(subject.tables, plan.table, metered=True) as opened:
            opened.store.get(plan.entity, **key)
            explanation["measured"] = measure(opened.recorder.exchanges, opened.url.text, plan)
    return explanation


def _explain_put(subject: Subject, plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    values = parse_fields(plan, given)
    subject.target.require_tenant(plan, values)
    missing = [
        name
        for name, info in plan.entity.model_fields.items()
        if info.is_required() and name not in values and name != plan.tenant
    ]
    for at, name in enumerate(missing):
        info = plan.entity.model_fields[name]
        values[name] = sample(_annotate(info.annotation, info.metadata), name, at)
    entity = build_entity(plan, values)
    with _memory_store(subject, plan) as (store, recorder):
        # The empty engine rejects a child without its parent; its request is what counts here.
        with suppress(NotFound, ConditionFailed, TransactionCancelled):
            store.put(entity)
        sent = recorder.exchanges
    done = all(each.reply is not None for each in sent)
    explanation = _new_explanation(
        f"put {plan.name}", plan, sent, estimate_put(plan.table, sent, subject.item_size)
    )
    explanation["assumed"] = {"sample_values": missing, "new_item": True}
    explanation["item_size"] = subject.item_size or sum_written_bytes(sent)
    if subject.item_size is None and done:
        explanation["measured"] = measure(sent, "an engine in memory", plan)
    elif subject.item_size is not None:
        explanation["assumed"]["item_size"] = subject.item_size
    return explanation


@contextmanager
def _memory_store(subject: Subject, plan: Plan) -> Iterator[tuple[Store | AdminStore, Recorder]]:
    """Open a store over an engine in memory that has the entity's table, without items."""
    address = parse_url(subject.target.db) if subject.target.db else None
    tables = [plan.table] if address is not None and address.table else subject.tables
    settings = {} if address is None else address.settings
    memory = Url("sqlite", "sqlite://", table=None if address is None else address.table, settings=settings)
    engine = open_engine(Url.parse("sqlite://"))
    try:
        recorder = Recorder(engine, metered=True)
        database = Database(recorder, over(engine, tables, memory).scope)
        tenant = subject.target.tenant
        if plan.tenant is not None and tenant is None and not subject.target.admin:
            tenant = f"{{{plan.tenant}}}"
        yield select_scope(database, tenant, admin=subject.target.admin), recorder
    finally:
        engine.close()


def _new_explanation(
    what: str, plan: Plan, sent: Sequence[Exchange], estimated: dict[str, Any]
) -> dict[str, Any]:
    return {
        "what": what,
        "table": plan.table.name,
        "index": None,
        "requests": render_requests(sent),
        "estimated": estimated,
        "measured": None,
    }


def _format_argument(name: str, value: Any) -> str:
    """Return a sample value as an argument of the command line."""
    if isinstance(value, str):
        return f"{name}={value}"
    return f"{name}:={json.dumps(value, default=plain)}"


def _annotate(annotation: Any, metadata: Sequence[Any]) -> Any:
    return Annotated[(annotation, *metadata)] if metadata else annotation
