"""A write of an entity: its action, its derived writes, and the error of a failed condition.

Each verb makes a `Write`, which is sent alone or in a transaction. The caller's objects do not change: the
entity as stored is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not
from solotable._expressions.describe import describe
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.verbs.get import not_found
from solotable._protocol.requests import GetItem, PutItem, WriteAction
from solotable._values import AttributeValue, Item
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    SolotableError,
    VersionConflict,
)


class _Any:
    """The type of ANY."""

    def __repr__(self) -> str:
        return "ANY"


#: `version=ANY`: write whatever version is stored.
ANY: Final = _Any()
ExpectedVersion = int | _Any | None
Verb = Literal["put", "create", "update", "delete", "check", "rename", "release", "undelete", "hold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedWrite:
    """An item that is written in the same transaction as its cause."""

    action: WriteAction
    #: The derived write as messages name it.
    title: str
    #: Returns the error of its failed condition, by the item that the condition met.
    explain: Callable[[Item | None], SolotableError]
    #: Whether it only adds to numbers, so that it can join another action on the same item.
    adds: bool = False
    #: Whether what it adds to must still be there when all is done.
    needs: bool = False
    #: The table it lies in, when that is not its cause's.
    table: Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of one entity, ready to be sent."""

    plan: Plan
    verb: Verb
    given: Mapping[str, Any]
    action: WriteAction
    derived_writes: tuple[DerivedWrite, ...] = ()
    #: What the caller had, and the entity as it will be stored when that is known before sending.
    mine: Entity | None = None
    after: Entity | None = None
    #: What was expected, for the message of a refusal.
    creates: bool = False
    needs_item: bool = False
    expected_version: int | None = None
    where: Condition | None = None
    #: Fields that were read first, as they were stored (None: absent); `derived_absent`: no item was.
    derived_from: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    derived_absent: bool = False
    #: Attributes of the store's own that were read first, as they were stored (None: absent).
    carried: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    #: Plans the write again when it met an item of another schema version.
    instead: Callable[[], Flow[Write]] | None = None

    @property
    def title(self) -> str:
        """The write as messages name it: `put Section survey_id='s1', section_id='roof'`."""
        parts = (part for part in self.plan.primary.parts if part != self.plan.tenant)
        shown = ", ".join(f"{name}={self.given.get(name)!r}" for name in parts)
        return f"{self.verb} {self.plan.name} {shown}".rstrip()

    @property
    def key(self) -> Item:
        """The primary key of the item that is written."""
        return key_of(self.plan, self.action)

    def is_outdated(self, item: Item | None) -> bool:
        """Return whether it failed because what was read for it has changed since."""
        if item is None:
            # A soft delete met no item: there is nothing to delete.
            return self.verb == "delete" and self.plan.deletion is not None
        if self.meets_other_schema_version(item):
            return True
        if self.derived_absent:
            # An item of another entity was there when the entity was not found, too.
            return item.get(self.plan.table.tag) == self.plan.tag_value and DELETED_AT not in item
        if any(item.get(name) != value for name, value in self.carried.items()):
            return True
        attributes = self.plan.attributes
        return any(item.get(attributes[name].wire) != value for name, value in self.derived_from.items())

    def meets_other_schema_version(self, item: Item) -> bool:
        """Say whether it was planned for the current schema version and met an older one."""
        plan = self.plan
        if self.instead is None or item.get(plan.table.tag) != plan.tag_value:
            return False
        return plan.schema_versions.differs(item) and not plan.schema_versions.is_newer(item)


def key_of(plan: Plan, action: WriteAction) -> Item:
    """Return the primary key of the item that an action writes."""
    if not isinstance(action, PutItem):
        return action.key
    return {name: action.item[name] for name in plan.primary.names}


@dataclass(frozen=True, slots=True)
class Stored:
    """An entity as it is stored now."""

    item: Item
    entity: Any

    def facts(self, plan: Plan, fields: Iterable[str]) -> dict[str, AttributeValue | None]:
        """Return fields as they are stored; None for those that are absent."""
        return {name: self.item.get(plan.attributes[name].wire) for name in fields}


@dataclass(frozen=True, slots=True)
class Change:
    """What a write does to an entity: from one stored state to another; None: no entity.

    `soft`: a soft delete (`after` is None), or its undo (`before` is None). The item keeps its key all the
    time, and its locks, names and history stay.
    """

    plan: Plan
    before: Stored | None
    after: Stored | None
    soft: bool = False


def stored(scope: Scope, plan: Plan, key: Item) -> Flow[Stored | None]:
    """Return what is stored under a key as it is now, or None."""
    request = GetItem(table=scope.table(plan.table), key=key, consistent=True)
    reply = yield from send(request, scope.retries)
    if reply.item is None:
        return None
    item = decode_item(reply.item)
    entity = scope.admit(plan, item)
    return None if entity is None else Stored(item, entity)


