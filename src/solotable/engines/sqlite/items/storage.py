"""Rows of items: read, written and removed with their index entries and change records.

A row holds the item's DynamoDB JSON, its size, and a checksum of key and item. An index entry has a checksum
of the entry's key and the item's key. A row or entry with a wrong checksum raises Corrupt. This module does
not know conditions or expressions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from typing import Any
from zlib import adler32

from solotable._protocol.decode.large_items import decode_item_in_steps
from solotable._protocol.engine import Pause
from solotable._protocol.json_codec import dumps, loads
from solotable._values import AttributeValue, Item
from solotable._values.checksum import crc32
from solotable.engines.sqlite.counts.counts import CountDeltas, CountOwner
from solotable.engines.sqlite.heat.charges import charge_entry, charge_unmoved
from solotable.engines.sqlite.heat.recorder import HeatRecord
from solotable.engines.sqlite.tables.catalog import Index, Table
from solotable.engines.sqlite.tables.windows import next_change_micros
from solotable.errors import Corrupt

from . import expiry_index
from .change_rows import UNSTREAMED, change_checksum
from .keys import encode_index_key, has_index_key

#: A row of a range: size, item, checksum, and key in the range. A row of an index also has the item's own
#: key and the checksum of the entry.
RangeRow = tuple[int, bytes, int, bytes] | tuple[int, bytes, int, bytes, bytes, int]
#: How many rows are fetched at once: few at first, as they may be large.
FIRST_CHUNK = 16
CHUNK = 64
#: The most bytes of a chunk, by the size of the last row.
CHUNK_BYTES = 256 * 1024


#: What `find_many` returns for a key without an item.
_ABSENT = 0, b""


class StoredItem:
    """A stored item: its JSON, which `item` decodes on first use."""

    __slots__ = ("_item", "id", "raw", "size")

    def __init__(self, row_id: int, size: int, raw: bytes) -> None:
        self.id = row_id
        self.size = size
        self.raw = raw
        self._item: Item | None = None

    @property
    def item(self) -> Item:
        if self._item is None:
            self._item = loads(self.raw)
        return self._item

    def has(self, name: str, value: AttributeValue | None) -> bool:
        """Say whether the item has this value of an attribute, or lacks the attribute if it is None.

        Most puts leave index keys as they are: this finds out without decoding the whole item.
        """
        if self._item is not None:
            return self._item.get(name) == value
        if value is None:
            if dumps(name) + b":" not in self.raw:
                return True
        else:
            member = dumps({name: value})[1:-1]
            at = self.raw.rfind(b"," + member) + 1
            rest = self.raw[at + len(member) :]
            # What follows a member of an inner map has the closing brackets of the outer ones too.
            if at and (rest == b"}" or (len(rest) < len(self.raw) // 2 and _is_object(b"{" + rest[1:]))):
                return True
        return self.item.get(name) == value

    def decode(self, pause: Pause) -> None:
        """Decode the item in steps."""
        self._item = decode_item_in_steps(self.raw, pause)


def _is_object(raw: bytes) -> bool:
    try:
        loads(raw)
    except ValueError:
        return False
    return True


def find(connection: sqlite3.Connection, table: Table, key: bytes) -> StoredItem | None:
    """Return the row of this key, or None."""
    return decode_row(table, key, connection.execute(table.select_sql, (key,)).fetchone())


def find_many(connection: sqlite3.Connection, table: Table, keys: list[bytes]) -> list[tuple[int, bytes]]:
    """Return the size and the JSON of each key's item, with one statement; (0, b"") for an absent one."""
    # NULL, which SQLite does not look up, fills up to a power of two, so that few statements are prepared.
    count = 1 << (len(keys) - 1).bit_length()
    # A bytearray, as in GetItem: sqlite3 binds it faster than bytes.
    parameters = [*map(bytearray, keys), *[None] * (count - len(keys))]
    found: list[tuple[int, bytes]] = []
    rows = connection.execute(table.select_many_sql(count), parameters).fetchall()
    try:
        for key, (row_id, size, crc, raw) in zip(keys, rows, strict=False):
            # A row id is never NULL; the columns of a damaged row may be.
            if row_id is None:
                found.append(_ABSENT)
                continue
            # The checksum includes the key, so the rows are known to be in its order.
            if crc32(raw, crc32(key)) != crc or size.__class__ is not int:
                raise _corrupt(table)
            found.append((size, raw))
    except TypeError:
        # A damaged header makes SQLite read bytes as another type.
        raise _corrupt(table) from None
    return found


