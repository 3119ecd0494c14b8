"""An engine over another one that keeps writes in memory, so that mutators read what they wrote.

Reads of the table are consistent. Nothing is written to the other engine: `changes` returns the items that
differ, for one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from solotable._entities.declare.table import Table
from solotable._expressions.evaluate import evaluate
from solotable._expressions.project import project
from solotable._expressions.update import apply_update, updated_values
from solotable._protocol import replies, requests
from solotable._protocol.engine import Capabilities, Engine, ReplyT
from solotable._protocol.replies import SomeItem, decode_items
from solotable._protocol.requests import Request, WriteAction
from solotable._values import Item, item_size
from solotable.errors import (
    ConditionFailed,
    DataError,
    ServiceError,
    SolotableError,
    TransactionCancelled,
)

from .overlay_query import merged_page

#: The table's name and the values of its key attributes.
Identity = tuple[str, ...]
#: An item that was never read: it is written without a condition.
UNREAD: Item = {"": {"NULL": True}}


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item that mutators changed; `before` is UNREAD if they replaced it without a look."""

    table: Table
    name: str
    key: Item
    before: Item | None
    after: Item | None


class Overlay:
    """The items that mutators read and wrote in one attempt of a push."""

    def __init__(
        self, base: Engine, tables: dict[str, Table], before_read: Callable[[Table, Item], bool]
    ) -> None:
        self._base = base
        self._tables = tables
        #: Called with every item that is read; True if the item must be read again.
        self._before_read = before_read
        self._read: dict[Identity, Item | None] = {}
        self._written: dict[Identity, Item | None] = {}
        self._keys: dict[Identity, tuple[str, Item]] = {}
        self._journal: list[tuple[Identity, bool, Item | None]] = []
        #: The identities of items that were read by key since the last `mark`.
        self.looked_at: set[Identity] = set()
        #: The first error of the engine below, which must not count as a rejection.
        self.failure: SolotableError | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Every answer takes microseconds, or one read."""
        return Capabilities(instant=True)

    def close(self) -> None:
        """Do nothing: the engine below stays open."""

    def mark(self) -> int:
        """Return a point to roll back to, and forget what was looked at."""
        self.looked_at = set()
        return len(self._journal)

    def roll_back(self, mark: int) -> None:
        """Undo the writes since a mark."""
        while len(self._journal) > mark:
            identity, was_written, item = self._journal.pop()
            if was_written:
                self._written[identity] = item
            else:
                del self._written[identity]

    def weight(self, mark: int) -> tuple[int, int]:
        """Return the number of written items, and the bytes of those written since a mark."""
        since = {identity for identity, _, _ in self._journal[mark:]}
        items = (self._written[identity] for identity in since)
        return len(self._written), sum(item_size(item) for item in items if item is not None)

    def changes(self) -> Iterator[ItemChange]:
        """Yield the items that differ from what is stored."""
        for identity, after in self._written.items():
            before = self._read.get(identity, UNREAD)
            if before != after:
                name, key = self._keys[identity]
                yield ItemChange(self._tables[name], name, key, before, after)

    def stored(self, identity: Identity) -> tuple[str, Item, Item | None] | None:
        """Return the table, key and stored item of what was read but not written; None if it was written."""
        if identity in self._written or identity not in self._read:
            return None
        name, key = self._keys[identity]
        return name, key, self._read[identity]

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer a request of a mutator."""
        return cast(ReplyT, self._answer(request))

    def _answer(self, request: Request[Any]) -> Any:
        match request:
            case requests.GetItem():
                found = self._item(request.table, request.key)
                return replies.GotItem(item=_projected(found, request.projection))
            case requests.PutItem() | requests.UpdateItem() | requests.DeleteItem():
                return self._write(request)
            case requests.Query():
                return self._query(request)
            case requests.BatchGetItem():
                return replies.BatchGot(responses={part.table: self._items(part) for part in request.tables})
            case requests.TransactGetItems():
                items = [_projected(self._item(get.table, get.key), get.projection) for get in request.gets]
                return replies.TransactGot(items=cast(list[SomeItem | None], items))
            case requests.TransactWriteItems():
                return self._transact(request.actions)
            case requests.BatchWriteItem():
                for table, writes in request.tables:
                    for write in writes:
                        if isinstance(write, requests.BatchPut):
                            self._store(table, write.item, write.item)
                        else:
                            self._store(table, write.key, None)
                return replies.BatchWrote()
            case _:
                raise DataError(f"A mutator cannot use {type(request).__name__}; read by key or by query.")

    def _items(self, part: requests.TableKeys) -> list[SomeItem]:
        found = (_projected(self._item(part.table, key), part.projection) for key in part.keys)
        return [item for item in found if item is not None]

    def _identity(self, table: str, item: Item) -> Identity:
        declared = self._tables.get(table)
        if declared is None:
            raise DataError(f"A mutator cannot use table {table!r}, which is not open in this store.")
        names = declared.key_names
        return (table, *(f"{kind}{value}" for name in names for kind, value in item[name].items()))

    def _item(self, table: str, key: Item) -> Item | None:
        identity = self._identity(table, key)
        self.looked_at.add(identity)
        if identity in self._written:
            return self._written[identity]
        if identity not in self._read:
            request = requests.GetItem(table=table, key=key, consistent=True)
            found = _decoded(self._send(request).item)
            if found is not None and self._before_read(self._tables[table], found):
                found = _decoded(self._send(request).item)
            self._read[identity] = found
            self._keys[identity] = (table, key)
        return self._read[identity]

    def _send(self, request: Request[ReplyT]) -> ReplyT:
        try:
            return self._base.handle(request)
        except SolotableError as error:
            self.failure = self.failure or error
            raise

    def _store(self, table: str, key: Item, item: Item | None) -> None:
        identity = self._identity(table, key)
        if identity not in self._keys:
            names = self._tables[table].key_names
            self._keys[identity] = (table, {name: key[name] for name in names})
        self._journal.append((identity, identity in self._written, self._written.get(identity)))
        self._written[identity] = item

    def _write(
        self, action: requests.PutItem | requests.UpdateItem | requests.DeleteItem
    ) -> replies.WroteItem:
        old, new = self._checked(action)
        key = action.item if isinstance(action, requests.PutItem) else action.key
        self._store(action.table, key, new)
        returned: Item | None = None
        if action.returns == "ALL_OLD":
            returned = old
        elif action.returns == "ALL_NEW":
            returned = new
        elif action.returns in ("UPDATED_OLD", "UPDATED_NEW") and isinstance(action, requests.UpdateItem):
            source = old if action.returns == "UPDATED_OLD" else new
            returned = updated_values(action.update, source or {}, old or {})
        return replies.WroteItem(attributes=returned)

    def _checked(self, action: WriteAction) -> tuple[Item | None, Item | None]:
        """Return the item before and after an action; raise ConditionFailed like an engine."""
        if isinstance(action, requests.PutItem) and action.condition is None and action.returns == "NONE":
            return None, action.item
        key = action.item if isinstance(action, requests.PutItem) else action.key
        names = self._tables[action.table].key_names if action.table in self._tables else ()
        old = self._item(action.table, {name: key[name] for name in names} if names else key)
        if action.condition is not None and not evaluate(action.condition, old or {}):
            raise ConditionFailed(item=old if action.returns_on_failure else None)
        match action:
            case requests.PutItem():
                return old, action.item
            case requests.DeleteItem():
                return old, None
            case requests.UpdateItem():
                if old is None and not action.update.creates:
                    return None, None
                return old, apply_update(action.update, old if old is not None else dict(action.key))
            case _:
                return old, old

    def _transact(self, actions: Sequence[WriteAction]) -> replies.TransactWrote:
        results: list[tuple[WriteAction, Item | None]] = []
        reasons: list[dict[str, Any]] = []
        for action in actions:
            try:
                results.append((action, self._checked(action)[1]))
                reasons.append({"Code": "None"})
            except ConditionFailed as error:
                failed = {"Code": "ConditionalCheckFailed", "Message": error.message, **error.members}
                reasons.append(failed)
            except ServiceError as error:
                if error is self.failure:
                    raise
                reasons.append({"Code": "ValidationError", "Message": error.message})
        if len(results) < len(actions):
            raise TransactionCancelled(reasons)
        for action, item in results:
            if not isinstance(action, requests.ConditionCheck):
                self._store(
                    action.table, action.item if isinstance(action, requests.PutItem) else action.key, item
                )
        return replies.TransactWrote()

    def _query(self, request: requests.Query) -> replies.Page:
        table = self._tables.get(request.table)
        if table is None:
            self._identity(request.table, {})
        assert table is not None
        written = {identity: item for identity, item in self._written.items() if identity[0] == request.table}
        sent = replace(request, capacity="NONE", consistent=request.index is None)
        if written:
            sent = replace(sent, projection=None, select=None)
        page = self._send(sent)
        items = None if page.items is None else decode_items(page.items)
        heads = [self._before_read(table, item) for item in items or ()]
        if any(heads):
            page = self._send(sent)
            items = decode_items(page.items or ())
        if not written:
            return replace(page, items=cast(Any, items))
        kept = [item for item in items or () if self._identity(request.table, item) not in written]
        return merged_page(
            request, table, page, kept, [item for item in written.values() if item is not None]
        )


def _decoded(item: SomeItem | None) -> Item | None:
    return None if item is None else decode_items([item])[0]


def _projected(item: Item | None, projection: Any) -> Item | None:
    return item if item is None or projection is None else project(projection, item)
