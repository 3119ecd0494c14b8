"""Check patterns: a key can serve them, they read only their entity's items, they have a docstring.

ST102, ST107, ST303, ST501, ST502 and ST902. The linter calls patterns with samples and sends no query.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import are_related
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.patterns.pattern import BoundPattern, Pattern
from solotable._entities.patterns.query import Query
from solotable._expressions.evaluate import paths_of
from solotable.errors import DataError, DeclarationError

from .findings import Finding, make_finding
from .key_overlap import EntityPath, format_key
from .keys import entity_keys
from .pattern_ranges import PatternRange, mixed_range, ranges_of, unserved
from .sample_arguments import CannotSample, samples

_FETCHED_AT_ONCE = 100


def check_patterns(plan: Plan, by_index: Mapping[str | None, list[EntityPath]]) -> Iterator[Finding]:
    """Check every pattern of an entity."""
    for pattern in plan.patterns.values():
        if not pattern.summary:
            yield make_finding(
                "ST502",
                "note",
                f"{plan.name}.{pattern.name} has no docstring, so the list of patterns does not describe it; "
                f"write one line on what it returns.",
                plan=plan,
                at=pattern.function,
            )
        yield from _check(plan, pattern, by_index)


def _check(
    plan: Plan, pattern: Pattern, by_index: Mapping[str | None, list[EntityPath]]
) -> Iterator[Finding]:
    name = f"{plan.name}.{pattern.name}"
    try:
        queries = _queries(plan, pattern)
    except _Unserved as error:
        yield make_finding(
            "ST501",
            "error",
            f"No key can serve {name} ({_sentence(error)}); {_closest(plan, pattern)}.",
            plan=plan,
            at=pattern.function,
        )
        return
    except CannotSample as reason:
        yield _cannot_check(plan, pattern, str(reason))
        return
    except Exception as error:  # noqa: BLE001 - a pattern is the user's code and may raise anything
        yield _cannot_check(plan, pattern, f"it raised {type(error).__name__}: {_sentence(error)}")
        return
    parts = [part for query in queries for part in query.parts]
    try:
        ranges = ranges_of(parts)
        yield from [
            each
            for pattern_range in ranges
            for each in _foreign_items(plan, pattern, pattern_range, by_index, [one.plan for one in parts])
        ]
        yield from _items_between(plan, pattern, queries, ranges)
    except DataError as error:
        yield _cannot_check(plan, pattern, _sentence(error))
        return
    yield from _fetches(name, pattern, ranges)


class _Unserved(Exception):
    """No key serves the query; the text says why."""


def _queries(plan: Plan, pattern: Pattern) -> list[Query[Any]]:
    bound = BoundPattern(pattern, plan.entity)
    queries: list[Query[Any]] = []
    for arguments in samples(pattern, plan):
        try:
            query = bound(**arguments)
        except (DataError, DeclarationError) as error:
            raise _Unserved(str(error)) from error
        for part in query.parts:
            reason = unserved(part) or _unfiltered(part)
            if reason is not None:
                raise _Unserved(reason)
        queries.append(query)
    return queries


def _foreign_items(
    owner: Plan,
    pattern: Pattern,
    pattern_range: PatternRange,
    by_index: Mapping[str | None, list[EntityPath]],
    mixed: Sequence[Plan],
) -> Iterator[Finding]:
    """Find the entities whose items a range reads and drops; those of a mixed query's parts are rows."""
    plan = pattern_range.key.plan
    if plan.table is not owner.table:
        by_index = entity_keys(plan.table)  # a pattern may return the query of another table's entity
    for other in by_index.get(pattern_range.key.index, []):
        if (
            any(are_related(each, other.plan) for each in mixed)
            or (overlap := pattern_range.overlap_with(other)) is None
        ):
            continue
        example = f" ({key})" if (key := format_key(other, overlap.texts)) else ""
        yield make_finding(
            "ST102",
            "error",
            f"{owner.name}.{pattern.name} reads {pattern_range.described}, which reaches "
            f"{other.plan.name}.{other.path.name}{example}: you pay for those items and the store drops "
            f"them; give "
            f"{plan.name} a separate prefix or partition, or read both with query | query or "
            f"db.collection({_collection_arguments(pattern_range.key, other)}, ...).",
            plan=owner,
            at=pattern.function,
        )


