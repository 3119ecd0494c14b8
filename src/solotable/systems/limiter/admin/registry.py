"""Registry of entities and stored limits: create, change, list, delete. Flows; no acquire uses it.

Every write records an event in its own transaction, with the actor. Conditions decide, never a read alone.
An entity with children cannot be deleted. Its limits are deleted with it; its buckets expire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from solotable import ANY, Page
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    NotFound,
    SolotableError,
    TransactionFailed,
)
from solotable.flow import (
    Flow,
    Scope,
    Transaction,
    get,
    get_many,
    page,
    put,
    query,
    require,
    retry_conflicts,
)

from .entities import Family, LimitedEntity, OnUnavailable, StoredLimits, check_on_unavailable
from .limits import MICROSECONDS, Limit, limits_of, render
from .names import DEFAULT, entity_name, resource_name


def create_entity(
    scope: Scope,
    entity_id: str,
    *,
    name: str | None = None,
    parent: str | None = None,
    cascade: bool = False,
    metadata: dict[str, Any] | None = None,
) -> Flow[LimitedEntity]:
    """Create an entity, or raise AlreadyExists; a parent must exist and have no parent itself."""
    entity_name(entity_id)
    if parent is not None and entity_name(parent) == entity_id:
        raise DataError(f"Entity {entity_id!r} cannot be its own parent.")
    if cascade and parent is None:
        raise DataError(f"Entity {entity_id!r} has no parent to charge; give parent= with cascade=True.")
    transaction = Transaction(scope)
    try:
        created = transaction.create(
            LimitedEntity(
                entity_id=entity_id,
                name=entity_id if name is None else name,
                parent_id=parent,
                cascade=cascade,
                metadata=metadata or {},
                family=entity_id if parent is None else parent,
                level=1 if parent is None else 2,
            )
        )
    except ValidationError as invalid:
        first = invalid.errors()[0]
        field, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise DataError(f"{field} is not valid: {message}.") from invalid
    if parent is None:
        transaction.create(Family(entity_id=entity_id))
    try:
        yield from transaction.commit()
    except TransactionFailed as failed:
        error: SolotableError = failed.failures[0].error
        if isinstance(error, AlreadyExists):
            raise AlreadyExists(f"Entity {entity_id!r} already exists.", found=error.found) from failed
        if parent is None or not isinstance(error, NotFound):
            raise error from failed
        raise _parent_error(parent, (yield from get_entity(scope, parent))) from failed
    return created


def get_entity(scope: Scope, entity_id: str) -> Flow[LimitedEntity | None]:
    """Return an entity, or None."""
    return (yield from get(scope, LimitedEntity, entity_id=entity_name(entity_id), consistent=True))


def delete_entity(scope: Scope, entity_id: str) -> Flow[LimitedEntity]:
    """Delete an entity and its limits, and return it; raise ConditionFailed if it has children.

    Its limits are deleted first, so that an interrupted call can be repeated.
    """
    found = yield from require(scope, LimitedEntity, entity_id=entity_name(entity_id), consistent=True)
    if found.parent_id is None:
        family = yield from get(scope, Family, entity_id=entity_id, consistent=True)
        if family is not None and family.children:
            raise _has_children(entity_id, family.children)
    for each in (yield from limited_resources(scope, entity=entity_id)):
        yield from _empty(scope, each.owner, each.resource)
    transaction = Transaction(scope)
    transaction.delete(LimitedEntity, entity_id=entity_id, version=ANY)
    if found.parent_id is None:
        transaction.delete(Family, entity_id=entity_id, where=lambda family: family.children == 0)
    try:
        yield from transaction.commit()
    except TransactionFailed as failed:
        error: SolotableError = failed.failures[0].error
        stored = getattr(error, "found", None)
        if isinstance(stored, Family):
            raise _has_children(entity_id, stored.children) from failed
        raise error from failed
    return found


def children(
    scope: Scope, entity_id: str, *, limit: int = 50, cursor: str | None = None
) -> Flow[Page[LimitedEntity]]:
    """Return a page of an entity's children, by name."""
    rows = LimitedEntity.of_parent(entity_name(entity_id))
    return (yield from page(scope, rows, limit=limit, cursor=cursor))


def entities(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[LimitedEntity]]:
    """Return a page of a namespace's entities: each parent, then its children."""
    return page(scope, LimitedEntity.of_namespace(), limit=limit, cursor=cursor)


