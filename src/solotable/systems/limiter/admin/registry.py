"""Registry of entities and stored limits: create, change, list, delete. Flows; no acquire uses it.

Every write records an event in its own transaction, with the actor. Conditions decide, never a read alone.
An entity with children cannot be deleted. Its limits are deleted with it; its buckets expire.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from solotable import ANY, Page, new_id
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
    ItemUpdate,
    Scope,
    Transaction,
    create,
    get,
    get_many,
    key_of,
    page,
    put,
    query,
    require,
    retry_conflicts,
    send,
)
from solotable.flow.conditions import all_of, equals
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.errors import TopUpInProgress
from solotable.systems.limiter.table import limiter

from .entities import (
    ENTITY_MODES,
    EVERY_LIMIT,
    Family,
    LimitedEntity,
    Mode,
    OnUnavailable,
    StoredLimits,
    TopUp,
    check_mode,
    check_on_unavailable,
)
from .limits import MICROSECONDS, Limit, in_tokens, limits_of
from .names import DEFAULT, entity_name, limit_name, resource_name
from .schedule import Schedule, render_rules

#: How long a repeated top-up is recognised.
_TOP_UP_RETENTION = timedelta(days=7)
#: A call that has not added its tokens after this time has died.
_CLAIM_MICROSECONDS = 60 * MICROSECONDS


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

    Its limits are deleted first, so that an interrupted call can be repeated. An entity that is created with
    its name later starts with full buckets, and without its debts.
    """
    found = yield from require(scope, LimitedEntity, entity_id=entity_name(entity_id), consistent=True)
    if found.parent_id is None:
        family = yield from get(scope, Family, entity_id=entity_id, consistent=True)
        if family is not None and family.children:
            raise _has_children(entity_id, family.children)
    resources = [each.resource for each in (yield from limited_resources(scope, entity=entity_id))]
    for each in dict.fromkeys((*resources, DEFAULT)):
        yield from _forget(scope, entity_id, each)
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


def set_parent(
    scope: Scope, entity_id: str, parent: str | None, *, cascade: bool | None = None
) -> Flow[LimitedEntity]:
    """Give an entity another parent, or none; `cascade` None keeps what it is, and is False without a parent.

    The parent must exist and have no parent itself; the entity must have no children.
    """
    entity_name(entity_id)
    if parent is not None and entity_name(parent) == entity_id:
        raise DataError(f"Entity {entity_id!r} cannot be its own parent.")
    if cascade and parent is None:
        raise DataError(f"Entity {entity_id!r} has no parent to charge; give parent= with cascade=True.")

    def attempt() -> Flow[LimitedEntity]:
        found = yield from require(scope, LimitedEntity, entity_id=entity_id, consistent=True)
        transaction = Transaction(scope)
        changed = transaction.put(
            found.model_copy(
                update={
                    "parent_id": parent,
                    "cascade": parent is not None and (found.cascade if cascade is None else cascade),
                    "family": entity_id if parent is None else parent,
                    "level": 1 if parent is None else 2,
                }
            )
        )
        if found.parent_id is None and parent is not None:
            transaction.delete(Family, entity_id=entity_id, where=lambda family: family.children == 0)
        elif found.parent_id is not None and parent is None:
            transaction.create(Family(entity_id=entity_id))
        try:
            yield from transaction.commit()
        except TransactionFailed as failed:
            error: SolotableError = failed.failures[0].error
            stored = getattr(error, "found", None)
            if isinstance(stored, Family) and stored.entity_id == entity_id:
                raise _has_children(entity_id, stored.children) from failed
            if parent is not None and isinstance(error, NotFound):
                raise _parent_error(parent, (yield from get_entity(scope, parent))) from failed
            raise error from failed
        return changed

    return (yield from retry_conflicts(scope, attempt))


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
    limits: Iterable[Limit] | Schedule | None,
    *,
    entity: str | None = None,
    resource: str | None = None,
    on_unavailable: OnUnavailable | None = None,
    mode: Mode | None = None,
) -> Flow[StoredLimits]:
    """Replace the limits of a level, or its schedule, and return it as stored.

    A level is entity and resource, entity alone (all its resources), resource alone (all entities), or
    neither: the system. Only the system has on_unavailable, which it may have without limits. `mode` says
    how the limits apply; None keeps the stored one. "disabled", "bypass" and "deny" need no limits.
    """
    owner, name = _level(entity, resource)
    is_system = (owner, name) == (DEFAULT, DEFAULT)
    check_on_unavailable(on_unavailable)
    check_mode(mode, entity=entity)
    if on_unavailable is not None and not is_system:
        raise DataError("Only the system has on_unavailable; leave entity and resource out.")
    needs_none = on_unavailable is not None or mode in ("disabled", *ENTITY_MODES)
    if limits is None and not needs_none:
        raise DataError("At least one limit is needed; delete the limits to have none.")
    rules = None
    if limits is not None:
        rules = render_rules(limits if isinstance(limits, Schedule) else limits_of(limits))

    def change(before: StoredLimits | None, _revision: int) -> dict[str, Any]:
        kept = None if before is None else before.mode
        return {"rules": rules, "on_unavailable": on_unavailable, "mode": kept if mode is None else mode}

    return (yield from _replace(scope, owner, name, change))