def refusal(scope: Scope, write: Write, item: Item | None) -> SolotableError:
    """Return what a failed condition means, by the item that it met."""
    plan = write.plan
    if (
        item is not None
        and item.get(plan.table.tag) == plan.tag_value
        and plan.schema_versions.is_newer(item)
    ):
        return plan.schema_versions.newer_error(item)
    found = None if item is None else _found(scope, plan, item)
    if item is not None and found is None and write.verb in ("put", "create", "delete"):
        reason = next(filter(None, (trait.occupied(item, write.given) for trait in plan.traits)), None)
        # A caller that had read the entity gets a conflict instead: it is gone.
        if reason is not None and (
            write.expected_version is None or item.get(plan.table.tag) != plan.tag_value
        ):
            return AlreadyExists(f"{capitalize(write.title)}: {reason}.", item=item)
    if write.creates and found is not None:
        if write.verb == "create" or plan.version is None:
            return AlreadyExists(f"{capitalize(write.title)}: there is one already.", item=item, found=found)
        return conflict(write, item, found, 0)
    if write.expected_version is not None and version_of(plan, found) != write.expected_version:
        return conflict(write, item, found, write.expected_version)
    if found is None and write.needs_item:
        return not_found(plan, write.given)
    condition = "its condition" if write.where is None else describe(write.where)
    stands = "the item does not exist" if found is None else "it does not hold for the stored item"
    if item is not None and item.get(plan.table.tag) != plan.tag_value:
        stands = f"{item.get(plan.table.tag, {}).get('S', 'something else')} is stored under the same key"
    message = f"{capitalize(write.title)}: {condition} was required, but {stands}."
    refused = ConditionFailed(message, item=item)
    refused.args = (message,)
    refused.found = found
    return refused


def conflict(write: Write, item: Item | None, found: Any, expected: int) -> VersionConflict:
    """Return the error for a version that is not the one expected."""
    there = version_of(write.plan, found)
    stands = (
        "it is gone" if there is None else f"found version {there}" if expected == 0 else f"found {there}"
    )
    wanted = "a new item" if expected == 0 else f"version {expected}"
    return VersionConflict(
        f"{capitalize(write.title)}: expected {wanted}, {stands}; read it again and repeat the change.",
        item=item,
        mine=write.mine,
        theirs=found,
    )


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
    return _known_version(plan, version)


def required_version(plan: Plan, version: ExpectedVersion, verb: str) -> int | None:
    """Return the version that is asked for; None when any will do."""
    return None if version is None else expected_version(plan, version, verb)


def _known_version(plan: Plan, version: object) -> int | None:
    if isinstance(version, _Any):
        return None
    if isinstance(version, int) and not isinstance(version, bool):
        return version
    # Never treated as ANY: a text from a header would overwrite any version.
    raise DataError(f"{plan.name}: a version is a whole number or ANY; {version!r} was given.")


def version_is(plan: Plan, expected: int) -> Condition:
    """Return the condition that the stored version is this one."""
    assert plan.version is not None
    attribute = plan.attributes[plan.version]
    return Compare("=", Attr((attribute.wire,)), Const({"N": str(expected)}))


def unchanged(plan: Plan, facts: Mapping[str, AttributeValue | None]) -> list[Condition]:
    """Return the conditions that fields are stored as they were."""
    return as_stored({plan.attributes[name].wire: value for name, value in facts.items()})


def as_stored(facts: Mapping[str, AttributeValue | None]) -> list[Condition]:
    """Return the conditions that attributes are stored as they were."""
    return [
        _absent(name) if value is None else Compare("=", _attribute(name), Const(value))
        for name, value in facts.items()
    ]


# Jobs require the same attributes of every item.
@lru_cache(1024)
def _absent(name: str) -> Condition:
    return Not(Exists((name,)))


@lru_cache(1024)
def _attribute(name: str) -> Attr:
    return Attr((name,))


def all_of(conditions: list[Condition]) -> Condition | None:
    """Return one condition for several, or None for none."""
    if len(conditions) > 1:
        return And(tuple(conditions))
    return conditions[0] if conditions else None


def version_of(plan: Plan, found: Any) -> int | None:
    """Return an entity's version; None without one."""
    return None if found is None or plan.version is None else getattr(found, plan.version)


def capitalize(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[0].upper() + text[1:]


def _found(scope: Scope, plan: Plan, item: Item) -> Any:
    found = plan.decode(item) if item.get(plan.table.tag) == plan.tag_value else None
    if found is not None:
        scope.check_tenant(plan, found)
        if scope.is_hidden(plan, item):
            return None
    return found
