"""The access-pattern table: the key condition, index and cost of each pattern.

It calls patterns with samples, so a key condition shows `{name}` in place of an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import AttributeLayout, TemplateLayout, bucket_fields
from solotable._entities.keys.ranges import SortRange
from solotable._entities.keys.templates import Template, TemplateField
from solotable._expressions.evaluate import paths_of
from solotable._values.lazy_dataclass import dataclass

from .pattern import BoundPattern, Pattern
from .query import Query
from .samples import argument_types, sample, shown_type

_OPERATORS = {"since": ">=", "after": ">", "until": "<=", "before": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPattern:
    """One row of the access-pattern table."""

    name: str
    table: str
    arguments: tuple[str, ...]
    #: None for the table itself.
    index: str | None
    key_condition: str
    direction: str
    projection: str
    filters: tuple[str, ...]
    cost: str
    summary: str


def access_patterns(tables: Iterable[Table]) -> list[AccessPattern]:
    """Return every pattern of these tables, in the order of their declaration."""
    return [
        access_pattern(plan, pattern)
        for table in tables
        for plan in table.plans.values()
        for pattern in plan.patterns.values()
    ]


def access_pattern(plan: Plan, pattern: Pattern) -> AccessPattern:
    """Describe one pattern; if that fails, the key condition has the reason."""
    try:
        kinds = argument_types(plan.entity, pattern)
        parts = _symbolic(plan, pattern, kinds)
    except Exception as error:  # noqa: BLE001  # a pattern is the user's code and may raise anything
        return _undescribed(plan, pattern, error)
    first = parts[0][0]
    filtered = [query.filter for query, _ in parts if query.filter is not None]
    conditions = [
        key_condition(query.path, symbols, query.sort_range, tenant=query.plan.tenant)
        for query, symbols in parts
    ]
    return AccessPattern(
        name=f"{plan.name}.{pattern.name}",
        table=plan.table.name,
        arguments=_arguments(pattern, kinds),
        index=None if first.path.index is None else first.path.index.name,
        # The parts of a mixed query share their partition.
        key_condition=" OR ".join(dict.fromkeys(conditions)),
        direction="ascending" if first.forward else "descending",
        projection=_projection(first.plan, first),
        filters=tuple(dict.fromkeys(str(path[0]) for each in filtered for path in paths_of(each))),
        cost=_cost(parts),
        summary=pattern.summary,
    )


def key_condition(
    path: AccessPath,
    symbols: Mapping[str, Any],
    sort_range: SortRange | None = None,
    *,
    tenant: str | None = None,
) -> str:
    """Format a key condition with these values, and `{field}` for the tenant."""
    given = dict(symbols)
    if tenant is not None and tenant in path.fields:
        given.setdefault(tenant, f"{{{tenant}}}")
    bucket = path.partition.bucket if isinstance(path.partition, TemplateLayout) else None
    if isinstance(path.partition, TemplateLayout) and bucket is not None and bucket not in given:
        slot = bucket_fields(path.partition.template)[0].codec.slot
        terms = [_equals(path.partition, {**given, bucket: _Symbol(slot)})]
    else:
        terms = [_equals(path.partition, given)]
    if path.sort is not None:
        terms.append(_within(path.sort, given, sort_range))
    return " AND ".join(term for term in terms if term)


#: A query, or a part of a mixed query, with the values of its arguments to show.
_Symbolic = tuple[Query[Any], dict[str, Any]]


def _symbolic(plan: Plan, pattern: Pattern, kinds: Mapping[str, Any]) -> list[_Symbolic]:
    """Call a pattern twice; the key parts that change are arguments, the others are constants."""
    rounds: list[tuple[dict[str, Any], Query[Any]]] = []
    wanted = [each for each in pattern.parameters if each.default is each.empty]
    for other in (False, True):
        values = {
            each.name: sample(kinds[each.name], each.name, number, other=other)
            for number, each in enumerate(wanted)
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        }
        positional = [values.pop(each.name) for each in wanted if each.kind is each.POSITIONAL_ONLY]
        query = BoundPattern(pattern, plan.entity)(*positional, **values)
        rounds.append((values, query))
    (first, query), (again, other_query) = rounds

    def symbol(field: str, one: Any, two: Any) -> Any:
        for name, value in first.items():
            if type(value) is type(one) and value == one and again[name] == two:
                return _Symbol(f"{{{name}}}")
        return one if one == two else _Symbol(f"{{computed {field}}}")

    def shown(part: Query[Any], other: Query[Any]) -> _Symbolic:
        symbols = {
            name: symbol(name, value, other.arguments.get(name)) for name, value in part.arguments.items()
        }
        given = part.sort_range
        if given is not None and other.sort_range is not None:
            pairs = zip(given.values, other.sort_range.values, strict=True)
            values = tuple(symbol(given.field, one, two) for one, two in pairs)
            part = replace(part, sort_range=SortRange(given.verb, given.field, values))
        return part, symbols

    return [shown(*both) for both in zip(query.parts, other_query.parts, strict=True)]


class _Symbol(str):
    """A text to show in place of a value."""

    __slots__ = ()


def _text(template: Template, parts: Iterable[str | TemplateField], given: Mapping[str, Any]) -> str:
    return "".join(
        part if isinstance(part, str) else _value(template, part.field, given[part.field]) for part in parts
    )


def _value(template: Template, field: str, value: Any) -> str:
    if isinstance(value, _Symbol) or (isinstance(value, str) and value == f"{{{field}}}"):
        return str(value)
    return template.encode(field, value)


def _equals(layout: TemplateLayout | AttributeLayout, given: Mapping[str, Any]) -> str:
    if isinstance(layout, TemplateLayout):
        shard = "" if layout.sharding is None else "#{shard}"
        return f"{layout.attribute} = {_text(layout.template, layout.template.parts, given)}{shard}"
    return " AND ".join(f"{each.wire} = {_plain(given[each.field])}" for each in layout.attributes)


def _within(
    layout: TemplateLayout | AttributeLayout, given: Mapping[str, Any], sort_range: SortRange | None
) -> str:
    if isinstance(layout, AttributeLayout):
        return _attribute_range(layout, given, sort_range)
    template = layout.template
    missing = template.next_field(given)
    if sort_range is None and missing is None:
        return _equals(layout, given)
    parts: list[str | TemplateField] = []
    for part in template.parts:
        if isinstance(part, TemplateField) and part.field == missing:
            break
        parts.append(part)
    prefix = _text(template, parts, given)
    if sort_range is None:
        return f'begins_with({layout.attribute}, "{prefix}")' if prefix else ""
    ends = [prefix + _value(template, sort_range.field, value) for value in sort_range.values]
    return _range(layout.attribute, prefix, sort_range, ends, escaped=template.key_format.escape)


def _range(attribute: str, prefix: str, sort_range: SortRange, ends: list[str], *, escaped: bool) -> str:
    if not escaped:
        return _unescaped_range(attribute, prefix, sort_range, ends)
    # `X$` is the upper bound of `X` and of all `X#...`, as in TemplateLayout.
    last = f'"{prefix[:-1]}$"' if prefix.endswith("#") else f'the last "{prefix}..."'
    match sort_range.verb:
        case "starts_with":
            return f'begins_with({attribute}, "{ends[0]}")'
        case "since":
            return f'{attribute} BETWEEN "{ends[0]}" AND {last}' if prefix else f'{attribute} >= "{ends[0]}"'
        case "after":
            return (
                f'{attribute} BETWEEN "{ends[0]}$" AND {last}' if prefix else f'{attribute} >= "{ends[0]}$"'
            )
        case "until":
            high = f'"{ends[0]}$"'
        case "before":
            high = f'the last before "{ends[0]}"'
        case _:
            return f'{attribute} BETWEEN "{ends[0]}" AND "{ends[1]}$"'
    return f'{attribute} BETWEEN "{prefix}" AND {high}' if prefix else f"{attribute} <= {high}"


def _unescaped_range(attribute: str, prefix: str, sort_range: SortRange, ends: list[str]) -> str:
    first, last = f'"{ends[0]}"', f'the last "{prefix}..."'
    match sort_range.verb:
        case "starts_with":
            return f"begins_with({attribute}, {first})"
        case "since":
            low, high = first, last
        case "after":
            low, high = f"the first after {first}", last
        case "until":
            low, high = f'"{prefix}"', f"the last of {first}"
        case "before":
            low, high = f'"{prefix}"', f"the last before {first}"
        case _:
            low, high = first, f'the last of "{ends[1]}"'
    return f"{attribute} BETWEEN {low} AND {high}"


def _attribute_range(layout: AttributeLayout, given: Mapping[str, Any], sort_range: SortRange | None) -> str:
    terms = [
        f"{each.wire} = {_plain(given[each.field])}" for each in layout.attributes if each.field in given
    ]
    if sort_range is not None:
        wire = next(each.wire for each in layout.attributes if each.field == sort_range.field)
        values = [_plain(value) for value in sort_range.values]
        if sort_range.verb == "between":
            terms.append(f"{wire} BETWEEN {values[0]} AND {values[1]}")
        elif sort_range.verb == "starts_with":
            terms.append(f"begins_with({wire}, {values[0]})")
        else:
            terms.append(f"{wire} {_OPERATORS[sort_range.verb]} {values[0]}")
    return " AND ".join(terms)


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) and value.startswith("{") else repr(value)


def _arguments(pattern: Pattern, kinds: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{each.name}: {shown_type(kinds[each.name])}"
        + ("" if each.default is each.empty else f" = {each.default!r}")
        for each in pattern.parameters
    )


def _projection(plan: Plan, query: Query[Any]) -> str:
    if query.view is not None:
        return f"{query.view.__name__} ({', '.join(query.view.model_fields)})"
    index = query.path.index
    if index is None or index.projection == "ALL":
        return "ALL"
    included = plan.table.projection(index).get("NonKeyAttributes", ())
    projected = f"INCLUDE {', '.join(included)}" if included else "KEYS_ONLY"
    return f"{projected}, then whole items" if _fetches(plan, query) else projected


def _fetches(plan: Plan, query: Query[Any]) -> bool:
    """Return whether the index lacks attributes of the rows, so that the store reads them from the table."""
    index = query.path.index
    if index is None or index.projection == "ALL":
        return False
    names = plan.attributes if query.view is None else query.view.model_fields
    needed = {*plan.identity, *(plan.attributes[name].wire for name in names if plan.attributes[name].stored)}
    projected = {
        *plan.table.projection(index).get("NonKeyAttributes", ()),
        *query.path.names,
        *plan.primary.names,
    }
    return not needed <= projected


def _cost(parts: Sequence[_Symbolic]) -> str:
    """Describe the cost of a read of unknown items."""
    query, symbols = parts[0]
    plan = query.plan
    rate = "1 RCU" if query.consistently else "0.5 RCU"
    fields = {*symbols, *([plan.tenant] if plan.tenant else [])}
    one = query.path.index is None and query.sort_range is None and fields >= set(query.path.parts)
    one = one and len(parts) == 1
    text = f"{rate} per 4 KB{' of one item' if one else ' read'}"
    if not one and (queries := _queries(query, symbols)):
        text += f", {queries}"
    if any(_fetches(part.plan, part) for part, _ in parts):
        text += ", and 0.5 RCU per item fetched"
    return f"{text}, dropped rows included" if any(part.filter is not None for part, _ in parts) else text


def _queries(query: Query[Any], given: Mapping[str, Any]) -> str:
    """Describe the number of queries; empty for a single query."""
    layout = query.path.partition
    if not isinstance(layout, TemplateLayout):
        return ""
    texts = []
    if layout.sharding is not None and not set(layout.sharding.fields) <= {*given, query.plan.tenant}:
        texts.append(f"{max(layout.sharding.shards, layout.sharding.was or 0)} queries")
    if layout.bucket is not None and layout.bucket not in given:
        texts.append("for each bucket" if texts else "a query for each bucket")
    return " ".join(texts)


def _undescribed(plan: Plan, pattern: Pattern, error: Exception) -> AccessPattern:
    arguments = tuple(str(each) for each in pattern.parameters)
    return AccessPattern(
        name=f"{plan.name}.{pattern.name}",
        table=plan.table.name,
        arguments=arguments,
        index=None,
        key_condition=f"(not shown: {' '.join(str(error).split()) or type(error).__name__})",
        direction="",
        projection="",
        filters=(),
        cost="",
        summary=pattern.summary,
    )
