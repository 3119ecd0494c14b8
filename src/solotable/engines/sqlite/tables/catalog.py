"""The catalog of a file: table definitions, cached until they change.

A definition is stored as JSON with DynamoDB's member names. `Table` is a definition prepared for the
operations. It is immutable: every change of a definition creates a new `Table`.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from solotable._values import Item, growth, item_size
from solotable._values.checksum import crc32
from solotable.errors import Corrupt, TableNotFound, invalid

from . import layout

Definition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """A key attribute: its name and its type, S, N or B."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The key attributes of a table or index; only a global index may have several per key."""

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]

    @cached_property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        return self.partition + self.sort

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def single_partition(self) -> tuple[str, str] | None:
        """The name and type of the partition key; None if it has several attributes."""
        return (self.partition[0].name, self.partition[0].kind) if len(self.partition) == 1 else None

    def partition_content(self, item: Item) -> str | tuple[str, ...]:
        """Return the content of an item's partition key; a tuple if it has several attributes."""
        single = self.single_partition
        if single is not None:
            content: str = item[single[0]][single[1]]
            return content
        return tuple(item[part.name][part.kind] for part in self.partition)

    @cached_property
    def text_names(self) -> tuple[str, ...]:
        """The names if all key attributes have type S and the partition has one of them; otherwise none."""
        is_text = all(attribute.kind == "S" for attribute in self.attributes)
        return self.names if is_text and len(self.partition) == 1 else ()


