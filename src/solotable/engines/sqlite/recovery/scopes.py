"""Which items of a table a restore covers: all, one tenant, one item collection, or one item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.engines.sqlite.items.keys import BEYOND, encode_key, encode_partition_key, end_of_prefix
from solotable.engines.sqlite.tables.catalog import Schema
from solotable.errors import RecoveryError

_NO_MAP: dict[str, Any] = {}
#: Partitions of a store's internal items that follow the entities of a tenant.
_INTERNAL = (b"UNIQUE#", b"COUNTER#")
#: Partitions of a store's internal items that contain the key of one entity: the locks of its unique fields,
#: and its entry in the purge queue.
_DEPENDENT = (b"UNIQUE#", b"PURGE#")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A part of a table; without members, the whole table.

    `key` is the partition key of an item collection, or the whole key of an item, in DynamoDB's wire form.
    `prefix` selects the partitions whose key is this text, or begins with it and a `#`. `attribute` selects
    the items with this name and text; with `prefix`, an item needs only one of the two. `tenant` adds the
    locks of unique fields and the counters that a store keeps for a tenant in other partitions. The locks and
    the purge queue's entries of the selected entities are in the scope, too.
    """

    key: Item | None = None
    prefix: str | None = None
    attribute: tuple[str, str] | None = None
    tenant: str | None = None

    def __post_init__(self) -> None:
        if self.key is not None and (self.prefix is not None or self.attribute is not None):
            raise RecoveryError("A scope has either a key, or a prefix and an attribute; got both.")
        if self.prefix == "":
            raise RecoveryError("The prefix of a scope is empty; omit it to restore the whole table.")

    @classmethod
    def of_tenant(
        cls, tenant: str, *, key: str = "TENANT#{tenant}", attribute: str | None = "tenant_id"
    ) -> Scope:
        """Return the scope of one tenant, by the start of its partition keys or by an attribute."""
        if not tenant or "#" in tenant:
            raise RecoveryError(f"A tenant is a text without '#', got {tenant!r}.")
        if "{tenant}" not in key:
            raise RecoveryError(f"The key of a tenant contains {{tenant}}, got {key!r}.")
        return cls(
            prefix=key.replace("{tenant}", tenant),
            attribute=None if attribute is None else (attribute, tenant),
            tenant=tenant,
        )

    @property
    def is_whole(self) -> bool:
        """Whether every item is in the scope."""
        return self.key is None and self.prefix is None and self.attribute is None

    def bounds(self, schema: Schema) -> tuple[bytes, bytes]:
        """Return the range of keys that contains the scope: first, and end."""
        if self.key is None:
            return b"", BEYOND
        names = set(self.key)
        partition = {part.name for part in schema.partition}
        try:
            if names == set(schema.names):
                low = encode_key(schema, self.key)
                return low, low + b"\0"
            if names == partition:
                low = encode_partition_key(schema, self.key)
                return low, end_of_prefix(low)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass
        raise RecoveryError(
            f"A key of this table has the attributes {', '.join(schema.names)} with their types, "
            f"an item collection {', '.join(sorted(partition))}; got {self.key!r}."
        )

    def check(self, schema: Schema) -> None:
        """Raise RecoveryError if the table cannot have this scope."""
        self.bounds(schema)
        if self.prefix is not None and schema.partition[0].kind != "S":
            raise RecoveryError("A prefix needs a partition key of type S.")

    def contains(self, schema: Schema, key: bytes, raw: bytes | None) -> bool:
        """Say whether an item is in the scope; its key is within the bounds, or it is a dependent one."""
        if self.is_whole or (raw is not None and is_dependent(key) and self._follows(schema, raw)):
            return True
        if self.key is not None:
            low, high = self.bounds(schema)
            return low <= key < high
        if self.prefix is not None:
            # Four bytes are the partition's hash; two zero bytes end a text.
            for text in _spellings(self.prefix, self.tenant):
                if key.startswith(text, 4) and key[4 + len(text) : 5 + len(text)] in (b"#", b"\0"):
                    return True
        if self.tenant is not None and key.startswith(_INTERNAL, 4) and _is_of_tenant(key, raw, self.tenant):
            return True
        if self.attribute is None or raw is None:
            return False
        name, value = self.attribute
        # Most items lack the text; finding it is cheaper than decoding them.
        return value.encode() in raw and loads(raw).get(name) == {"S": value}

    def _follows(self, schema: Schema, raw: bytes) -> bool:
        """Say whether a dependent item has the key of an entity in the scope."""
        item = loads(raw)
        owner: Item = item.get("holder", item.get("_ticket", _NO_MAP).get("M", {}).get("key", _NO_MAP)).get(
            "M", {}
        )
        if self.key is not None:
            return all(owner.get(name) == value for name, value in self.key.items())
        if self.prefix is None:
            return False
        text = owner.get(schema.partition[0].name, {}).get("S", "").encode() + b"#"
        return any(text.startswith(prefix + b"#") for prefix in _spellings(self.prefix, self.tenant))

    def to_json(self) -> dict[str, Any]:
        """Return the scope as JSON."""
        members = {
            "key": self.key,
            "prefix": self.prefix,
            "attribute": self.attribute,
            "tenant": self.tenant,
        }
        return {name: value for name, value in members.items() if value is not None}

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Scope:
        """Return the scope of `to_json`."""
        attribute = members.get("attribute")
        return cls(
            key=members.get("key"),
            prefix=members.get("prefix"),
            attribute=None if attribute is None else (attribute[0], attribute[1]),
            tenant=members.get("tenant"),
        )


def is_dependent(key: bytes) -> bool:
    """Say whether an item belongs to the entity whose key it contains."""
    # Four bytes are the partition's hash.
    return key.startswith(_DEPENDENT, 4)


def _escape(tenant: str) -> str:
    """Return a tenant as the keys of a store have it: characters up to `%` are percent-encoded."""
    return re.sub(r"[\0-%]", lambda found: f"%{ord(found[0]):02X}", tenant)


@lru_cache
def _spellings(prefix: str, tenant: str | None) -> tuple[bytes, ...]:
    """Return a prefix as it is, and as the keys of a store have it if its tenant is escaped there."""
    if tenant is None or _escape(tenant) == tenant:
        return (prefix.encode(),)
    return prefix.encode(), prefix.replace(tenant, _escape(tenant)).encode()


def _is_of_tenant(key: bytes, raw: bytes | None, tenant: str) -> bool:
    """Say whether the lock of a unique field, or a shard of a counter, belongs to a tenant.

    Their partitions are `UNIQUE#tenant#entity#field#value` and `COUNTER#tenant#name#shard`. Those without a
    tenant lack the second part.
    """
    kind, owner, *parts = key[4:].partition(b"\0\0")[0].decode(errors="replace").split("#")
    if owner != _escape(tenant) or not parts:
        return False
    if kind == "COUNTER":
        return len(parts) == 2
    return raw is not None and loads(raw).get("entity") == {"S": unquote(parts[0])}