def set_limits(
    scope: Scope,
    limits: Iterable[Limit] | None,
    *,
    entity: str | None = None,
    resource: str | None = None,
    on_unavailable: OnUnavailable | None = None,
) -> Flow[StoredLimits]:
    """Replace the limits of a level, and return it as stored.

    A level is entity and resource, entity alone (all its resources), resource alone (all entities), or
    neither: the system. Only the system has on_unavailable, which it may have without limits.
    """
    owner, name = _level(entity, resource)
    is_system = (owner, name) == (DEFAULT, DEFAULT)
    check_on_unavailable(on_unavailable)
    if on_unavailable is not None and not is_system:
        raise DataError("Only the system has on_unavailable; leave entity and resource out.")
    if limits is None and (not is_system or on_unavailable is None):
        raise DataError("At least one limit is needed; delete the limits to have none.")
    rules = None if limits is None else render(limits_of(limits))
    return (yield from _replace(scope, owner, name, rules=rules, on_unavailable=on_unavailable, state="set"))


def get_limits(
    scope: Scope, *, entity: str | None = None, resource: str | None = None
) -> Flow[StoredLimits | None]:
    """Return what is stored at one level, or None; nothing is inherited."""
    owner, name = _level(entity, resource)
    found = yield from get(scope, StoredLimits, owner=owner, resource=name, consistent=True)
    return None if found is None or found.state is None else found


def delete_limits(
    scope: Scope, *, entity: str | None = None, resource: str | None = None
) -> Flow[StoredLimits | None]:
    """Delete the limits of a level, so that the next one applies; return them, None if there were none."""
    return (yield from _empty(scope, *_level(entity, resource)))


def limited_resources(scope: Scope, *, entity: str | None = None) -> Flow[list[StoredLimits]]:
    """Return the levels of an entity, or of all entities, by resource; `_default_` is all resources."""
    owner, _ = _level(entity, None)
    found = yield from query(scope, StoredLimits.of_owner(owner).consistent())
    return [each for each in found if each.state is not None]


def stored_limits(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[StoredLimits]]:
    """Return a page of every level that is set in a namespace."""
    return page(scope, StoredLimits.of_namespace(), limit=limit, cursor=cursor)


def _level(entity: str | None, resource: str | None) -> tuple[str, str]:
    """Return the owner and the resource that a level is stored under; check their names."""
    owner = DEFAULT if entity is None else entity_name(entity)
    return owner, DEFAULT if resource is None or resource == DEFAULT else resource_name(resource)


def _replace(scope: Scope, owner: str, resource: str, **content: Any) -> Flow[StoredLimits]:
    def attempt() -> Flow[StoredLimits]:
        # With the levels that this one precedes: the revision is the highest of all that can apply.
        pairs = dict.fromkeys((each, name) for each in (owner, DEFAULT) for name in (resource, DEFAULT))
        keys = [{"owner": each, "resource": name} for each, name in pairs]
        levels = yield from get_many(scope, StoredLimits, keys, consistent=True)
        before = levels[0]
        if resource == DEFAULT != owner:
            # An entity's own limits precede those of every resource.
            levels += yield from query(scope, StoredLimits.of_owner(DEFAULT).consistent())
        # A clock that stops, goes back, or is behind another operator's must not make a change look old.
        now = int(scope.clock() * MICROSECONDS)
        entity = StoredLimits(
            owner=owner,
            resource=resource,
            revision=max([now, *(each.revision + 1 for each in levels if each is not None)]),
            version=0 if before is None else before.version,
            **content,
        )
        return (yield from put(scope, entity))

    return (yield from retry_conflicts(scope, attempt))


def _empty(scope: Scope, owner: str, resource: str) -> Flow[StoredLimits | None]:
    before = yield from get(scope, StoredLimits, owner=owner, resource=resource, consistent=True)
    if before is None or before.state is None:
        return None
    yield from _replace(scope, owner, resource, rules=None, on_unavailable=None, state=None)
    return before


def _parent_error(parent: str, found: LimitedEntity | None) -> SolotableError:
    if found is None:
        return NotFound(f"The parent {parent!r} does not exist; create it first.")
    if found.parent_id is None:
        # It was created or deleted between the write and the read.
        return conflict(f"Entity {parent!r} has just changed; try again.")
    return DataError(
        f"Entity {parent!r} belongs to {found.parent_id!r}, so it cannot be a parent: there are two levels."
    )


def _has_children(entity_id: str, count: int) -> ConditionFailed:
    children_ = "a child" if count == 1 else f"{count} children"
    return conflict(f"Entity {entity_id!r} has {children_}; delete those first.")


def conflict(message: str) -> ConditionFailed:
    """Return a ConditionFailed with the limiter's own text."""
    error = ConditionFailed(message)
    error.args = (message,)
    return error
