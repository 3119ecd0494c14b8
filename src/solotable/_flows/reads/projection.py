"""What a query requests of each item, and whether its index has enough of it."""

from __future__ import annotations

from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.patterns.query import Query
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.evaluate import paths_of
from solotable.errors import DeclarationError


def may_hide_more(plan: Plan) -> bool:
    """Return whether subclasses hide items that the filters of the entity do not know."""
    hiding = [(each.deletion is not None, each.ttl) for each in (plan, *plan.subclasses.values())]
    return len(set(hiding)) > 1


def projection_of(query: Query[Any]) -> tuple[tuple[str, ...], ...] | None:
    """Return the attributes that a query requests: those of its view, and those that the store needs."""
    plan = query.plan
    # Only upgrades know which attributes they need, so read items that may be old whole.
    if query.view is None or plan.schema_versions.upgrades or may_hide_more(plan):
        return None
    wanted = [plan.attributes[name].wire for name in query.view.model_fields if plan.attributes[name].stored]
    tag = plan.table.internal_tag
    # Without a declared tag, the items of an index that does not project one are recognised by their keys.
    if plan.table.tag is not None or has_attribute(plan, query.path, tag):
        wanted.append(tag)
    wanted += key_names(query.path, plan)
    # What hides an item, where the index has it: a delete removes an item from the indexes that it knows.
    hiding = [plan.attributes[plan.ttl].wire] if plan.ttl is not None else []
    hiding += [DELETED_AT] if plan.deletion is not None else []
    wanted += [name for name in hiding if has_attribute(plan, query.path, name)]
    if plan.tenant is not None and has_attribute(plan, query.path, plan.attributes[plan.tenant].wire):
        wanted.append(plan.attributes[plan.tenant].wire)
    wanted += (
        [plan.schema_versions.attribute, plan.schema_versions.oldest_attribute]
        if plan.schema_versions.declared
        else []
    )
    return tuple((name,) for name in dict.fromkeys(wanted))


def check_projection(query: Query[Any]) -> bool:
    """Return whether rows must be fetched from the table; reject filters on attributes the index lacks."""
    plan, path = query.plan, query.path
    keys = set(path.names)
    used = {attribute[0] for attribute in paths_of(query.filter)} if query.filter is not None else set()
    for name in used:
        if name in keys:
            raise DeclarationError(
                f"{query.described}: DynamoDB rejects a filter on the key attribute {name!r}; "
                f"use an argument or a range of the key instead."
            )
        if not has_attribute(plan, path, name):
            assert path.index is not None
            raise DeclarationError(
                f"{query.described}: index {path.index.name!r} does not project {name!r}, so DynamoDB cannot "
                f"filter by it; project the attribute, or filter the rows in Python."
            )
    if path.index is None or path.index.projection == "ALL":
        return False
    if plan.schema_versions.upgrades:
        # Only upgrades know which attributes they need.
        return True
    attributes = {
        each.wire: each for part in (plan, *plan.subclasses.values()) for each in part.attributes.values()
    }
    names = {each.field for each in attributes.values()} if query.view is None else query.view.model_fields
    needed = {each.wire for each in attributes.values() if each.stored and each.field in names}
    needed |= plan.identity.keys()
    if may_meet_deleted(plan, path):
        needed.add(DELETED_AT)
    if plan.ttl is not None:
        # A view hides what is expired, too.
        needed.add(plan.attributes[plan.ttl].wire)
    return not all(has_attribute(plan, path, name) for name in needed)


def may_meet_deleted(plan: Plan, path: AccessPath) -> bool:
    """Return whether a path has soft-deleted items; a delete removes them from derived indexes."""
    return plan.deletion is not None and (path.index is None or not path.derived)


def has_attribute(plan: Plan, path: AccessPath, name: object) -> bool:
    """Return whether the path's index projects an attribute."""
    index = path.index
    if index is None or index.projection == "ALL":
        return True
    included = plan.table.projection(index).get("NonKeyAttributes", ())
    return name in included or name in path.names or name in plan.primary.names


def key_names(path: AccessPath, plan: Plan) -> tuple[str, ...]:
    """Return the key attributes of the table and of the path's index."""
    return tuple(dict.fromkeys((*plan.primary.names, *path.names)))