def set_mode(
    scope: Scope, entity: str | None, mode: Mode | None, *, resource: str | None = None
) -> Flow[StoredLimits]:
    """Set how the limits of a level apply, and keep the limits; None is "enforce".

    "bypass" admits an entity without limits, "deny" refuses it: on all resources, or on one. The other modes
    are of the level's own limits; without an entity, those of a resource or of the system.
    """
    owner, name = _level(entity, resource)
    check_mode(mode, entity=entity)

    def change(before: StoredLimits | None, _revision: int) -> dict[str, Any]:
        rules = None if before is None else before.rules
        if mode == "shadow" and rules is None:
            raise DataError("A level without limits has nothing to try out; set its limits with the mode.")
        return {"mode": mode}

    return (yield from _replace(scope, owner, name, change))


def reset(
    scope: Scope, entity: str, *, resource: str | None = None, limits: Iterable[str] | None = None
) -> Flow[StoredLimits]:
    """Make limits of an entity full again, whatever was taken: on all resources, or on one.

    Buckets are converted at their next use, as after a change of limits; so are those in other processes,
    when they read the limits again.
    """
    owner, name = _level(entity, resource)
    names = [EVERY_LIMIT] if limits is None else [limit_name(each) for each in limits]
    if not names:
        raise DataError("Name at least one limit to reset, or give limits=None for all.")

    def change(before: StoredLimits | None, revision: int) -> dict[str, Any]:
        earlier = {} if before is None or limits is None else before.resets or {}
        return {"resets": {**earlier, **dict.fromkeys(names, revision)}}

    return (yield from _replace(scope, owner, name, change, resets=True))


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


def record_top_up(
    scope: Scope, entity: str, resource: str, amounts: Mapping[str, int], *, key: str | None = None
) -> Flow[tuple[TopUp, bool]]:
    """Record a top-up, and return it and whether the caller has to add its tokens.

    Raise DataError if the key is another's, and TopUpInProgress if another call adds the tokens now.
    """
    now = int(scope.clock() * MICROSECONDS)
    record = TopUp(
        top_up_id=new_id() if key is None else f"key-{hashlib.sha256(key.encode()).hexdigest()[:40]}",
        entity=entity_name(entity),
        resource=resource_name(resource),
        tokens={name: in_tokens(amount) for name, amount in amounts.items()},
        claimed=now,
        expires=(scope.now() + _TOP_UP_RETENTION).replace(microsecond=0),
    )
    try:
        return (yield from create(scope, record)), True
    except AlreadyExists as error:
        found: TopUp = error.found
        if (found.entity, found.resource, found.tokens) != (entity, resource, record.tokens):
            raise DataError("The key was used for another top-up; use a new key for each.") from error
    if not found.applied:
        yield from _claim(scope, found, now)
    return found, not found.applied


def _claim(scope: Scope, found: TopUp, now: int) -> Flow[None]:
    """Take over a top-up whose caller died, or raise TopUpInProgress."""
    if abs(now - found.claimed) < _CLAIM_MICROSECONDS:
        raise TopUpInProgress
    request = UpdateItem(
        table=scope.table(limiter),
        key=key_of(scope, TopUp, top_up_id=found.top_up_id),
        update=ItemUpdate().set("claimed", now).build(),
        condition=all_of(equals("claimed", found.claimed), equals("applied", 0)),
    )
    try:
        yield from send(scope, request)
    except ConditionFailed as error:
        raise TopUpInProgress from error


