"""Codec of offloaded fields, and the names of their objects. Sends and stores nothing.

A small blob is in the item: text as S, bytes as B, with another media type as M. A large one is a reference,
an M with its checksum and size. The object's name follows from the table, the tenant and the checksum, so
that an item cannot refer to an object of another tenant.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from solotable._entities.codecs.containers import Codec, FieldSite, cannot_decode
from solotable._entities.declare.field_storage import BlobStorage, Offloaded
from solotable._expressions.ast import Assign, Const, IfNotExists, Update
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .blob import TEXT, Blob

_PLAIN: Final = re.compile(rb"[a-z0-9_-]")
#: Longer names of tenants are hashed: a file name has at most 255 bytes.
_LONGEST_TENANT: Final = 200
_REFERENCE: Final = ({"sha256", "size"}, {"sha256", "size", "type"})


class BlobValue(dict[str, Any]):
    """A DynamoDB value with its blob, so that a write can store the content first."""

    __slots__ = ("blob",)

    def __init__(self, value: AttributeValue, blob: Blob) -> None:
        super().__init__(value)
        self.blob = blob

    def __deepcopy__(self, memo: Any) -> BlobValue:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBlobs:
    """Finds the objects of the offloaded fields of one entity."""

    #: The entity's name in messages.
    owner: str
    #: The declared name of the table.
    table: str
    #: The markers by attribute name.
    markers: Mapping[str, Offloaded]
    #: Returns the tenant of an item; None for a global entity.
    tenant_of: Callable[[Item], str | None]

    def locate(self, item: Item) -> Item:
        """Return a stored item whose references have their blobs."""
        found: Item = {}
        for wire, marker in self.markers.items():
            value = item.get(wire)
            if value is not None and type(value) is not BlobValue and is_reference(value):
                found[wire] = self._referring(wire, marker, value, lambda: self.tenant_of(item))
        return {**item, **found} if found else item

    def stored(
        self, item: Item, update: Update | None, tenant: str | None
    ) -> Iterator[tuple[Blob, BlobStorage, str]]:
        """Yield the blobs that a write refers to, with the storage and the name of each object."""
        values = [(wire, item[wire]) for wire in self.markers if wire in item]
        for action in () if update is None else update.actions:
            if isinstance(action, Assign) and action.path[0] in self.markers:
                match action.operand:
                    case Const(value) | IfNotExists(_, Const(value)):
                        values.append((str(action.path[0]), value))
        for wire, value in values:
            if is_reference(value):
                marker = self.markers[wire]
                located = self._referring(wire, marker, value, lambda: tenant)
                yield located.blob, marker.storage, object_name(self.table, tenant, located.blob.sha256)

    def check_stored(self, item: Item) -> None:
        """Raise DataError for an encoded item that refers to an object which no storage has yet."""
        for wire in self.markers:
            value = item.get(wire)
            if isinstance(value, BlobValue) and not value.blob.is_offloaded:
                raise DataError(
                    f"{self.owner}.to_item() does not store {self.owner}.{wire}, which is too large for the "
                    f"item; put the entity with a store, or raise inline_bytes."
                )

    def _referring(
        self, wire: str, marker: Offloaded, value: AttributeValue, tenant: Callable[[], str | None]
    ) -> BlobValue:
        if isinstance(value, BlobValue):
            return value
        members: Any = value["M"]
        digest = str(members["sha256"]["S"])
        try:
            place = (marker.storage, object_name(self.table, tenant(), digest))
        except (KeyError, DataError):
            place = None  # A view without the key does not tell the tenant.
        kind = members.get("type")
        blob = Blob.reference(
            sha256=digest,
            size=int(members["size"]["N"]),
            media_type=None if kind is None else kind["S"],
            place=place,
            where=f"{self.owner}.{wire}",
        )
        return BlobValue(value, blob)


def is_reference(value: AttributeValue) -> bool:
    """Return whether a value refers to an object."""
    members: Any = value.get("M")
    return members is not None and set(members) in _REFERENCE


def offloaded_codec(site: FieldSite, marker: Offloaded) -> Codec:
    """Return the codec of an offloaded field."""
    where, largest = site.where, marker.inline_bytes

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, Blob):
            raise DataError(f"{where} takes a Blob, got {type(value).__name__}; write Blob(...).")
        if value.is_loaded and not value.is_offloaded and value.size <= largest:
            return _inline(value.read(), value.media_type)
        members: dict[str, Any] = {"sha256": {"S": value.sha256}, "size": {"N": str(value.size)}}
        if value.media_type is not None:
            members["type"] = {"S": value.media_type}
        return BlobValue({"M": members}, value)

    def decode(value: AttributeValue) -> Blob:
        if isinstance(value, BlobValue):
            return value.blob
        try:
            if "S" in value:
                return Blob.of(value["S"])
            if "B" in value:
                return Blob(b64decode(value["B"]))
            members = value["M"]
            if is_reference(value):
                return Blob.reference(
                    sha256=members["sha256"]["S"],
                    size=int(members["size"]["N"]),
                    media_type=members.get("type", {}).get("S"),
                    place=None,
                    where=where,
                )
            return Blob(b64decode(members["data"]["B"]), media_type=members["type"]["S"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise cannot_decode(where, value, ValueError("it is not a stored blob")) from error

    return Codec(None, encode, decode)


def _inline(data: bytes, media_type: str | None) -> AttributeValue:
    if media_type == TEXT:
        try:
            return {"S": data.decode()}
        except UnicodeDecodeError:
            pass  # The caller claims a wrong media type; keep the bytes.
    content = {"B": b64encode(data).decode("ascii")}
    return content if media_type is None else {"M": {"data": content, "type": {"S": media_type}}}


def object_prefix(table: str, tenant: str | None = None) -> str:
    """Return the prefix of the objects of a table, or of one of its tenants."""
    return f"{_segment(table)}/" if tenant is None else f"{_segment(table)}/tenant/{_segment(tenant)}/"


def object_name(table: str, tenant: str | None, digest: str) -> str:
    """Return the name of an object: equal contents of one tenant have one name.

    >>> object_name("Shop", "acme", "ab12")
    '%53hop/tenant/acme/ab12'
    """
    prefix = f"{_segment(table)}/global/" if tenant is None else object_prefix(table, tenant)
    return prefix + digest


def _segment(text: str) -> str:
    """Return a text as a name that is safe in files and URLs, also where case does not matter."""
    data = text.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if _PLAIN.match(bytes((byte,))) else f"%{byte:02X}" for byte in data)
    return name if len(name) <= _LONGEST_TENANT else f"~{sha256(data).hexdigest()}"
