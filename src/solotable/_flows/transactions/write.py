"""A write of an entity: its action, its derived writes, and the error of a failed condition.

Each verb creates a `Write`, which is sent alone or in a transaction. The caller's objects do not change:
a verb returns the stored entity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import tag_of
from solotable._entities.declare.table import Table
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._expressions.describe import describe
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.subject_keys import load_keys
from solotable._flows.sync.entries import LogEntry
from solotable._protocol.requests import GetItem, PutItem, WriteAction
from solotable._values import AttributeValue, Item
from solotable._values.limits import MOST_COMPARISONS
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    SolotableError,
    UnknownEntity,
    VersionConflict,
)


class _Any:
    """The type of ANY."""

    def __repr__(self) -> str:
        return "ANY"


#: `version=ANY`: overwrite any stored version.
ANY: Final = _Any()
ExpectedVersion = int | _Any | None
Verb = Literal[
    "put", "create", "update", "upsert", "delete", "check", "rename", "release", "undelete", "hold"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedWrite:
    """An item that is written in the same transaction as its cause."""

    action: WriteAction
    #: The name of the derived write in error messages.
    title: str
    #: Returns the error for a failed condition, given the stored item.
    explain: Callable[[Item | None], SolotableError]
    #: Whether it only adds to numbers, so that it can be merged into another action on the same item.
    adds: bool = False
    #: Whether the item that it adds to must exist after the transaction.
    needs: bool = False
    #: The table of the item; None if it is the table of the cause.
    table: Table | None = None


@dataclass(slots=True, kw_only=True)
class Write:
    """One write of one entity, ready to be sent."""

    # Not frozen: every write creates one, and freezing its many fields takes 4 % of a put. Use `replace`.

    plan: Plan
    verb: Verb
    given: Mapping[str, Any]
    action: WriteAction
    derived_writes: tuple[DerivedWrite | LogEntry, ...] = ()
    #: The caller's entity, and the entity that will be stored if that is known before sending.
    mine: Entity | None = None
    after: Entity | None = None
    #: The expectations of the condition, for the error message.
    creates: bool = False
    needs_item: bool = False
    expected_version: int | None = None
    where: Condition | None = None
    #: The stored values of the fields that were read first (None: absent); `derived_absent`: no item.
    derived_from: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    derived_absent: bool = False
    #: The stored values of internal attributes that were read first (None: absent).
    carried: Mapping[str, AttributeValue | None] = field(default_factory=dict)
    #: Plans the write again if the stored item has another schema version.
    instead: Callable[[], Flow[Write]] | None = None

    @property
    def title(self) -> str:
        """The name of the write in error messages: `put Section survey_id='s1', section_id='roof'`."""
        parts = (part for part in self.plan.primary.parts if part != self.plan.tenant)
        shown = ", ".join(f"{name}={self.given.get(name)!r}" for name in parts)
        return f"{self.verb} {self.plan.name} {shown}".rstrip()

    @property
    def key(self) -> Item:
        """The primary key of the item that is written."""
        return key_of(self.plan, self.action)

    def is_outdated(self, item: Item | None) -> bool:
        """Return whether the write failed because the item has changed since it was read."""
        if item is None:
            # A soft delete found no item, so it has nothing to delete. An upsert has an item to create.
            return self.verb == "upsert" or (self.verb == "delete" and self.plan.deletion is not None)
        if self.meets_other_schema_version(item):
            return True
        if self.derived_absent:
            # An item of another entity existed before too; it is not a change.
            return self.plan.recognises(item) and DELETED_AT not in item
        if any(item.get(name) != value for name, value in self.carried.items()):
            return True
        attributes = self.plan.attributes
        return any(item.get(attributes[name].wire) != value for name, value in self.derived_from.items())

    def meets_other_schema_version(self, item: Item) -> bool:
        """Return whether the stored item has an older schema version than the write was planned for."""
        plan = self.plan
        if self.instead is None or not plan.recognises(item):
            return False
        return plan.schema_versions.differs(item) and not plan.schema_versions.is_newer(item)


def key_of(plan: Plan, action: WriteAction) -> Item:
    """Return the primary key of the item that an action writes."""
    if not isinstance(action, PutItem):
        return action.key
    return {name: action.item[name] for name in plan.primary.names}


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored entity and its item."""

    item: Item
    entity: Any

    def wire_values(self, plan: Plan, fields: Iterable[str]) -> dict[str, AttributeValue | None]:
        """Return the stored values of fields; None for absent ones."""
        return {name: self.item.get(plan.attributes[name].wire) for name in fields}


