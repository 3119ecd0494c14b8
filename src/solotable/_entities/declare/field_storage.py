"""Markers of fields that are stored in a form DynamoDB cannot look into: compressed or encrypted."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Store a field encrypted with `keys`, bound to its table, entity, primary key and attribute.

    - `allow_plaintext=True` reads values that were stored before the field was marked; remove it after a
      backfill.
    - `name` binds values to this name instead of the attribute's; give the former name after a rename.
    """

    keys: Cipher
    allow_plaintext: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.keys, Cipher):
            raise DeclarationError(
                f"Encrypted(keys) takes a Keyring, or an object with encrypt(), decrypt() and is_current(), "
                f"got {type(self.keys).__name__}; write Encrypted(Keyring(...))."
            )
