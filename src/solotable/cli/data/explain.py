"""`solotable explain`: the exact request of a pattern, a get or a put, and its cost.

Without a database, the store builds the request over an engine in memory. With a database, reads run there
and are measured. A put never runs there; it is measured on the engine in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import build_entity, fields_of, pattern_named, plan_named, query_of
from solotable.cli.options.database import Exchange, Recorder, scoped, shown_requests, url_of
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import json_option, print_json

from .cost_report import estimated_put, measured, shown_units, written_size
from .prices import DEFAULT_REGION, load_prices
from .reads import key_of

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._entities.declare.table import Table
    from solotable._entities.patterns.cost import Prices
    from solotable._store import AdminStore, Store

_ITEMS, _ITEM_SIZE = 50, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The arguments of the command, and its assumptions."""

    tables: Sequence[Table]
    given: tuple[str, ...]
    target: Target
    items: int | None
    item_size: int | None


@click.command(
    "explain",
    epilog="Example: solotable explain Section.of_survey survey_id=s1 --rate 50/s -m models.py:surveyor",
)
@click.argument("what", metavar="PATTERN|get ENTITY|put ENTITY")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE...]")
@target_options
@click.option("--rate", metavar="N/s", help="Calls: 50/s, 3000/min, 10000/h or 1000000/day.")
@click.option("--items", type=click.IntRange(1), help=f"Items read. Default: {_ITEMS}.")
@click.option("--item-size", type=click.IntRange(1), help=f"Bytes per item. Default: {_ITEM_SIZE}.")
@click.option("--region", help=f"Region of the prices. Default: the URL's region, or {DEFAULT_REGION}.")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own price table, as JSON.",
)
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    what: str,
    arguments: tuple[str, ...],
    target: Target,
    rate: str | None,
    items: int | None,
    item_size: int | None,
    region: str | None,
    prices_file: Path | None,
    as_json: bool,
) -> None:
    """Print the exact request of a PATTERN, a get or a put, with its capacity units and cost.

    Missing arguments get sample values. With a database (--db), a read is run and measured.
    """
    wanted = _Wanted(
        tables=target.tables(),
        given=arguments,
        target=target,
        items=items,
        item_size=item_size,
    )
    if region is None and target.db:
        region = url_of(target.db).settings.get("region")
    prices = load_prices(prices_file, region or DEFAULT_REGION)
    per_second = None if rate is None else _rate(rate)
    if what in ("get", "put"):
        if not arguments or "=" in arguments[0]:
            raise click.UsageError(f"Missing entity; write: solotable explain {what} ENTITY")
        plan = plan_named(wanted.tables, arguments[0])
        explanation = (_get if what == "get" else _put)(wanted, plan, arguments[1:])
    else:
        explanation = _pattern(wanted, what)
    explanation["cost"] = _cost(explanation, prices, per_second)
    if as_json:
        print_json(explanation)
    else:
        click.echo("\n".join(_lines(explanation)))


def _pattern(wanted: _Wanted, name: str) -> dict[str, Any]:
    from solotable._entities.patterns.cost import query_units
    from solotable._entities.patterns.samples import argument_types, stand_in

    plan, pattern = pattern_named(wanted.tables, name)
    given = list(wanted.given)
    named = {text.partition("=")[0].removesuffix(":") for text in given}
    kinds = argument_types(plan.entity, pattern)
    missing = [
        each.name for each in pattern.parameters if each.default is each.empty and each.name not in named
    ]
    if missing and wanted.target.db is None:
        given += [_written(each, stand_in(kinds[each], each, at)) for at, each in enumerate(missing)]
    query = query_of(plan, pattern, given)
    items, size = wanted.items or _ITEMS, wanted.item_size or _ITEM_SIZE
    with _twin(wanted, plan) as (store, recorder):
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
    explanation = _explained(query.described, plan, sent, shown_units(units))
    explanation["index"] = None if query.path.index is None else query.path.index.name
    explanation["assumed"] = {
        "items": items,
        "item_size": size,
        "stand_ins": missing if not wanted.target.db else [],
    }
    if queries > 1:
        explanation["queries"] = queries
    if hydrates:
        explanation["then"] = "BatchGetItem of the whole items, which the index does not hold"
    if wanted.target.db is not None:
        with wanted.target.open(wanted.tables, plan.table, metered=True) as opened:
            opened.store.page(query, limit=items)
            explanation["measured"] = measured(opened.recorder.exchanges, opened.url.text, plan)
    return explanation


