"""KeyStore: what `SubjectKeys` needs of a store for the keys of data subjects, and the records in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The key of one data subject, or the proof that it was destroyed."""

    #: A digest of kind, tenant and subject.
    name: str
    kind: str
    tenant: str | None
    subject: str
    #: The subject's key, encrypted with a key of the keyring; None after it was destroyed.
    wrapped: bytes | None
    created_at: datetime
    forgotten_at: datetime | None = None
    #: Whether the subject had a key when it was forgotten.
    had_key: bool = False


@runtime_checkable
class KeyStore(Protocol):
    """Stores the records of subject keys; `KeyTable` is one. Threads share it, and its methods may block.

    Keep it out of the backups of the data: a key that comes back from a backup makes the data readable again.
    """

    def read(self, names: Sequence[str]) -> dict[str, KeyRecord]:
        """Return the records with these names, as the last write left them; missing ones are left out."""
        ...

    def add(self, record: KeyRecord) -> KeyRecord:
        """Store a record unless one has its name; return the stored one."""
        ...

    def rewrap(self, record: KeyRecord, wrapped: bytes) -> bool:
        """Replace the encrypted key of a record; return False if it has changed since it was read."""
        ...

    def forget(self, record: KeyRecord) -> KeyRecord:
        """Replace a record by one without a key; return the stored one, which keeps its first time."""
        ...

    def records(self, *, tenant: str | None) -> Iterator[KeyRecord]:
        """Yield the records of a tenant; None: those of global entities."""
        ...

    def all_records(self) -> Iterator[KeyRecord]:
        """Yield every record."""
        ...

    def forgotten(self) -> Iterator[KeyRecord]:
        """Yield the records of forgotten subjects, the first one first."""
        ...

    def scrub(self) -> tuple[str, ...]:
        """Remove the bytes of destroyed keys from the medium; return what may still bring them back."""
        ...