def decode_row(table: Table, key: bytes, found: tuple[int, int, int, bytes] | None) -> StoredItem | None:
    """Return the row that `select_sql` found under a key, or raise Corrupt if its checksum is wrong."""
    if found is None:
        return None
    row_id, size, crc, raw = found
    try:
        if crc32(raw, crc32(key)) == crc and size.__class__ is int:
            return StoredItem(row_id, size, raw)
    except TypeError:
        # A damaged header makes SQLite read bytes as another type.
        pass
    raise _corrupt(table)


def read_chunks(
    connection: sqlite3.Connection,
    table: Table,
    index: Index | None,
    *,
    low: bytes,
    high: bytes,
    forward: bool = True,
    limit: int | None = None,
) -> Generator[list[RangeRow], None, None]:
    """Yield chunks of the rows whose key in the table or index is in [low, high), in order."""
    cursor = connection.execute(
        table.statement(rows_sql, index, forward=forward),
        # A bytearray, as in GetItem: sqlite3 binds it faster than bytes.
        (bytearray(low), bytearray(high), -1 if limit is None else limit),
    )
    follow = _check_item_rows if index is None else _check_entry_rows
    count = FIRST_CHUNK
    try:
        while found := cursor.fetchmany(count):
            following = follow(found, low, high, forward)
            if following is None:
                raise _corrupt(table)
            low, high = following
            yield found
            count = next_chunk(found[-1][1])
    except TypeError:
        # A damaged header makes SQLite read bytes as another type.
        raise _corrupt(table) from None
    finally:
        # An open statement would keep its snapshot, also for the next read of the connection.
        cursor.close()


