"""Markers of fields whose values DynamoDB cannot look into: compressed, encrypted or offloaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol, runtime_checkable

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

_BEST_LEVEL = 9


@dataclass(frozen=True, slots=True)
class Compressed:
    """Store a field compressed with zlib if that is smaller, and plain otherwise.

    - `level` is zlib's level, from 1 (fast) to 9 (small).
    - `max_bytes` is the largest value before compression; a larger one is neither stored nor expanded.

    Values that were stored before the field was marked are decoded as they are.
    """

    level: int = 6
    max_bytes: int = 4_194_304

    def __post_init__(self) -> None:
        if not 1 <= self.level <= _BEST_LEVEL:
            raise DeclarationError(f"Compressed(level={self.level!r}): a level is 1 (fast) to 9 (small).")
        if self.max_bytes < 1:
            raise DeclarationError(f"Compressed(max_bytes={self.max_bytes!r}) must be at least 1.")


@runtime_checkable
class Cipher(Protocol):
    """Encrypts the values of `Encrypted` fields; `solotable.encryption.Keyring` is one.

    `context` names the place of a value: decrypt() must fail if it is not the context of encrypt().
    `tenant` is the entity's tenant, or None for a global entity.
    """

    def encrypt(self, plaintext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the ciphertext of a value."""
        ...

    def decrypt(self, ciphertext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the value of a ciphertext; raise ValueError with the reason if it cannot be decrypted."""
        ...

    def is_current(self, ciphertext: bytes) -> bool:
        """Return whether encrypt() would use the same key."""
        ...


@runtime_checkable
class SubjectCipher(Protocol):
    """Encrypts values with a key for each data subject; `solotable.encryption.SubjectKeys` is one.

    `encrypt` creates the key of a new subject. `encrypt` and `decrypt` raise SubjectForgotten after the key
    was destroyed. Methods may block. Stores call `load` and `ensure` in a thread to fill the cache.
    """

    def encrypt(self, plaintext: bytes, context: bytes, tenant: str | None, subject: str) -> bytes:
        """Return the ciphertext of a value of a subject."""
        ...

    def decrypt(self, ciphertext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the value of a ciphertext; raise ValueError with the reason if it cannot be decrypted."""
        ...

    def is_current(self, ciphertext: bytes) -> bool:
        """Return whether a ciphertext has a subject's key."""
        ...

    def not_cached(self, ciphertexts: Iterable[bytes]) -> frozenset[str]:
        """Return the names of the keys that `decrypt` would read from the key store."""
        ...

    def load(self, names: frozenset[str]) -> None:
        """Read keys into the cache, with few requests."""
        ...

    def is_cached(self, tenant: str | None, subject: str) -> bool:
        """Return whether `encrypt` needs no request."""
        ...

    def ensure(self, tenant: str | None, subject: str) -> None:
        """Read the key of a subject into the cache, or create it."""
        ...


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Store a field encrypted with `keys`, bound to its table, entity, primary key and attribute.

    - `subject` names the field with the id of the data subject, the person whom the value is about. `keys` is
      then a `SubjectKeys`, with a key for each subject. After the subject is forgotten, the field is None.
    - `allow_plaintext=True` reads values that were stored before the field was marked; remove it after a
      backfill.
    - `name` binds values to this name instead of the attribute's; give the former name after a rename.
    """

    keys: Cipher | SubjectCipher
    allow_plaintext: bool = False
    name: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        per_subject = isinstance(self.keys, SubjectCipher)
        if per_subject and self.subject is None:
            raise DeclarationError(
                "Encrypted(SubjectKeys) needs the field with the subject's id; write "
                'Encrypted(keys, subject="user_id").'
            )
        if self.subject is not None and not per_subject:
            raise DeclarationError(
                f"Encrypted(subject={self.subject!r}) takes a SubjectKeys, got {type(self.keys).__name__}; "
                f"write Encrypted(SubjectKeys(...), subject={self.subject!r})."
            )
        if not isinstance(self.keys, Cipher):
            raise DeclarationError(
                f"Encrypted(keys) takes a Keyring, or an object with encrypt(), decrypt() and is_current(), "
                f"got {type(self.keys).__name__}; write Encrypted(Keyring(...))."
            )


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a storage, as `BlobStorage.list` returns it."""

    name: str
    size: int
    #: When it was stored or touched.
    modified: datetime


@runtime_checkable
class BlobStorage(Protocol):
    """Stores the contents of `Offloaded` fields as objects; `solotable.blobs` has three.

    Names have lower-case letters, digits and `%_-~/`. The async methods must not block the event loop;
    `solotable.blobs.BlockingStorage` adds them to a class with the other methods.
    """

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""
        ...

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object durably, or replace it; its time is now."""
        ...

    def touch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object to now; return whether it exists."""
        ...

    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Delete an object unless it was stored or touched after a time; return whether it was deleted."""
        ...

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose names start with a prefix, which is empty or ends with a slash.

        The caller may delete objects before it takes the next one.
        """
        ...

    async def aget(self, name: str) -> bytes | None:
        """Return the content of an object like `get`."""
        ...

    async def aput(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object like `put`."""
        ...

    async def atouch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object like `touch`."""
        ...


@dataclass(frozen=True, slots=True)
class Offloaded:
    """Store a `Blob` in `storage` if it has more than `inline_bytes`, and in the item otherwise.

    The item refers to the object by its checksum. `solotable.jobs.collect_blobs` deletes objects to which no
    item refers any more.
    """

    storage: BlobStorage
    inline_bytes: int = 32_768

    def __post_init__(self) -> None:
        if not isinstance(self.storage, BlobStorage):
            raise DeclarationError(
                f"Offloaded(storage) takes a FolderStorage, a MemoryStorage, an S3Storage, or an object with "
                f"the methods of BlobStorage, got {type(self.storage).__name__}."
            )
        if self.inline_bytes < 0:
            raise DeclarationError(f"Offloaded(inline_bytes={self.inline_bytes!r}) must be at least 0.")
