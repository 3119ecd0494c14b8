"""Administration as flows: entities and the limits stored for them. Nothing here is on the way of an acquire.

Every write leaves an event in its own transaction, with who did it; conditions decide, never a reading
alone. Deleting an entity is refused while it has children; its limits go with it, its buckets expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from solotable._entities.declare.entity import Entity
from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions import commit
from solotable._flows.transactions.write import ANY, Write
from solotable._flows.verbs import get, put, query
from solotable._store.arguments import condition_of
from solotable._store.page import Page
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    NotFound,
    ServiceError,
    SolotableError,
    TransactionFailed,
    VersionConflict,
)

from .entities import Family, LimitedEntity, OnUnavailable, StoredLimits
from .limits import MICROSECONDS, Limit, limits_of, render
from .names import DEFAULT, entity_name, resource_name

EntityT = TypeVar("EntityT", bound=Entity)
_ATTEMPTS = 12
#: What somebody else has changed meanwhile: reading it again helps.
_LOST = (VersionConflict, AlreadyExists)


def create_entity(
    scope: Scope,
    entity_id: str,
    *,
    name: str | None = None,
    parent: str | None = None,
    cascade: bool = False,
    metadata: dict[str, Any] | None = None,
) -> Flow[LimitedEntity]:
    """Make an entity, or raise AlreadyExists; a parent must be there and have no parent itself."""
    entity_name(entity_id)
    if parent is not None and entity_name(parent) == entity_id:
        raise DataError(f"Entity {entity_id!r} cannot be its own parent.")
    if cascade and parent is None:
        raise DataError(f"Entity {entity_id!r} has no parent to charge; give parent= with cascade=True.")
    made = judged(
        lambda: LimitedEntity.made(entity_id, name=name, parent=parent, cascade=cascade, metadata=metadata)
    )
    planners = [_creating(scope, made)]
    if parent is None:
        planners.append(_creating(scope, Family(entity_id=entity_id)))
    try:
        writes = yield from commit.transact(scope, planners)
    except TransactionFailed as refused:
        error = cause(refused)
        if isinstance(error, AlreadyExists):
            raise AlreadyExists(f"Entity {entity_id!r} is there already.", found=error.found) from refused
        if parent is None or not isinstance(error, NotFound):
            raise error from refused
        there = yield from get_entity(scope, parent)
        raise _unfit_parent(parent, there) from refused
    found: LimitedEntity = writes[0].after  # type: ignore[assignment]  # the planners' order
    return found


def get_entity(scope: Scope, entity_id: str) -> Flow[LimitedEntity | None]:
    """Return an entity, or None."""
    return (yield from get.get(scope, LimitedEntity, {"entity_id": entity_name(entity_id)}, consistent=True))


def delete_entity(scope: Scope, entity_id: str) -> Flow[LimitedEntity]:
    """Remove an entity and its limits, and return it as it was; refused while it has children.

    Its limits go first: broken off and repeated, it goes on where it was.
    """
    given = {"entity_id": entity_name(entity_id)}
    found = yield from get.require(scope, LimitedEntity, given, consistent=True)
    if found.parent_id is None:
        family = yield from get.get(scope, Family, given, consistent=True)
        if family is not None and family.children:
            raise _has_children(entity_id, family.children)
    stored = yield from every(scope, StoredLimits.of_owner(entity_id).consistent())
    for each in stored:
        if each.state is not None:
            yield from _emptied(scope, each.owner, each.resource)
    planners: list[commit.Planner] = [
        partial(put.plan_delete, scope, LimitedEntity.plan(), given, version=ANY)
    ]
    if found.parent_id is None:
        none = condition_of(Family, lambda family: family.children == 0)
        planners.append(partial(put.plan_delete, scope, Family.plan(), given, where=none))
    try:
        yield from commit.transact(scope, planners)
    except TransactionFailed as refused:
        error = cause(refused)
        met = getattr(error, "found", None)
        if isinstance(met, Family):
            raise _has_children(entity_id, met.children) from refused
        raise error from refused
    return found


def children(
    scope: Scope, entity_id: str, *, limit: int = 50, cursor: str | None = None
) -> Flow[Page[LimitedEntity]]:
    """Return a page of an entity's children, by their names."""
    asked = LimitedEntity.of_parent(entity_name(entity_id))
    return Page.of((yield from query.page(scope, asked, limit=limit, cursor=cursor)))


def entities(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[LimitedEntity]]:
    """Return a page of a namespace's entities: each parent, then its children."""
    asked = LimitedEntity.of_namespace()
    return Page.of((yield from query.page(scope, asked, limit=limit, cursor=cursor)))


def set_limits(
    scope: Scope,
    limits: Iterable[Limit] | None,
    *,
    entity: str | None = None,
    resource: str | None = None,
    on_unavailable: OnUnavailable | None = None,
) -> Flow[StoredLimits]:
    """Store the limits of a level in place of those that it had, and return it as stored.

    Entity and resource, entity alone (all its resources), resource alone (all entities), or neither: the
    system, which alone has on_unavailable, and may have that without limits.
    """
    owner, on = level(entity, resource)
    is_system = (owner, on) == (DEFAULT, DEFAULT)
    if on_unavailable not in (None, "block", "allow"):
        raise DataError(f'on_unavailable is "block" or "allow"; {on_unavailable!r} was given.')
    if on_unavailable is not None and not is_system:
        raise DataError("on_unavailable is set for the system alone; leave entity and resource out.")
    if limits is None and (not is_system or on_unavailable is None):
        raise DataError("At least one limit is needed; delete the limits to have none.")
    rules = None if limits is None else render(limits_of(limits))
    return (yield from _replaced(scope, owner, on, rules=rules, on_unavailable=on_unavailable, state="set"))