def next_chunk(raw: bytes) -> int:
    """Return how many rows to fetch after a row of this size."""
    return max(1, min(CHUNK, CHUNK_BYTES // (len(raw) + 1)))


# The checks are inline: a page has many rows, and a call costs as much as a checksum. Keys must also be in
# order: a file page that was written to the wrong offset has valid checksums.
def _check_item_rows(rows: list[Any], low: bytes, high: bytes, forward: bool) -> tuple[bytes, bytes] | None:
    """Return the bounds of the range after these rows of a table; None if a row is damaged."""
    for size, raw, crc, key in rows:
        if crc32(raw, crc32(key)) != crc or not low <= key < high or size.__class__ is not int:
            return None
        if forward:
            low = key + b"\0"
        else:
            high = key
    return low, high


def _check_entry_rows(rows: list[Any], low: bytes, high: bytes, forward: bool) -> tuple[bytes, bytes] | None:
    """Return the same for rows of an index, whose entries must also belong to their items."""
    for size, raw, crc, entry, key, entry_crc in rows:
        start = crc32(key)
        if crc32(raw, start) != crc or not low <= entry < high or size.__class__ is not int:
            return None
        if crc32(entry, start) != entry_crc:
            return None
        if forward:
            low = entry + b"\0"
        else:
            high = entry
    return low, high


def rows_sql(table: Table, index: Index | None, *, forward: bool) -> str:
    """Return the statement of `read_chunks`; a test explains its plan."""
    order = "ASC" if forward else "DESC"
    if index is None:
        return (
            f"SELECT size, item, crc, key FROM {table.items} "
            f"WHERE key >= ? AND key < ? ORDER BY key {order} LIMIT ?"
        )
    # LEFT JOIN makes SQLite read the index first, and shows entries without an item.
    return (
        "SELECT i.size, i.item, i.crc, x.key, i.key, x.crc "
        f"FROM x{index.id} AS x LEFT JOIN {table.items} AS i ON i.id = x.row "
        f"WHERE x.key >= ? AND x.key < ? ORDER BY x.key {order} LIMIT ?"
    )


def add_entry(connection: sqlite3.Connection, index: Index, entry: bytes, key: bytes, row_id: int) -> bool:
    """Add the index entry of an item; say whether it is new."""
    added = connection.execute(index.insert_sql, (entry, row_id, entry_checksum(entry, key)))
    return added.rowcount > 0


def entry_checksum(entry: bytes, key: bytes) -> int:
    """Return the checksum of an index entry: of its key and the key of its item."""
    return crc32(entry, crc32(key))


def is_entry_sound(entry: bytes, key: bytes, crc: int) -> bool:
    """Say whether an index entry matches its checksum and belongs to the item of this key."""
    try:
        return crc32(entry, crc32(key)) == crc
    except TypeError:
        return False


def is_row_sound(key: bytes, size: int, crc: int, raw: bytes) -> bool:
    """Say whether a row matches its checksum."""
    try:
        return crc32(raw, crc32(key)) == crc and size.__class__ is int
    except TypeError:
        return False


def _corrupt(table: Table) -> Corrupt:
    return Corrupt(f"An item of table {table.name} does not match its checksum; it was not returned.")


class Writer:
    """A write transaction: writes items with their index entries and change records.

    It is called with the connection once the transaction has begun, and runs its action. `deltas` then says
    what the action changes in the counts of tables and indexes.
    """

    __slots__ = (
        "_action",
        "_by_service",
        "_change_micros",
        "_clock",
        "_now_micros",
        "charges",
        "connection",
        "deltas",
    )

    connection: sqlite3.Connection
    deltas: CountDeltas

    def __init__(
        self,
        action: Callable[[Writer], Any],
        clock: Callable[[], float],
        *,
        by_service: bool = False,
        charges: list[HeatRecord] | None = None,
    ) -> None:
        self._action = action
        self._clock = clock
        self._by_service = by_service
        #: The units that the action consumes; None if they are not counted.
        self.charges = charges

    def __call__(self, connection: sqlite3.Connection) -> Any:
        self.connection = connection
        # A write may run again, after a transaction that was rolled back.
        self.deltas = {}
        if self.charges:
            self.charges.clear()
        self._now_micros: int | None = None
        self._change_micros: int | None = None
        return self._action(self)

    @property
    def now_micros(self) -> int:
        """The time of this transaction, in microseconds since the epoch."""
        if self._now_micros is None:
            self._now_micros = int(self._clock() * 1_000_000)
        return self._now_micros

    @property
    def change_micros(self) -> int:
        """The time of this transaction's change records: later than every earlier transaction's.

        So a time, like a sequence number, is between two transactions and never inside one, also if the clock
        goes backwards.
        """
        if self._change_micros is None:
            self._change_micros = next_change_micros(self.connection, self.now_micros)
        return self._change_micros

    def find(self, table: Table, key: bytes) -> StoredItem | None:
        """Return the row of this key as this transaction sees it."""
        return decode_row(table, key, self.connection.execute(table.select_sql, (key,)).fetchone())

    def save(self, table: Table, key: bytes, old: StoredItem | None, new: Item, size: int) -> None:
        """Insert an item, or replace the stored one."""
        raw = dumps(new)
        if old is not None and (old.raw == raw or (table.stream is not None and _is_same(old, raw, new))):
            # DynamoDB: a write that changes nothing leaves no record of a change.
            return
        crc = crc32(raw, crc32(key))
        if old is None:
            row_id = self.connection.execute(table.insert_sql, (key, size, crc, raw)).lastrowid or 0
            self._count(table.own_count, 1, size)
        else:
            row_id = old.id
            self.connection.execute(table.update_sql, (size, crc, raw, row_id))
            if size != old.size:
                self._count(table.own_count, 0, size - old.size)
        if table.indexes:
            self._update_indexes(table, key, row_id, old, new, size)
        if table.expiry is not None:
            expiry_index.move_entry(
                self.connection, table.expiry, row_id, None if old is None else old.item, new
            )
        if table.stream is not None:
            self._record_change(table, key, old, raw, crc)

    def insert_row(self, table: Table, key: bytes, size: int, crc: int, raw: bytes) -> int | None:
        """Insert a row of a copy without its index entries; return its id, or None if the key exists."""
        added = self.connection.execute(table.copy_sql, (key, size, crc, raw))
        if not added.rowcount:
            return None
        self._count(table.own_count, 1, size)
        return added.lastrowid or 0

    def insert_rows(self, table: Table, rows: list[tuple[bytes, int, int, bytes]]) -> bool:
        """Insert rows of a copy of a table without indexes; return False, with no row, if a key exists."""
        self.connection.execute("SAVEPOINT rows")
        added = self.connection.executemany(table.copy_sql, rows).rowcount
        is_complete = added == len(rows)
        if is_complete:
            self._count(table.own_count, added, sum(row[1] for row in rows))
        else:
            self.connection.execute("ROLLBACK TO rows")
        self.connection.execute("RELEASE rows")
        return is_complete

    def insert_entry(
        self, table: Table, index: Index, entry: bytes, key: bytes, row_id: int, size: int
    ) -> None:
        """Insert the index entry of a copied row."""
        if add_entry(self.connection, index, entry, key, row_id):
            self._count(table.count_owner(index.id), 1, size)

    def remove(self, table: Table, key: bytes, old: StoredItem) -> None:
        """Remove a stored item."""
        self.connection.execute(table.delete_sql, (old.id,))
        self._count(table.own_count, -1, -old.size)
        if table.indexes:
            self._update_indexes(table, key, old.id, old, None, 0)
        if table.expiry is not None:
            expiry_index.move_entry(self.connection, table.expiry, old.id, old.item, None)
        if table.stream is not None:
            self._record_change(table, key, old, None, 0)

    def _count(self, owner: CountOwner, items: int, size: int) -> None:
        counted = self.deltas.get(owner)
        if counted is None:
            self.deltas[owner] = [items, size]
        else:
            counted[0] += items
            counted[1] += size

    def _update_indexes(
        self,
        table: Table,
        key: bytes,
        row_id: int,
        old: StoredItem | None,
        new: Item | None,
        size: int,
    ) -> None:
        charges = self.charges
        for index in table.indexes:
            if (
                old is not None
                and new is not None
                and index.status == "ACTIVE"
                and _has_same_index_key(table, index, old, new)
            ):
                if size != old.size or index.projected is not None:
                    self._count_growth(table, index, old, new, size)
                if charges is not None:
                    charge_unmoved(charges, table, index, old, new, size)
                continue
            before = None if old is None else encode_index_key(index, old.item, key)
            after = None if new is None else encode_index_key(index, new, key)
            # During a backfill, an item that is older than the index may not have an entry yet.
            if old is not None and before is not None and before != after:
                removed = self.connection.execute(index.delete_sql, (before,)).rowcount
                if removed:
                    self._count(table.count_owner(index.id), -1, -index.size(old.item, old.size))
                if charges is not None:
                    charge_entry(charges, table, index, old.item, old.size)
            if new is not None and after is not None:
                if charges is not None:
                    charge_entry(charges, table, index, new, size)
                if add_entry(self.connection, index, after, key, row_id):
                    self._count(table.count_owner(index.id), 1, index.size(new, size))
                elif old is not None:
                    self._count_growth(table, index, old, new, size)

    def _count_growth(self, table: Table, index: Index, old: StoredItem, new: Item, size: int) -> None:
        """Count the growth of an item whose index entry does not move."""
        growth = size - old.size if index.projected is None else index.growth(old.item, new)
        # Items without an index key attribute have no entry.
        if growth and has_index_key(index, new):
            self._count(table.count_owner(index.id), 0, growth)

    def _record_change(
        self, table: Table, key: bytes, old: StoredItem | None, new: bytes | None, item_crc: int
    ) -> None:
        before = None if old is None else old.raw
        stream, at_micros = table.stream or "", self.change_micros
        flags = self._by_service + table.change_flags
        if new is not None and flags & UNSTREAMED:
            # Undoing a change needs the old image only. The new one is in the next change, or in the table.
            new = item_crc.to_bytes(4, "big")
        crc = change_checksum(stream, at_micros, flags, key, before, new)
        self.connection.execute(
            "INSERT INTO changes (stream, at_micros, by_service, key, old, new, crc) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (stream, at_micros, flags, key, before, new, crc),
        )


def _is_same(old: StoredItem, raw: bytes, new: Item) -> bool:
    """Say whether two items with different JSON are equal: only the order of their attributes differs."""
    # The low half of Adler-32 is the sum of the bytes. It spares most writes from decoding the stored item.
    return len(raw) == len(old.raw) and (adler32(raw) ^ adler32(old.raw)) & 0xFFFF == 0 and old.item == new


def _has_same_index_key(table: Table, index: Index, old: StoredItem, new: Item) -> bool:
    """Say whether a stored item and a new one with the same key have the same key in an index."""
    own = table.schema.names
    for name in index.schema.names:  # noqa: SIM110 - runs in every write; a generator is slow
        if name not in own and not old.has(name, new.get(name)):
            return False
    return True
