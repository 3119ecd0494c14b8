"""Request records: one for each data operation, with trees and canonical values instead of text.

A record has passed all checks that need no table. One `Control` record serves all control operations (tables,
tags, TTL, backups, streams). `table` is the table's name or ARN as the caller gave it; the reply names the
table in the same way.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union

from solotable._expressions.ast import Condition, KeyCondition, Projection, Update
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass

from . import replies  # noqa: F401  # the strings below name its records

if TYPE_CHECKING:
    from solotable._expressions.prepared.template import UpdateTemplate

ReplyT_co = TypeVar("ReplyT_co", covariant=True)

CapacityReport = Literal["NONE", "TOTAL", "INDEXES"]
CollectionReport = Literal["NONE", "SIZE"]
ReturnValues = Literal["NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"]
Select = Literal["ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT"]


#: An UpdateItem without actions, which creates a missing item.
NO_UPDATE = Update((), creates=True)


class Request(Generic[ReplyT_co]):
    """A request to an engine; the type parameter is the type of its reply."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GetItem(Request["replies.GotItem"]):
    table: str
    key: Item
    consistent: bool = False
    projection: Projection | None = None
    capacity: CapacityReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PutItem(Request["replies.WroteItem"]):
    table: str
    item: Item
    condition: Condition | None = None
    returns: ReturnValues = "NONE"
    returns_on_failure: bool = False
    #: The bytes of the item, if the sender has computed them.
    size: int | None = field(default=None, compare=False)
    capacity: CapacityReport = "NONE"
    collection: CollectionReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateItem(Request["replies.WroteItem"]):
    table: str
    key: Item
    update: Update = NO_UPDATE
    condition: Condition | None = None
    returns: ReturnValues = "NONE"
    returns_on_failure: bool = False
    capacity: CapacityReport = "NONE"
    collection: CollectionReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedUpdateItem(UpdateItem):
    """An UpdateItem from a template and values; it builds its trees when they are read."""

    template: UpdateTemplate
    #: In canonical wire form, one for each slot.
    values: tuple[AttributeValue, ...]
    _trees: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @property  # type: ignore[misc] # a property replaces a field of `lazy_dataclass`
    def update(self) -> Update:
        """The update with its values."""
        return self._bind()[0]

    @property  # type: ignore[misc] # the same
    def condition(self) -> Condition | None:
        """The condition with its values."""
        return self._bind()[1]

    def __eq__(self, other: object) -> bool:
        """Equal to any UpdateItem with the same trees."""
        if not isinstance(other, UpdateItem):
            return NotImplemented
        return all(getattr(self, each) == getattr(other, each) for each in _UPDATE_ITEM_FIELDS)

    __hash__ = None  # type: ignore[assignment] # a key is a dict

    def _bind(self) -> tuple[Update, Condition | None]:
        trees = self._trees
        if not trees:
            trees.append(self.template.bind(self.values))
        bound: tuple[Update, Condition | None] = trees[0]
        return bound


_UPDATE_ITEM_FIELDS = tuple(each.name for each in fields(UpdateItem))
# Observers, logs and errors name a request by its operation.
PreparedUpdateItem.__name__ = UpdateItem.__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteItem(Request["replies.WroteItem"]):
    table: str
    key: Item
    condition: Condition | None = None
    returns: ReturnValues = "NONE"
    returns_on_failure: bool = False
    capacity: CapacityReport = "NONE"
    collection: CollectionReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionCheck:
    """A condition on an item; only in a transaction."""

    table: str
    key: Item
    condition: Condition
    returns_on_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Request["replies.Page"]):
    table: str
    key: KeyCondition
    index: str | None = None
    filter: Condition | None = None
    projection: Projection | None = None
    select: Select | None = None
    limit: int | None = None
    start: Item | None = None
    forward: bool = True
    consistent: bool = False
    capacity: CapacityReport = "NONE"
    #: Whether key condition and filter came from legacy parameters, which errors name.
    legacy: bool = False

    def page(self, start: Item | None, limit: int | None) -> Query:
        """Return the request for a page of the same rows, as `replace` does in twice the time."""
        return Query(
            table=self.table,
            key=self.key,
            index=self.index,
            filter=self.filter,
            projection=self.projection,
            select=self.select,
            limit=limit,
            start=start,
            forward=self.forward,
            consistent=self.consistent,
            capacity=self.capacity,
            legacy=self.legacy,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(Request["replies.Page"]):
    table: str
    index: str | None = None
    filter: Condition | None = None
    projection: Projection | None = None
    select: Select | None = None
    limit: int | None = None
    start: Item | None = None
    segment: int | None = None
    segments: int | None = None
    consistent: bool = False
    capacity: CapacityReport = "NONE"
    legacy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeys:
    """The keys of one table in a BatchGetItem.

    `wire` is the request's entry without its keys; UnprocessedKeys returns it with the keys left.
    """

    table: str
    keys: tuple[Item, ...]
    consistent: bool = False
    projection: Projection | None = None
    wire: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchGetItem(Request["replies.BatchGot"]):
    tables: tuple[TableKeys, ...]
    capacity: CapacityReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPut:
    item: Item
    #: The bytes of the item, if the sender has computed them.
    size: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDelete:
    key: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWriteItem(Request["replies.BatchWrote"]):
    #: In the order of the request.
    tables: tuple[tuple[str, tuple[BatchPut | BatchDelete, ...]], ...]
    capacity: CapacityReport = "NONE"
    collection: CollectionReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactGetItems(Request["replies.TransactGot"]):
    gets: tuple[GetItem, ...]
    capacity: CapacityReport = "NONE"


WriteAction = Union[PutItem, UpdateItem, DeleteItem, ConditionCheck]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactWriteItems(Request["replies.TransactWrote"]):
    actions: tuple[WriteAction, ...]
    token: str | None = None
    #: Hash of the actions; a retry with the same token must have the same.
    fingerprint: bytes = b""
    capacity: CapacityReport = "NONE"
    collection: CollectionReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One PartiQL statement as text, with its parameters."""

    text: str
    parameters: tuple[AttributeValue, ...] = ()
    consistent: bool = False
    returns_on_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteStatement(Request["replies.StatementRan"]):
    statement: Statement
    limit: int | None = None
    token: str | None = None
    capacity: CapacityReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchExecuteStatement(Request["replies.Answer"]):
    statements: tuple[Statement, ...]
    capacity: CapacityReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteTransaction(Request["replies.Answer"]):
    statements: tuple[Statement, ...]
    token: str | None = None
    fingerprint: bytes = b""
    capacity: CapacityReport = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Request["replies.Answer"]):
    """A control or streams operation, with checked members under DynamoDB's names."""

    operation: str
    members: dict[str, Any]