def _items_between(
    owner: Plan, pattern: Pattern, queries: Sequence[Query[Any]], ranges: Sequence[PatternRange]
) -> Iterator[Finding]:
    """Find the entities whose items sort between the parts of a mixed query, and in none of them."""
    reported: set[tuple[str, str]] = set()
    for query in queries:
        between = mixed_range(query) if len(query.parts) > 1 else None
        if between is None:
            continue
        for other in entity_keys(query.plan.table).get(between.parts[0].index, []):
            name = (other.plan.name, other.path.name)
            if (
                name in reported
                or any(are_related(part.plan, other.plan) for part in between.parts)
                or any(each.overlap_with(other) for each in ranges)
                or not between.may_contain(other)
            ):
                continue
            assert isinstance(other.path.sort, TemplateLayout)
            reported.add(name)
            parts = " and ".join(dict.fromkeys(part.plan.name for part in between.parts))
            yield make_finding(
                "ST107",
                "warning",
                f"{owner.name}.{pattern.name} reads {parts} as one range, and {'.'.join(name)} "
                f"({other.path.sort.template.text}) can sort between them: you pay for those items and the "
                f"store drops them; choose literals that sort next to each other, add "
                f"{other.plan.name} to the query, or read the entities with one query each.",
                plan=owner,
                at=pattern.function,
            )


def _collection_arguments(one: EntityPath, other: EntityPath) -> str:
    """Return both names for a collection; the entity with the shorter key is the root."""
    first, second = sorted((one, other), key=lambda key: len(key.path.parts))
    return f"{first.plan.name}, {second.plan.name}"


def _fetches(name: str, pattern: Pattern, ranges: list[PatternRange]) -> Iterator[Finding]:
    """Find indexes that lack attributes of the rows, so that the store reads each row from the table."""
    for pattern_range in ranges:
        query, index = pattern_range.queries[0], pattern_range.key.path.index
        if index is None or (projected := _projected(query)) is None:
            continue
        fields = query.plan.attributes if query.view is None else query.view.model_fields
        stored = [query.plan.attributes[field] for field in fields if query.plan.attributes[field].stored]
        absent = [each.field for each in stored if each.wire not in projected]
        absent += [name for name in query.plan.identity if name not in projected]
        if absent:
            yield make_finding(
                "ST303",
                "note",
                f"{name} needs {', '.join(absent)}, which index {index.name!r} does not project, so the "
                f"store "
                f"reads every row from the table: 0.5 RCU for each 4 KB of a row and one more request for "
                f"each {_FETCHED_AT_ONCE} rows; project them, or select() a view of the projected fields.",
                plan=query.plan,
                at=pattern.function,
            )
            return


def _unfiltered(query: Query[Any]) -> str | None:
    """Return why DynamoDB cannot evaluate the filter on the index; None when it can."""
    if query.filter is None:
        return None
    projected = _projected(query)
    for path in paths_of(query.filter):
        attribute = str(path[0])
        if attribute in query.path.names:
            return f"its condition is on the key attribute {attribute!r}, which only a key condition may use"
        if projected is not None and attribute not in projected:
            return f"its condition is on {attribute!r}, which its index does not project"
    return None


def _projected(query: Query[Any]) -> set[str] | None:
    """Return the attributes of the query's index; None for all."""
    table, path = query.plan.table, query.path
    if path.index is None or path.index.projection == "ALL":
        return None
    own = {table.partition.name, *([table.sort.name] if table.sort else [])}
    return own | set(path.names) | set(table.projection(path.index).get("NonKeyAttributes", ()))


def _closest(plan: Plan, pattern: Pattern) -> str:
    """Describe the key with the parts that are closest to the pattern's parameters."""
    wanted = [parameter.name for parameter in pattern.parameters]

    def likeness(name: str) -> tuple[int, int, float]:
        path = plan.keys[name]
        lacking = set(path.partition.fields) - set(wanted) - {plan.tenant}
        alike = difflib.SequenceMatcher(None, pattern.name, name).ratio()
        return -len(lacking), len(set(wanted) & set(path.parts)), alike

    best = max(plan.keys, key=likeness)
    takes = [part for part in plan.keys[best].parts if part != plan.tenant]
    return f"the closest key is {plan.name}.{best}, which takes {', '.join(takes) or 'nothing'}"


def _cannot_check(plan: Plan, pattern: Pattern, reason: str) -> Finding:
    return make_finding(
        "ST902",
        "warning",
        f"{plan.name}.{pattern.name} cannot be checked: {reason}; give its parameters types such as str, "
        f"int, "
        f"datetime or a Literal, and accept every value of the type.",
        plan=plan,
        at=pattern.function,
    )


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