def _get(wanted: _Wanted, plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    from solotable._entities.patterns.cost import get_units
    from solotable._entities.patterns.samples import stand_in

    values = fields_of(plan, given)
    missing = [part for part in plan.primary.parts if part not in values and part != plan.tenant]
    infos = plan.entity.model_fields
    if wanted.target.db is None:
        more = [_written(part, stand_in(infos[part].annotation, part)) for part in missing]
    else:
        more, missing = [], []
    key = key_of(plan, (*given, *more))
    size = wanted.item_size or _ITEM_SIZE
    with _twin(wanted, plan) as (store, recorder):
        store.get(plan.entity, **key)
        explanation = _explained(f"get {plan.name}", plan, recorder.exchanges, shown_units(get_units(size)))
    explanation["assumed"] = {"item_size": size, "stand_ins": missing}
    if wanted.target.db is not None:
        with wanted.target.open(wanted.tables, plan.table, metered=True) as opened:
            opened.store.get(plan.entity, **key)
            explanation["measured"] = measured(opened.recorder.exchanges, opened.url.text, plan)
    return explanation


def _put(wanted: _Wanted, plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    from solotable._entities.patterns.samples import stand_in
    from solotable.errors import ConditionFailed, NotFound, TransactionCancelled

    values = fields_of(plan, given)
    missing = [
        name
        for name, info in plan.entity.model_fields.items()
        if info.is_required() and name not in values and name != plan.tenant
    ]
    for at, name in enumerate(missing):
        info = plan.entity.model_fields[name]
        values[name] = stand_in(_annotated(info.annotation, info.metadata), name, at)
    entity = build_entity(plan, values)
    with _twin(wanted, plan) as (store, recorder):
        # The empty engine rejects a child without its parent; its request is what counts here.
        with suppress(NotFound, ConditionFailed, TransactionCancelled):
            store.put(entity)
        sent = recorder.exchanges
    done = all(each.reply is not None for each in sent)
    explanation = _explained(
        f"put {plan.name}", plan, sent, estimated_put(plan.table, sent, wanted.item_size)
    )
    explanation["assumed"] = {"stand_ins": missing, "new_item": True}
    explanation["item_size"] = wanted.item_size or written_size(sent)
    if wanted.item_size is None and done:
        explanation["measured"] = measured(sent, "an engine in memory", plan)
    elif wanted.item_size is not None:
        explanation["assumed"]["item_size"] = wanted.item_size
    return explanation


@contextmanager
def _twin(wanted: _Wanted, plan: Plan) -> Iterator[tuple[Store | AdminStore, Recorder]]:
    """Open a store over an engine in memory that has the entity's table, without items."""
    from solotable._connect import open_engine, over
    from solotable._store import Database
    from solotable.urls import Url

    address = url_of(wanted.target.db) if wanted.target.db else None
    tables = [plan.table] if address is not None and address.table else wanted.tables
    settings = {} if address is None else address.settings
    memory = Url("sqlite", "sqlite://", table=None if address is None else address.table, settings=settings)
    engine = open_engine(Url.parse("sqlite://"))
    try:
        recorder = Recorder(engine, metered=True)
        database = Database(recorder, over(engine, tables, memory).scope)
        tenant = wanted.target.tenant
        if plan.tenant is not None and tenant is None and not wanted.target.admin:
            tenant = f"{{{plan.tenant}}}"
        yield scoped(database, tenant, admin=wanted.target.admin), recorder
    finally:
        engine.close()


def _explained(what: str, plan: Plan, sent: Sequence[Exchange], estimated: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": what,
        "table": plan.table.name,
        "index": None,
        "requests": shown_requests(sent),
        "estimated": estimated,
        "measured": None,
    }


def _cost(explanation: Mapping[str, Any], prices: Prices, rate: float | None) -> dict[str, Any]:
    from solotable._entities.patterns.cost import SECONDS_PER_MONTH, Units, storage_per_month

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
        kept = storage_per_month(items, explanation["item_size"], prices)
        cost["storage_dollars_per_month"] = round(kept, 4)
    return cost


def _rate(text: str) -> float:
    from solotable._entities.patterns.cost import rate_per_second
    from solotable.errors import DataError

    try:
        return rate_per_second(text)
    except DataError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from None


def _written(name: str, value: Any) -> str:
    """Return a sample value as an argument of the command line."""
    from solotable.cli.output import plain

    if isinstance(value, str):
        return f"{name}={value}"
    return f"{name}:={json.dumps(value, default=plain)}"


def _annotated(annotation: Any, metadata: Sequence[Any]) -> Any:
    from typing import Annotated

    return Annotated[(annotation, *metadata)] if metadata else annotation


def _lines(found: Mapping[str, Any]) -> list[str]:
    lines = [f"{found['what']}  on {found['index'] or 'the table'} of {found['table']}", ""]
    for each in found["requests"]:
        lines += [f"{each['operation']} {json.dumps(each['request'], indent=2, ensure_ascii=False)}", ""]
    if "queries" in found:
        lines += [
            f"the first of up to {found['queries']} queries, one for each shard and time bucket",
            "",
        ]
    if "then" in found:
        lines += [f"then {found['then']}", ""]
    lines.append(f"before    {_shown(found['estimated'])}  ({_assumptions(found['assumed'])})")
    after = found["measured"]
    if after is not None:
        lines.append(
            f"after     {_shown(after)}  ({_plural(after['requests'], 'request')} at {after['where']})"
        )
        if "items_read" in after:
            lines.append(
                f"items     {after['items_read']} read, {after['items_returned']} returned"
                + (f", {after['items_filtered']} removed by the filter" if after["items_filtered"] else "")
                + (f", {after['items_of_others']} of other entities" if after["items_of_others"] else "")
            )
    cost = found["cost"]
    lines.append(f"price     ${cost['dollars_per_million']:,.4f} per million calls")
    if cost["dollars_per_month"] is not None:
        lines.append(
            f"          ${cost['dollars_per_month']:,.2f} per month at {cost['rate_per_second']:g} a second"
        )
    if "storage_dollars_per_month" in cost:
        kept = f"${cost['storage_dollars_per_month']:,.2f}"
        lines.append(f"          {kept} per month to store a month of writes, without indexes")
    lines.append(
        f"          on demand in {cost['region']}, prices of {cost['prices_of']}, as {cost['basis']}"
    )
    return lines


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shown(counted: Mapping[str, Any]) -> str:
    unit = "WCU" if counted["kind"] == "write" else "RCU"
    by = [f"{name} {units:g}" for name, units in counted["by"].items() if units]
    text = f"{counted['units']:g} {unit}" + (f" = {' + '.join(by)}" if len(by) > 1 else "")
    return f"{text}, after a read of {counted['read_first']:g} RCU" if counted.get("read_first") else text


def _assumptions(assumed: Mapping[str, Any]) -> str:
    parts = []
    if "items" in assumed:
        parts.append(f"{assumed['items']} items of {assumed['item_size']} bytes")
    elif "item_size" in assumed:
        parts.append(f"an item of {assumed['item_size']} bytes")
    if assumed.get("new_item"):
        parts.append("a new item")
    if assumed["stand_ins"]:
        parts.append(f"sample values for {', '.join(assumed['stand_ins'])}")
    return "; ".join(parts)