def mark_applied(scope: Scope, record: TopUp) -> Flow[None]:
    """Note that the buckets have the tokens; without an event, as the audit trail has the top-up."""
    update = ItemUpdate().set("applied", 1).build()
    key = key_of(scope, TopUp, top_up_id=record.top_up_id)
    yield from send(scope, UpdateItem(table=scope.table(limiter), key=key, update=update))


def _level(entity: str | None, resource: str | None) -> tuple[str, str]:
    """Return the owner and the resource that a level is stored under; check their names."""
    owner = DEFAULT if entity is None else entity_name(entity)
    return owner, DEFAULT if resource is None or resource == DEFAULT else resource_name(resource)


def _replace(
    scope: Scope,
    owner: str,
    resource: str,
    change: Callable[[StoredLimits | None, int], dict[str, Any]],
    *,
    resets: bool = False,
) -> Flow[StoredLimits]:
    """Store what `change` returns for the stored level and the new revision; the rest stays.

    `resets`: the revision is higher than every reset of the owner.
    """

    def attempt() -> Flow[StoredLimits]:
        # With the levels that this one precedes: the revision is the highest of all that can apply.
        pairs = dict.fromkeys((each, name) for each in (owner, DEFAULT) for name in (resource, DEFAULT))
        keys = [{"owner": each, "resource": name} for each, name in pairs]
        levels = yield from get_many(scope, StoredLimits, keys, consistent=True)
        before = levels[0]
        if resource == DEFAULT != owner:
            # An entity's own limits precede those of every resource.
            levels += yield from query(scope, StoredLimits.of_owner(DEFAULT).consistent())
            if resets:
                levels += yield from query(scope, StoredLimits.of_owner(owner).consistent())
        # A clock that stops, goes back, or is behind another operator's must not make a change look old.
        now = int(scope.clock() * MICROSECONDS)
        revision = max([now, *(each.revision + 1 for each in levels if each is not None)])
        return (yield from put(scope, _changed(scope, owner, resource, before, revision, change)))

    return (yield from retry_conflicts(scope, attempt))


def _changed(
    scope: Scope,
    owner: str,
    resource: str,
    before: StoredLimits | None,
    revision: int,
    change: Callable[[StoredLimits | None, int], dict[str, Any]],
) -> StoredLimits:
    stored = before or StoredLimits(owner=owner, resource=resource, revision=0, state=None)
    content: dict[str, Any] = {
        "rules": stored.rules,
        "on_unavailable": stored.on_unavailable,
        "mode": stored.mode,
    }
    content |= {"resets": stored.resets} | change(before, revision)
    mode = None if content["mode"] == "enforce" else content["mode"]
    since = stored.mode_since if mode == stored.mode else scope.now()
    is_set = any(each is not None for each in (content["rules"], content["on_unavailable"], mode))
    return StoredLimits(
        owner=owner,
        resource=resource,
        revision=revision,
        version=stored.version,
        **{**content, "mode": mode},
        mode_since=None if mode is None else since,
        state="set" if is_set else None,
    )


def _empty(scope: Scope, owner: str, resource: str) -> Flow[StoredLimits | None]:
    before = yield from get(scope, StoredLimits, owner=owner, resource=resource, consistent=True)
    if before is None or before.state is None:
        return None
    if before.rules is None and before.mode in ENTITY_MODES:
        return None

    def change(found: StoredLimits | None, _revision: int) -> dict[str, Any]:
        # Limits are deleted, a denial is not: an entity has it whatever its limits are.
        mode = found.mode if found is not None and found.mode in ENTITY_MODES else None
        return {"rules": None, "on_unavailable": None, "mode": mode}

    yield from _replace(scope, owner, resource, change)
    return before


def _forget(scope: Scope, owner: str, resource: str) -> Flow[None]:
    """Empty a level of a deleted entity, and let its buckets start full: another may get its name."""

    def change(_before: StoredLimits | None, revision: int) -> dict[str, Any]:
        return {"rules": None, "on_unavailable": None, "mode": None, "resets": {EVERY_LIMIT: revision}}

    yield from _replace(scope, owner, resource, change, resets=True)


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
