"""Blob: the value of an `Offloaded` field. Its storage does the I/O; this module only calls it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self

from solotable.errors import DataError, StoredDataError

if TYPE_CHECKING:
    from solotable._entities.declare.field_storage import BlobStorage

#: The media type of a blob that was made from text.
TEXT: Final = "text/plain; charset=utf-8"


class Blob:
    """An immutable value of bytes, which is kept in memory, in an item or in a storage.

    `Blob(data)` and `Blob.of(text)` make new ones. A blob that was read from a table may have only its size
    and checksum; `read()` or `await aread()` loads the content once and checks it.
    """

    __slots__ = ("_data", "_place", "_sha256", "_size", "_where", "media_type")

    #: Lets a field of this type without `Offloaded(...)` be rejected, without an import of this module.
    __solotable_blob__ = True

    def __init__(self, data: bytes | bytearray | memoryview, *, media_type: str | None = None) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise DataError(f"Blob() takes bytes, got {type(data).__name__}; use Blob.of() for text.")
        self._data: bytes | None = bytes(data)
        self._size = len(self._data)
        self._sha256: str | None = None
        self._place: tuple[BlobStorage, str] | None = None
        self._where = "A blob"
        #: The media type, such as `image/png`; None if it is not known.
        self.media_type = media_type

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a blob of text in UTF-8; `read().decode()` returns the text."""
        return cls(text.encode(), media_type=TEXT)

    @classmethod
    def reference(
        cls,
        *,
        sha256: str,
        size: int,
        media_type: str | None,
        place: tuple[BlobStorage, str] | None,
        where: str,
    ) -> Self:
        """Return a blob whose content is in a storage; `where` names its field in errors."""
        found = cls(b"", media_type=media_type)
        found._data, found._size, found._sha256 = None, size, sha256
        found._place, found._where = place, where
        return found

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._size

    @property
    def sha256(self) -> str:
        """The SHA-256 checksum of the content, in hexadecimal digits."""
        if self._sha256 is None:
            self._sha256 = sha256(self._data or b"").hexdigest()
        return self._sha256

    @property
    def is_offloaded(self) -> bool:
        """Whether a storage has the content."""
        return self._place is not None

    @property
    def is_loaded(self) -> bool:
        """Whether the content is in memory, so that `read()` needs no storage."""
        return self._data is not None

    def read(self) -> bytes:
        """Return the content; load it from the storage on the first call, and check it."""
        if self._data is None:
            storage, name = self._location()
            self._data = self._checked(storage.get(name), name)
        return self._data

    async def aread(self) -> bytes:
        """Return the content like `read`, without blocking the event loop."""
        if self._data is None:
            storage, name = self._location()
            self._data = self._checked(await storage.aget(name), name)
        return self._data

    def save(self, storage: BlobStorage, name: str) -> None:
        """Store the content under a name, or refresh the time of the stored object.

        A store calls it before it writes the item, so that no item refers to a missing object.
        """
        if self._place == (storage, name) and storage.touch(name, self.media_type):
            return
        storage.put(name, self.read(), self.media_type)
        self._place = (storage, name)

    async def asave(self, storage: BlobStorage, name: str) -> None:
        """Store the content like `save`, without blocking the event loop."""
        if self._place == (storage, name) and await storage.atouch(name, self.media_type):
            return
        await storage.aput(name, await self.aread(), self.media_type)
        self._place = (storage, name)

    def _location(self) -> tuple[BlobStorage, str]:
        if self._place is None:
            raise DataError(
                f"{self._where} cannot be loaded, because its tenant is not known; "
                f"read the whole item, or add the key's fields to the view."
            )
        return self._place

    def _checked(self, data: bytes | None, name: str) -> bytes:
        if data is None:
            raise StoredDataError(
                f"{self._where} refers to the object {name!r}, which its storage does not have; restore the "
                f"object from a backup or a former version of the bucket, or set the field again."
            )
        if len(data) != self._size or sha256(data).hexdigest() != self._sha256:
            raise StoredDataError(
                f"{self._where} refers to the object {name!r}, whose content does not match its checksum "
                f"({len(data):,} bytes, expected {self._size:,}); restore the object, or set the field again."
            )
        return data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blob):
            return NotImplemented
        mine, theirs = (self._size, self.media_type), (other._size, other.media_type)
        return mine == theirs and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __repr__(self) -> str:
        kind = "" if self.media_type is None else f", media_type={self.media_type!r}"
        return f"<Blob of {self._size:,} bytes, sha256={self.sha256}{kind}>"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls._described, when_used="json-unless-none"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        if handler.mode == "validation":
            return {"type": "string"}
        names = {"sha256": {"type": "string"}, "size": {"type": "integer"}}
        return {"type": "object", "properties": {**names, "media_type": {"type": ["string", "null"]}}}

    @classmethod
    def _validated(cls, value: Any) -> Blob:
        if isinstance(value, Blob):
            return value
        if isinstance(value, str):
            return cls.of(value)
        if isinstance(value, bytes):
            return cls(value)
        raise ValueError(f"it takes a Blob, bytes or text, got {type(value).__name__}")

    @staticmethod
    def _described(value: Blob) -> dict[str, Any]:
        return {"sha256": value.sha256, "size": value.size, "media_type": value.media_type}
