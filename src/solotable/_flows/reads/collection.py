"""Read several entities that share a partition with one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout, highest_with_prefix
from solotable._expressions.ast import KeyTerm
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol import requests
from solotable._protocol.replies import Page as Reply
from solotable._protocol.replies import decode_items
from solotable.errors import DataError, DeclarationError


def collection(
    scope: Scope, members: Sequence[tuple[Plan, AccessPath]], given: Mapping[str, Any], *, most: int
) -> Flow[list[list[Any]]]:
    """Read several entities that share a partition with one query; return one list for each entity."""
    table, terms = _span(scope, members, given)
    first = members[0][1]
    for _, path in members:
        if path.index is not None and path.index.projection != "ALL":
            raise DeclarationError(
                f"A collection needs whole items, but index {path.index.name!r} does not project all "
                f"attributes; use projection='ALL', or read the entities one by one."
            )
    request = requests.Query(table=table, key=terms, index=None if first.index is None else first.index.name)
    found: dict[str, list[Any]] = {plan.tag: [] for plan, _ in members}
    total, start = 0, None
    while True:
        reply: Reply = yield from send(replace(request, start=start), scope.retries)
        for item in decode_items(reply.items or ()):
            plan = scope.known(members[0][0].table, item)
            if plan is not None and plan.tag in found and (entity := scope.admit(plan, item)) is not None:
                found[plan.tag].append(entity)
                total += 1
        if total > most:
            raise DataError(
                f"The collection has more than {most:,} items; raise most=, or page through each entity."
            )
        start = reply.last_key
        if not start:
            return [found[plan.tag] for plan, _ in members]


def split_root(root: object, found: list[list[Any]]) -> tuple[Any, ...]:
    """Return a collection with the first list replaced by its single entity, or None."""
    if len(found[0]) > 1:
        raise DataError(
            f"The first entity of a collection must be a single item, but {root!r} has {len(found[0])} "
            f"items in this range; put an entity with one item first."
        )
    return (found[0][0] if found[0] else None, *found[1:])


def _span(
    scope: Scope, members: Sequence[tuple[Plan, AccessPath]], given: Mapping[str, Any]
) -> tuple[str, tuple[KeyTerm, ...]]:
    """Return the table and the one key condition that covers all members."""
    names = {(plan.table.name, path.index.name if path.index else None) for plan, path in members}
    if len(names) > 1:
        raise DeclarationError(
            "The entities of a collection must share one table or one index; "
            f"got {', '.join(sorted(f'{table}/{index}' if index else table for table, index in names))}."
        )
    partitions, ends = [], []
    for plan, path in members:
        arguments = scope.bind(plan, given)
        own = {name: value for name, value in arguments.items() if name in path.fields}
        partitions.append(path.partition.equals(own))
        if path.sort is None:
            continue
        if not isinstance(path.sort, TemplateLayout):
            raise DeclarationError(
                f"A collection needs a sort key with a template, but {plan.name}.{path.name} uses a field."
            )
        ends.append(_ends(path.sort, own))
    unused = set(given) - {name for _, path in members for name in path.fields}
    if unused:
        raise DataError(f"No entity of the collection has the key part {', '.join(sorted(unused))}.")
    if any(partition != partitions[0] for partition in partitions):
        shown = " and ".join(str(partition[0].values[0]) for partition in partitions)
        raise DeclarationError(f"The entities of a collection must share a partition; got {shown}.")
    table = scope.table(members[0][0].table)
    if not ends:
        return table, partitions[0]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    sort = members[0][1].sort
    assert isinstance(sort, TemplateLayout)
    return table, (*partitions[0], KeyTerm(sort.attribute, "BETWEEN", ({"S": low}, {"S": high})))


def _ends(sort: TemplateLayout, arguments: Mapping[str, Any]) -> tuple[str, str]:
    prefix = sort.template.prefix(arguments)
    if sort.template.next_field(arguments) is None:
        return prefix, prefix
    # Without a known prefix of the sort key, the collection is the whole partition.
    return prefix or "\x00", highest_with_prefix(prefix) or highest_with_prefix("\U0010ffff") or ""