@dataclass(frozen=True, slots=True)
class Change:
    """The states of an entity before and after a write; None if it does not exist.

    `soft`: a soft delete (`after` is None), or an undelete (`before` is None). The item keeps its key, its
    locks, its names and its history.
    """

    plan: Plan
    before: Stored | None
    after: Stored | None
    soft: bool = False


def load_stored(scope: Scope, plan: Plan, key: Item) -> Flow[Stored | None]:
    """Read the entity under a key consistently; return None if it does not exist or is hidden."""
    request = GetItem(table=scope.table(plan.table), key=key, consistent=True)
    reply = yield from send(request, scope.retries)
    if reply.item is None:
        return None
    item = decode_item(reply.item)
    if plan.loads_keys:
        yield from load_keys(plan, [item])
    entity = scope.admit(plan, item)
    return None if entity is None else Stored(item, entity)


def condition_error(scope: Scope, write: Write, item: Item | None) -> SolotableError:
    """Return the error for a failed condition, given the stored item."""
    plan = write.plan
    if item is not None and plan.recognises(item) and plan.schema_versions.is_newer(item):
        return plan.schema_versions.newer_error(item)
    found = None if item is None else _found(scope, plan, item)
    if item is not None and found is None and write.verb in ("put", "create", "upsert", "delete"):
        reason = next(filter(None, (trait.occupied(item, write.given) for trait in plan.traits)), None)
        # A caller that has read the entity gets a conflict instead, because the entity was deleted.
        if reason is not None and (write.expected_version is None or not plan.recognises(item)):
            return AlreadyExists(f"{capitalize(write.title)}: {reason}.", item=item)
    if item is not None and not plan.recognises(item):
        return _other_item_error(scope, write, item)
    if write.creates and found is not None:
        if write.verb == "create" or plan.version is None:
            return AlreadyExists(f"{capitalize(write.title)}: it already exists.", item=item, found=found)
        return conflict(write, item, found, 0)
    if write.expected_version is not None and version_of(plan, found) != write.expected_version:
        return conflict(write, item, found, write.expected_version)
    if found is None and write.needs_item:
        return not_found(plan, write.given)
    condition = "its condition" if write.where is None else describe(write.where)
    state = "the item does not exist" if found is None else "the stored item does not meet it"
    return _failed(f"{capitalize(write.title)}: {condition} was required, but {state}.", item, found)


def _other_item_error(scope: Scope, write: Write, item: Item) -> SolotableError:
    """Return the error of a write whose key holds an item that is not this entity."""
    plan, title = write.plan, capitalize(write.title)
    if write.creates:
        stored = tag_of(plan.table, item) or f"an item without a type tag ({plan.table.tag})"
        return AlreadyExists(f"{title}: {stored} is stored under the same key.", item=item)
    try:
        other = scope.known(plan.table, item)
    except UnknownEntity as error:
        return UnknownEntity(f"{title}: {error} Nothing was written.", tag=error.tag, item=item)
    if write.expected_version is not None:
        return conflict(write, item, None, write.expected_version)
    if write.needs_item:
        return not_found(plan, write.given)
    kind = tag_of(plan.table, item) if other is None else other.name
    return _failed(
        f"{title}: {kind} is stored under the same key, and a write of {plan.name} does not change it; "
        f"give the two entities different keys.",
        item,
        None,
    )


