"""Build and store sample entities, in transactions that replace nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import is_from_scope
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.commit import transact
from solotable._flows.writes import hooked
from solotable._flows.writes.put import PreparedPut, plan_put, prepare_put
from solotable._store.asynchronous.stores import AsyncVerbs
from solotable._store.sync.stores import Verbs
from solotable._values import item_size
from solotable.errors import DataError
from solotable.flow import arun, run, scope_of

from .factory import Factory

E = TypeVar("E", bound=Entity)
Report = Callable[[int, int], object]
#: Entities in one transaction: few enough that a conflict repeats little.
_MOST_TOGETHER: Final = 50
#: DynamoDB: a transaction has at most 4 MB; this leaves room for the request.
_LARGEST_TOGETHER: Final = 3_000_000


def seed(
    db: Verbs,
    entity: type[E],
    /,
    *,
    count: int = 10,
    seed: int = 0,
    parents: Entity | Iterable[Entity] = (),
    progress: Report | None = None,
    **fields: Any,
) -> list[E]:
    """Create `count` valid entities and return them as stored; see `Factory` for the other arguments.

    The hooks of `create` run. Nothing is replaced: the same seed again raises AlreadyExists. `progress` gets
    the number of stored entities and the total.
    """
    entities = _build(scope_of(db), entity, count, seed, parents, fields)
    return run(_store(scope_of(db), entities, progress), db)


async def seed_async(
    db: AsyncVerbs,
    entity: type[E],
    /,
    *,
    count: int = 10,
    seed: int = 0,
    parents: Entity | Iterable[Entity] = (),
    progress: Report | None = None,
    **fields: Any,
) -> list[E]:
    """Create entities as `seed` does, with an async store."""
    entities = _build(scope_of(db), entity, count, seed, parents, fields)
    return await arun(_store(scope_of(db), entities, progress), db)


def _build(
    scope: Scope,
    entity: type[E],
    count: int,
    seed: int,
    parents: Entity | Iterable[Entity],
    fields: dict[str, Any],
) -> list[E]:
    if count < 0:
        raise DataError(f"count= must be at least 0, got {count}.")
    tenant = entity.plan().tenant
    given = dict(fields)
    if tenant is not None and scope.tenant is not None:
        given.setdefault(tenant, scope.tenant)
    return Factory(entity, seed=seed, parents=parents, **given).build_many(count)


def _store(scope: Scope, entities: list[E], progress: Report | None) -> Flow[list[E]]:
    stored: list[E] = []
    for group in _groups(entities):
        if len(group) == 1:
            stored.append((yield from hooked.put(scope, group[0], create=True)))
        else:
            prepared: list[PreparedPut] = []
            for each in group:
                changed = yield from hooked.before_put(each.plan(), "create", each)
                prepared.append(prepare_put(scope, changed))
            yield from transact(scope, [partial(plan_put, scope, each, create=True) for each in prepared])
            created: list[E] = [each.after for each in prepared]  # type: ignore[misc]  # the prepared class
            stored += created
            yield from hooked.after_all((each.plan(), "create", each) for each in created)
        if progress is not None:
            progress(len(stored), len(entities))
    return stored


def _groups(entities: list[E]) -> Iterable[list[E]]:
    """Yield the entities of each transaction; one by one if they have derived writes."""
    group: list[E] = []
    size = 0
    for each in entities:
        plan = each.plan()
        unbound = plan.tenant is not None and is_from_scope(getattr(each, plan.tenant))
        weight = 0 if plan.is_derived_from or unbound else item_size(plan.encode(each.__dict__))
        if group and (
            len(group) == _MOST_TOGETHER or plan.is_derived_from or size + weight > _LARGEST_TOGETHER
        ):
            yield group
            group, size = [], 0
        group.append(each)
        size += weight
    if group:
        yield group
