"""Decode stored items as views: models with some of an entity's fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from solotable._entities.codecs.containers import input_name
from solotable._entities.declare.plan import Plan
from solotable._flows.scope import Scope
from solotable._values import Item
from solotable.errors import StoredDataError


def admit_view(scope: Scope, view: type[BaseModel], plan: Plan, item: Item) -> Any:
    """Decode an item as a view; return None if it is hidden or belongs to another entity."""
    found = scope.known(plan.table, item)
    if found is None or not plan.covers(found):
        return None
    if scope.is_hidden(found, item):
        return None
    scope.check_item_tenant(found, item)
    return view_of(view, found, item)


def view_of(view: type[BaseModel], plan: Plan, item: Item) -> Any:
    """Decode a stored item as a view of its entity."""
    item = plan.schema_versions.upgrade(item)
    if plan.cipher is not None:
        item = plan.cipher.decrypt(item)
    if plan.blobs is not None:
        item = plan.blobs.locate(item)
    values = {
        name: plan.attributes[name].decode(item[plan.attributes[name].wire])
        for name in view.model_fields
        if plan.attributes[name].wire in item
    }
    missing = [name for name in view.model_fields if name in plan.primary.fields and name not in values]
    if missing:
        in_key = plan.primary.parse(item) or {}
        values |= {name: in_key[name] for name in missing if name in plan.primary.invertible & in_key.keys()}
    if aliases := _aliases(view):
        values = {aliases.get(name, name): value for name, value in values.items()}
    try:
        return view.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoredDataError(
            f"A stored {plan.name} is invalid in the view {view.__name__}: {where}: {first['msg']}."
        ) from error


@lru_cache(maxsize=256)
def _aliases(view: type[BaseModel]) -> Mapping[str, str]:
    """Return the fields of a view that its constructor takes by another name, with that name."""
    names = {name: input_name(view, name) for name in view.model_fields}
    return {name: alias for name, alias in names.items() if alias != name}