def _failed(message: str, item: Item | None, found: Any) -> ConditionFailed:
    error = ConditionFailed(message, item=item)
    error.args = (message,)
    error.found = found
    return error


def conflict(write: Write, item: Item | None, found: Any, expected: int) -> VersionConflict:
    """Return the error for a stored version that differs from the expected one."""
    current = version_of(write.plan, found)
    wanted = "a new item" if write.creates else f"version {expected}"
    state = "the item does not exist" if current is None else f"found version {current}"
    return VersionConflict(
        f"{capitalize(write.title)}: expected {wanted}, {state}; read it again and repeat the change.",
        item=item,
        mine=write.mine,
        theirs=found,
    )


def expected_version(plan: Plan, version: ExpectedVersion, verb: str) -> int | None:
    """Return the version that a write by key expects; None for ANY or an entity without a version."""
    if plan.version is None:
        if version is not None:
            raise DeclarationError(
                f"{verb}() got version={version!r}, but {plan.name} has no Version field; leave version= out."
            )
        return None
    if version is None:
        raise DeclarationError(
            f"{verb}() of {plan.name} needs version=, because the entity has a Version field; pass the "
            f"version that you read, pass the entity itself, or pass version=ANY to overwrite any version."
        )
    return _known_version(plan, version)


def required_version(plan: Plan, version: ExpectedVersion, verb: str) -> int | None:
    """Return the version that the caller requires; None for any version."""
    return None if version is None else expected_version(plan, version, verb)


def _known_version(plan: Plan, version: object) -> int | None:
    if isinstance(version, _Any):
        return None
    if isinstance(version, int) and not isinstance(version, bool):
        return version
    # Do not treat other types as ANY: a string from a header would overwrite any version.
    raise DataError(f"{plan.name}: version= takes an int or ANY, got {version!r}.")


def version_is(plan: Plan, expected: int) -> Condition:
    """Return the condition that the stored version is this one."""
    assert plan.version is not None
    name = plan.attributes[plan.version].wire
    same = Compare("=", _attribute(name), Const({"N": str(expected)}))
    # An item of another program may have no version; it is read as version 0.
    return same if expected else Or((same, _absent(name)))


def fields_unchanged(plan: Plan, values: Mapping[str, AttributeValue | None]) -> list[Condition]:
    """Return the conditions that fields have these stored values; None: absent."""
    if len(values) > MOST_COMPARISONS:
        raise DeclarationError(
            f"A write of {plan.name} depends on {len(values)} stored fields, because validators of the model "
            f"may read all of them; a condition compares at most {MOST_COMPARISONS}. Declare a Version "
            f"field, which is compared instead, or put() the whole entity."
        )
    return attributes_unchanged({plan.attributes[name].wire: value for name, value in values.items()})


def attributes_unchanged(values: Mapping[str, AttributeValue | None]) -> list[Condition]:
    """Return the conditions that attributes have these stored values; None: absent."""
    return [
        _absent(name) if value is None else Compare("=", _attribute(name), Const(value))
        for name, value in values.items()
    ]


# Jobs check the same attributes of every item.
@lru_cache(1024)
def _absent(name: str) -> Condition:
    return Not(Exists((name,)))


@lru_cache(1024)
def _attribute(name: str) -> Attr:
    return Attr((name,))


def all_of(conditions: list[Condition]) -> Condition | None:
    """Combine conditions with AND; return None without conditions."""
    if len(conditions) > 1:
        return And(tuple(conditions))
    return conditions[0] if conditions else None


def version_of(plan: Plan, found: Any) -> int | None:
    """Return the version of an entity; None without an entity or a Version field."""
    return None if found is None or plan.version is None else getattr(found, plan.version)


def capitalize(text: str) -> str:
    """Return a text with its first character in upper case."""
    return text[0].upper() + text[1:]


def _found(scope: Scope, plan: Plan, item: Item) -> Any:
    found = plan.decode(item) if plan.recognises(item) else None
    if found is not None:
        scope.check_tenant(plan, found)
        if scope.is_hidden(plan, item):
            return None
    return found