@dataclass(frozen=True, kw_only=True)
class Index:
    """A global or local secondary index."""

    id: int
    name: str
    is_global: bool
    schema: Schema
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    #: The attributes in the index; None for all.
    projected: frozenset[str] | None
    #: CREATING during the backfill. Writes always update the index; reads need ACTIVE.
    status: str
    #: The attributes of a LastEvaluatedKey: key attributes of the index, then the others of the table.
    position: tuple[KeyAttribute, ...]

    @cached_property
    def insert_sql(self) -> str:
        return f"INSERT OR IGNORE INTO x{self.id} VALUES (?, ?, ?)"

    @cached_property
    def delete_sql(self) -> str:
        return f"DELETE FROM x{self.id} WHERE key = ?"

    def project(self, item: Item) -> Item:
        """Return the attributes of an item that the index contains."""
        if self.projected is None:
            return item
        return {name: value for name, value in item.items() if name in self.projected}

    def size(self, item: Item, whole: int) -> int:
        """Return the size of an item's projection; `whole` is the size of the item."""
        return whole if self.projected is None else item_size(self.project(item))

    def growth(self, old: Item, new: Item) -> int:
        """Return the growth in bytes of an entry with an unchanged key, in an index with `projected`."""
        return 0 if self.projection == "KEYS_ONLY" else growth(self.projected or (), old, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryIndex:
    """The expiry index of a table with time to live."""

    id: int
    attribute: str
    #: CREATING during the backfill. Writes always update the index.
    status: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table definition, prepared for the operations."""

    id: int
    name: str
    generation: int
    definition: Definition = field(repr=False)
    schema: Schema
    indexes: tuple[Index, ...]

    @cached_property
    def items(self) -> str:
        """The SQLite table that holds the items."""
        return layout.items_table(self.id, self.generation)

    @cached_property
    def stream(self) -> str | None:
        """The name of the table in `changes`; None if it has neither a stream nor backups."""
        if not (self.stream_enabled or self.recoverable or self.definition.get("Copies")):
            return None
        return str(self.definition["TableId"])

    @cached_property
    def change_flags(self) -> int:
        """The flags of the table's changes: see `items/change_rows`."""
        return 4 if self.stream_enabled else 4 + 2

    @property
    def stream_enabled(self) -> bool:
        return bool(self.definition.get("StreamSpecification", {}).get("StreamEnabled"))

    @property
    def is_ready(self) -> bool:
        """Whether requests reach the table: it is not a backup, and no restore or import still fills it."""
        return self.definition.keys().isdisjoint(("Backup", "Copy", "Import"))

    @property
    def recoverable(self) -> bool:
        """Whether continuous backups are enabled."""
        return bool(self.definition.get("PointInTimeRecovery"))

    @cached_property
    def expiry(self) -> ExpiryIndex | None:
        """The expiry index; None without time to live, and in a file of layout 1."""
        setting = self.definition.get("TimeToLive", {})
        if "Id" not in setting:
            return None
        return ExpiryIndex(
            id=setting["Id"], attribute=setting["AttributeName"], status=setting.get("Status", "ACTIVE")
        )

    @cached_property
    def has_local_indexes(self) -> bool:
        return any(not index.is_global for index in self.indexes)

    @cached_property
    def index_key_names(self) -> frozenset[str]:
        """The names of the key attributes of all indexes."""
        return frozenset(name for index in self.indexes for name in index.schema.names)

    @cached_property
    def key_names(self) -> frozenset[str]:
        """The names of the key attributes of the table and all indexes."""
        return self.index_key_names.union(self.schema.names)

    @cached_property
    def own_count(self) -> tuple[int, int, int]:
        """The owner of the counts of the table itself."""
        return self.count_owner(0)

    def count_owner(self, index_id: int) -> tuple[int, int, int]:
        """Return the owner of the counts of an index: see `counts.CountOwner`."""
        return (self.id, self.generation, index_id)

    @cached_property
    def select_sql(self) -> str:
        return f"SELECT id, size, crc, item FROM {self.items} WHERE key = ?"

    def select_many_sql(self, count: int) -> str:
        """Return the statement that reads the items of `count` keys: a row for each key, in their order."""
        # Faster than IN, which sorts the keys first. LEFT JOIN makes SQLite look up each key.
        return (
            f"WITH k (key) AS (VALUES (?){', (?)' * (count - 1)}) "
            f"SELECT i.id, i.size, i.crc, i.item FROM k LEFT JOIN {self.items} AS i ON i.key = k.key"
        )

    @cached_property
    def insert_sql(self) -> str:
        return f"INSERT INTO {self.items} (key, size, crc, item) VALUES (?, ?, ?, ?)"

    @cached_property
    def copy_sql(self) -> str:
        return f"INSERT OR IGNORE INTO {self.items} (key, size, crc, item) VALUES (?, ?, ?, ?)"

    @cached_property
    def update_sql(self) -> str:
        return f"UPDATE {self.items} SET size = ?, crc = ?, item = ? WHERE id = ?"

    @cached_property
    def delete_sql(self) -> str:
        return f"DELETE FROM {self.items} WHERE id = ?"

    @cached_property
    def _statements(self) -> dict[tuple[StatementBuilder, int | None, bool], str]:
        return {}

    def statement(self, build: StatementBuilder, index: Index | None, *, forward: bool) -> str:
        """Return the cached statement for a range of this table or an index."""
        cache_key = (build, None if index is None else index.id, forward)
        found = self._statements.get(cache_key)
        if found is None:
            found = self._statements[cache_key] = build(self, index, forward=forward)
        return found

    def index(self, name: str) -> Index:
        """Return the index of this name, or raise DynamoDB's error."""
        for index in self.indexes:
            if index.name == name:
                return index
        raise invalid(f"The table does not have the specified index: {name}")


class StatementBuilder(Protocol):
    """Builds a statement that reads a range of a table or index, forward or backward."""

    def __call__(self, table: Table, index: Index | None, /, *, forward: bool) -> str: ...


class Catalog:
    """A cache of definitions; after `forget`, the next look-up reads the file."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}

    def forget(self, name: str | None = None) -> None:
        """Drop the definition of one table, or of all."""
        if name is None:
            self.tables = {}
        else:
            self.tables.pop(name, None)

    def forget_changed(self, connection: sqlite3.Connection) -> bool:
        """Drop the definitions that changed in the file; return whether there are any."""
        changed = False
        for name, table in tuple(self.tables.items()):
            row = connection.execute("SELECT id, generation FROM catalog WHERE name = ?", (name,)).fetchone()
            if row != (table.id, table.generation):
                self.tables.pop(name, None)
                changed = True
        return changed

    def table(self, connection: sqlite3.Connection, name: str) -> Table:
        """Return the table of this name, or raise TableNotFound."""
        found = self.tables.get(name) or self.load(connection, name)
        if found is None:
            raise TableNotFound
        return found

    def ready_table(self, connection: sqlite3.Connection, name: str) -> Table:
        """Return the table of this name, or raise TableNotFound, also if a restore still fills it."""
        found = self.table(connection, name)
        if not found.is_ready:
            raise TableNotFound
        return found

    def load(self, connection: sqlite3.Connection, name: str) -> Table | None:
        """Read the definition of a table from the file."""
        row = _find_row(connection, name)
        if row is None and _is_listed(connection, name):
            # Another process has just created the table, or the index of the names is damaged.
            row = _find_row(connection, name)
            if row is None:
                raise Corrupt(f"The catalog lists table {name}, and does not find it by its name.")
        if row is None:
            self.tables.pop(name, None)
            return None
        *members, crc = row
        check_definition(name, members[-1], crc)
        table = _build_table(*members)
        if table.is_ready:
            self.tables[name] = table
        return table


def _find_row(connection: sqlite3.Connection, name: str) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = connection.execute(
        "SELECT id, name, generation, definition, crc FROM catalog WHERE name = ?", (name,)
    ).fetchone()
    return found


def _is_listed(connection: sqlite3.Connection, name: str) -> bool:
    """Say whether a row of the catalog has a name; raise Corrupt if a row is damaged or missing.

    A table with a damaged name would seem to be missing, and another one could be created in its place.
    """
    try:
        rows = connection.execute("SELECT name, definition, crc FROM catalog NOT INDEXED").fetchall()
        (hidden,) = connection.execute(
            "SELECT (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name GLOB 't[0-9]*_[0-9]*') "
            "- (SELECT count(*) FROM catalog NOT INDEXED)"
        ).fetchone()
    except sqlite3.OperationalError as error:
        # A damaged name is not UTF-8.
        raise Corrupt(f"The catalog of tables is damaged: {error}.") from error
    for each, text, crc in rows:
        check_definition(each, text, crc)
    if hidden:
        raise Corrupt("The catalog lacks a table whose items are in the file.")
    return any(each == name for each, _, _ in rows)


def list_names(
    connection: sqlite3.Connection, *, after: str = "", limit: int = -1, backups: bool = True
) -> list[str]:
    """Return the sorted table names after `after`; those of backups are ARNs."""
    rows = connection.execute(
        "SELECT name FROM catalog WHERE name > ? AND (? OR NOT instr(name, ':')) ORDER BY name LIMIT ?",
        (after, backups, limit),
    )
    return [name for (name,) in rows]


def add(connection: sqlite3.Connection, name: str, definition: Definition) -> Table:
    """Add a table, create its SQLite tables, and set the ids of its indexes."""
    added = _create_indexes(connection, definition)
    text = json.dumps(definition)
    row = connection.execute(
        "INSERT INTO catalog (name, generation, definition, crc) VALUES (?, 1, ?, ?) RETURNING id",
        (name, text, _checksum(name, text)),
    ).fetchall()
    table = _build_table(row[0][0], name, 1, text)
    layout.create_items(connection, table.items)
    _start_counts(connection, table.id, [0, *added])
    return table


def replace(connection: sqlite3.Connection, table: Table, definition: Definition) -> Table:
    """Store a changed definition, and rename the items' table to the next generation.

    Create indexes (also the expiry index) that have no Id yet, and drop those that the definition lacks.
    """
    existing = {index["Id"] for index in indexes_of(definition) if "Id" in index}
    for old in table.indexes:
        if old.id not in existing:
            layout.drop_index(connection, old.id)
            connection.execute("DELETE FROM counts WHERE table_id = ? AND index_id = ?", (table.id, old.id))
    _start_counts(connection, table.id, _create_indexes(connection, definition))
    _replace_expiry(connection, table, definition.get("TimeToLive", {}))
    text = json.dumps(definition)
    changed = _build_table(table.id, table.name, table.generation + 1, text)
    connection.execute(
        "UPDATE catalog SET generation = ?, definition = ?, crc = ? WHERE id = ?",
        (changed.generation, text, _checksum(table.name, text), table.id),
    )
    connection.execute(f"ALTER TABLE {table.items} RENAME TO {changed.items}")
    return changed


def drop(connection: sqlite3.Connection, table: Table) -> None:
    """Remove a table, its items and its indexes; its change records stay."""
    for index in table.indexes:
        layout.drop_index(connection, index.id)
    if table.expiry is not None:
        layout.drop_expiry(connection, table.expiry.id)
    connection.execute(f"DROP TABLE {table.items}")
    connection.execute("DELETE FROM counts WHERE table_id = ?", (table.id,))
    connection.execute("DELETE FROM catalog WHERE id = ?", (table.id,))


def rename(connection: sqlite3.Connection, table: Table, name: str, definition: Definition) -> Table:
    """Store a table under another name with another definition; drop its indexes."""
    changed = replace(connection, table, definition)
    text = json.dumps(definition)
    connection.execute(
        "UPDATE catalog SET name = ?, crc = ? WHERE id = ?", (name, _checksum(name, text), table.id)
    )
    return _build_table(table.id, name, changed.generation, text)


def _create_indexes(connection: sqlite3.Connection, definition: Definition) -> list[int]:
    """Create the indexes of a definition that have no id yet, and return their ids."""
    added = [index for index in indexes_of(definition) if "Id" not in index]
    for index in added:
        index["Id"] = layout.next_index(connection)
        layout.create_index(connection, index["Id"])
    return [index["Id"] for index in added]


def _start_counts(connection: sqlite3.Connection, table_id: int, index_ids: list[int]) -> None:
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?, 0, 0, 0)", [(table_id, index_id) for index_id in index_ids]
    )


def _replace_expiry(connection: sqlite3.Connection, table: Table, setting: dict[str, Any]) -> None:
    """Drop the expiry index if the new setting lacks it; create one if the setting needs it."""
    if table.expiry is not None and table.expiry.id != setting.get("Id"):
        layout.drop_expiry(connection, table.expiry.id)
    if setting and "Id" not in setting:
        setting["Id"] = layout.next_index(connection)
        layout.create_expiry(connection, setting["Id"])


def check_definition(name: object, text: object, crc: object) -> None:
    """Raise Corrupt if a definition does not match its checksum."""
    if not isinstance(name, str) or not isinstance(text, str) or _checksum(name, text) != crc:
        raise Corrupt(f"The definition of table {name} does not match its checksum.")


def _checksum(name: str, text: str) -> int:
    return crc32(text.encode(), crc32(name.encode()))


def indexes_of(definition: Definition) -> list[dict[str, Any]]:
    """Return the entries of all indexes of a definition, global indexes first."""
    return [
        *definition.get("GlobalSecondaryIndexes", ()),
        *definition.get("LocalSecondaryIndexes", ()),
    ]


def _build_table(table_id: int, name: str, generation: int, text: str) -> Table:
    definition: Definition = json.loads(text)
    kinds = {entry["AttributeName"]: entry["AttributeType"] for entry in definition["AttributeDefinitions"]}
    schema = _schema(definition["KeySchema"], kinds)
    return Table(
        id=table_id,
        name=name,
        generation=generation,
        definition=definition,
        schema=schema,
        indexes=tuple(
            _index(entry, kinds, schema, is_global=member == "GlobalSecondaryIndexes")
            for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
            for entry in definition.get(member, ())
        ),
    )


def _schema(key_schema: list[dict[str, str]], kinds: dict[str, str]) -> Schema:
    def of(key_type: str) -> tuple[KeyAttribute, ...]:
        return tuple(
            KeyAttribute(entry["AttributeName"], kinds[entry["AttributeName"]])
            for entry in key_schema
            if entry["KeyType"] == key_type
        )

    return Schema(partition=of("HASH"), sort=of("RANGE"))


def _index(entry: dict[str, Any], kinds: dict[str, str], table: Schema, *, is_global: bool) -> Index:
    schema = _schema(entry["KeySchema"], kinds)
    projection = entry["Projection"]["ProjectionType"]
    included = entry["Projection"].get("NonKeyAttributes", ())
    return Index(
        id=entry["Id"],
        name=entry["IndexName"],
        is_global=is_global,
        schema=schema,
        projection=projection,
        projected=None if projection == "ALL" else frozenset((*schema.names, *table.names, *included)),
        status=entry.get("IndexStatus", "ACTIVE"),
        position=schema.attributes
        + tuple(attribute for attribute in table.attributes if attribute.name not in schema.names),
    )