def get_limits(
    scope: Scope, *, entity: str | None = None, resource: str | None = None
) -> Flow[StoredLimits | None]:
    """Return what is stored at one level, or None; nothing is inherited here."""
    owner, on = level(entity, resource)
    found = yield from _stored(scope, owner, on)
    return None if found is None or found.state is None else found


def delete_limits(
    scope: Scope, *, entity: str | None = None, resource: str | None = None
) -> Flow[StoredLimits | None]:
    """Remove the limits of a level, so that the next one counts; return them, None if there were none."""
    owner, on = level(entity, resource)
    return (yield from _emptied(scope, owner, on))


def limited_resources(scope: Scope, *, entity: str | None = None) -> Flow[list[StoredLimits]]:
    """Return the levels that are set for an entity, or for all, by resource; `_default_` is all of them."""
    owner, _ = level(entity, None)
    found = yield from every(scope, StoredLimits.of_owner(owner).consistent())
    return [each for each in found if each.state is not None]


def stored_limits(scope: Scope, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[StoredLimits]]:
    """Return a page of every level that is set in a namespace."""
    asked = StoredLimits.of_namespace()
    return Page.of((yield from query.page(scope, asked, limit=limit, cursor=cursor)))


def level(entity: str | None, resource: str | None) -> tuple[str, str]:
    """Return the owner and the resource that a level is stored under, or refuse their names."""
    owner = DEFAULT if entity is None else entity_name(entity)
    on = DEFAULT if resource is None or resource == DEFAULT else resource_name(resource)
    return owner, on


def judged(make: Callable[[], EntityT]) -> EntityT:
    """Return an entity that is made of what callers gave, or say in one sentence what does not fit."""
    try:
        return make()
    except ValidationError as refused:
        first = refused.errors()[0]
        where = ".".join(map(str, first["loc"]))
        told = first["msg"].removeprefix("Value error, ")
        raise DataError(f"{where} does not fit: {told}.") from refused


def cause(refused: TransactionFailed) -> SolotableError:
    """Return why a transaction failed: what the first of its writes met."""
    error: SolotableError = refused.failures[0].error
    return error


def changed(scope: Scope, planner: commit.Planner) -> Flow[Any]:
    """Do a write that is planned from a reading, again from a new one where somebody else was first."""
    attempt = 0
    while True:
        try:
            return (yield from commit.perform(scope, planner))
        except _LOST:
            attempt += 1
            if attempt == _ATTEMPTS:
                raise
        yield scope.retries.wait(attempt)


def every(scope: Scope, asked: Query[EntityT]) -> Flow[list[EntityT]]:
    """Return all rows of a query, for what is small or a job's."""
    prepared = query.prepare(scope, asked)
    found: list[EntityT] = []
    start = None
    while True:
        some = yield from query.rows(scope, prepared, start, None)
        found += some.rows
        start = some.last_key
        if start is None:
            return found


def _creating(scope: Scope, entity: Entity) -> commit.Planner:
    intent = put.intend(scope, entity)
    return lambda: put.plan_put(scope, intent, create=True)


def _stored(scope: Scope, owner: str, resource: str) -> Flow[StoredLimits | None]:
    return (yield from get.get(scope, StoredLimits, {"owner": owner, "resource": resource}, consistent=True))


def _replaced(scope: Scope, owner: str, resource: str, **content: Any) -> Flow[StoredLimits]:
    def planner() -> Flow[Write]:
        # With those that it goes before: what counts for somebody is as new as the newest of them.
        places = dict.fromkeys((each, on) for each in (owner, DEFAULT) for on in (resource, DEFAULT))
        keys = [{"owner": each, "resource": on} for each, on in places]
        levels = yield from get.get_many(scope, StoredLimits, keys, consistent=True)
        before = levels[0]
        if resource == DEFAULT != owner:
            # An entity's own limits go before those of every resource.
            levels += yield from every(scope, StoredLimits.of_owner(DEFAULT).consistent())
        entity = StoredLimits(
            owner=owner,
            resource=resource,
            revision=_next_revision(scope, levels),
            version=0 if before is None else before.version,
            **content,
        )
        return (yield from put.plan_put(scope, put.intend(scope, entity)))

    found: StoredLimits = yield from changed(scope, planner)
    return found


def _emptied(scope: Scope, owner: str, resource: str) -> Flow[StoredLimits | None]:
    before = yield from _stored(scope, owner, resource)
    if before is None or before.state is None:
        return None
    yield from _replaced(scope, owner, resource, rules=None, on_unavailable=None, state=None)
    return before


def _next_revision(scope: Scope, levels: Iterable[StoredLimits | None]) -> int:
    # A clock that stands, goes back, or is behind another operator's must not make a change look old.
    now = int(scope.clock() * MICROSECONDS)
    return max([now, *(each.revision + 1 for each in levels if each is not None)])


def _unfit_parent(parent: str, there: LimitedEntity | None) -> ServiceError | SolotableError:
    if there is None:
        return NotFound(f"There is no entity {parent!r} to be the parent; create it first.")
    if there.parent_id is None:
        # It was made or removed between the two looks.
        return conflict(f"Entity {parent!r} has just changed; try again.")
    return DataError(
        f"Entity {parent!r} belongs to {there.parent_id!r}, so it cannot be a parent: there are two levels."
    )


def _has_children(entity_id: str, count: int) -> ConditionFailed:
    children_ = "a child" if count == 1 else f"{count} children"
    return conflict(f"Entity {entity_id!r} has {children_}; delete what belongs to it first.")


def conflict(message: str) -> ConditionFailed:
    """Return a refusal by what is stored, in the limiter's own words."""
    refused = ConditionFailed(message)
    refused.args = (message,)
    return refused
