"""Writing one entity: what is sent, under which conditions, and what a refusal means.

Each verb becomes a `Write`, which is sent alone or as a part of a transaction. Nothing is changed
in the caller's objects: the entity as stored is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from solotable.entities.entity import Entity
from solotable.entities.plan import Plan
from solotable.errors import AlreadyExists, ConditionFailed, DeclarationError, SolotableError, VersionConflict
from solotable.expressions.ast import And, Attr, Compare, Condition, Const
from solotable.expressions.describe import describe
from solotable.protocol.requests import ConditionCheck, DeleteItem, PutItem, WriteAction
from solotable.values import Item

from .ask import Flow, ask
from .read import not_found
from .scope import Scope, decoded


class _Any:
    """Says that a write goes over whatever version is there."""

    def __repr__(self) -> str:
        return "ANY"


#: `version=ANY`: write whatever version is stored.
ANY: Final = _Any()
ExpectedVersion = int | _Any | None
Verb = Literal["put", "create", "update", "delete", "check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of one entity, ready to be sent."""

    plan: Plan
    verb: Verb
    given: Mapping[str, Any]
    action: WriteAction
    #: What the caller had, and the entity as it will be stored when that is known before sending.
    mine: Entity | None = None
    after: Entity | None = None
    #: What was expected, for the message of a refusal.
    creates: bool = False
    needs_item: bool = False
    expected_version: int | None = None
    where: Condition | None = None
    #: Parts of the item that were read to derive keys, and must be as they were.
    derived_from: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The write as messages name it: `put Section survey_id='s1', section_id='roof'`."""
        parts = (part for part in self.plan.primary.parts if part != self.plan.tenant)
        shown = ", ".join(f"{name}={self.given.get(name)!r}" for name in parts)
        return f"{self.verb} {self.plan.name} {shown}".rstrip()

    @property
    def key(self) -> Item:
        """The primary key of the item that is written."""
        holder = self.action.item if isinstance(self.action, PutItem) else self.action.key
        return {name: holder[name] for name in self.plan.primary.names}


def put(
    scope: Scope, entity: Entity, *, create: bool = False, where: Condition | None = None, over: bool = False
) -> Write:
    """Return the write that makes or replaces an entity; `over` disregards the stored version."""
    plan = entity.plan()
    values = dict(scope.bind(plan, entity.__dict__))
    expected: int | None = None
    conditions: list[Condition] = []
    if plan.version is not None:
        expected = values[plan.version]
        values[plan.version] = expected + 1
        if not over and not create and expected > 0:
            conditions.append(version_is(plan, expected))
    creates = create or (plan.version is not None and expected == 0 and not over)
    if creates:
        conditions.append(scope.absent(plan))
    if where is not None:
        conditions.append(where)
    _stamp(scope, plan, values)
    item = plan.dump(values, entity.unknown_attributes)
    condition = all_of(conditions)
    action = PutItem(
        table=scope.table(plan.table),
        item=item,
        condition=condition,
        returns_on_failure=condition is not None,
    )
    changed = {name: value for name, value in values.items() if entity.__dict__.get(name) is not value}
    return Write(
        plan=plan,
        verb="create" if create else "put",
        given=values,
        action=action,
        mine=entity,
        after=entity.model_copy(update=changed),
        creates=creates,
        expected_version=None if creates or over else expected,
        where=where,
    )


def delete(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
) -> Write:
    """Return the write that removes an entity; removing what is not there is no error without a condition."""
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "delete")
    conditions = [] if expected is None else [version_is(plan, expected)]
    if where is not None:
        conditions.append(where)
    condition = all_of(conditions)
    action = DeleteItem(
        table=scope.table(plan.table),
        key=plan.key_from(arguments),
        condition=condition,
        returns="ALL_OLD",
        returns_on_failure=condition is not None,
    )
    return Write(
        plan=plan,
        verb="delete",
        given=arguments,
        action=action,
        mine=mine,
        expected_version=expected,
        where=where,
    )


def check(
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    *,
    where: Condition | None,
    version: ExpectedVersion = None,
) -> Write:
    """Return the part of a transaction that only checks: that the entity is there, and the condition."""
    arguments = scope.bind(plan, given)
    conditions: list[Condition] = [scope.present(plan)]
    expected = version if isinstance(version, int) else None
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    condition = all_of(conditions)
    assert condition is not None
    return Write(
        plan=plan,
        verb="check",
        given=arguments,
        action=ConditionCheck(
            table=scope.table(plan.table),
            key=plan.key_from(arguments),
            condition=condition,
            returns_on_failure=True,
        ),
        needs_item=True,
        expected_version=expected,
        where=where,
    )


def send(scope: Scope, write: Write) -> Flow[Any]:
    """Send one write and return the entity: as stored, or for a delete as it was (None: nothing was)."""
    assert not isinstance(write.action, ConditionCheck)
    try:
        reply = yield from ask(write.action, scope.retries)
    except ConditionFailed as refused:
        raise refusal(scope, write, refused.item) from refused
    if write.after is not None:
        return write.after
    if not reply.attributes:
        return None
    return scope.admit(write.plan, decoded(reply.attributes))


def refusal(scope: Scope, write: Write, item: Item | None) -> SolotableError:
    """Return what a failed condition means, by the item that it met."""
    plan = write.plan
    found = None if item is None else _found(scope, plan, item)
    if write.creates and found is not None:
        if write.verb == "create" or plan.version is None:
            return AlreadyExists(f"{_capital(write.title)}: there is one already.", item=item, found=found)
        return _conflict(write, item, found, 0)
    if write.expected_version is not None and _version_of(plan, found) != write.expected_version:
        return _conflict(write, item, found, write.expected_version)
    if found is None and write.needs_item:
        return not_found(plan, write.given)
    condition = "its condition" if write.where is None else describe(write.where)
    stands = "there is no such item" if found is None else "it does not hold for the stored item"
    refused = ConditionFailed(f"{_capital(write.title)}: {condition} was required, but {stands}.", item=item)
    refused.found = found
    return refused


def expected_version(plan: Plan, version: ExpectedVersion, verb: str) -> int | None:
    """Return the version that a write by key expects, or refuse to guess it."""
    if plan.version is None:
        if version is not None:
            raise DeclarationError(
                f"{plan.name} has no version; {verb} takes version= only where one is declared."
            )
        return None
    if version is None:
        raise DeclarationError(
            f"{plan.name} is versioned: {verb} it with version= as you read it, hand in the entity itself, "
            f"or say version=ANY to write over whatever is there."
        )
    return version if isinstance(version, int) else None


def version_is(plan: Plan, expected: int) -> Condition:
    """Return the condition that the stored version is this one."""
    assert plan.version is not None
    attribute = plan.attributes[plan.version]
    return Compare("=", Attr((attribute.wire,)), Const({"N": str(expected)}))


def all_of(conditions: list[Condition]) -> Condition | None:
    """Return one condition for several, or None for none."""
    if len(conditions) > 1:
        return And(tuple(conditions))
    return conditions[0] if conditions else None


def _stamp(scope: Scope, plan: Plan, values: dict[str, Any]) -> None:
    if plan.created is not None and values[plan.created] is None:
        values[plan.created] = scope.now()
    if plan.updated is not None:
        values[plan.updated] = scope.now()


def _found(scope: Scope, plan: Plan, item: Item) -> Any:
    found = plan.load(item) if item.get(plan.table.tag) == plan.tag_value else None
    if found is not None:
        scope.judge(plan, found)
        if plan.ttl is not None and scope.has_passed(plan, item):
            return None
    return found


def _version_of(plan: Plan, found: Any) -> int | None:
    return None if found is None or plan.version is None else getattr(found, plan.version)


def _conflict(write: Write, item: Item | None, found: Any, expected: int) -> VersionConflict:
    there = _version_of(write.plan, found)
    stands = "it is gone" if there is None else f"found {there}"
    wanted = "a new item" if expected == 0 else f"version {expected}"
    return VersionConflict(
        f"{_capital(write.title)}: expected {wanted}, {stands}; read it again and repeat the change.",
        item=item,
        mine=write.mine,
        theirs=found,
    )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
