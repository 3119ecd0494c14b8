"""SubjectKeys: a key for each data subject; without its key, a subject's data is unreadable."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from solotable.cache import TTLCache
from solotable.errors import NotConfigured, StoredDataError, SubjectForgotten

from .key_store import KeyRecord, KeyStore
from .keyring import Keyring, generate_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: The first byte of a ciphertext; a Keyring uses 1 and 2.
_OF_SUBJECT: Final = 3
_NAME_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEADER_BYTES: Final = 1 + _NAME_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The proof that a subject was forgotten. Keep it: after the key store is restored, `replay` it."""

    kind: str
    tenant: str | None
    subject: str
    #: When it was first forgotten.
    forgotten_at: datetime
    #: Whether the subject had a key, so that something may have been encrypted with it.
    had_key: bool
    #: What may still bring the key back, such as point-in-time recovery of the key table.
    warnings: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the receipt as JSON values."""
        return {**asdict(self), "forgotten_at": self.forgotten_at.isoformat(), "warnings": [*self.warnings]}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Receipt:
        """Return the receipt of JSON values; raise ValueError for other values."""
        try:
            kind, tenant, subject = row["kind"], row["tenant"], row["subject"]
            at = datetime.fromisoformat(row["forgotten_at"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a receipt of a forgotten subject: {error!r}") from error
        if not isinstance(kind, str) or not isinstance(subject, str) or not isinstance(tenant, str | None):
            raise ValueError("not a receipt of a forgotten subject: kind, tenant and subject are strings")
        return cls(
            kind=kind, tenant=tenant, subject=subject, forgotten_at=at, had_key=bool(row.get("had_key"))
        )


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """The cached state of a subject without a key."""

    at: datetime


class SubjectKeys:
    """Encrypts `Encrypted(keys, subject=...)` fields with a key for each subject, and destroys such keys.

    - `store` has the keys: a `KeyTable`, or another `KeyStore`.
    - `keyring` encrypts the keys in the store.
    - `kind` separates subjects with equal ids, such as customers and employees.
    - `cache_seconds` bounds how long a process uses a key that another process has destroyed.
    """

    def __init__(
        self,
        store: KeyStore,
        keyring: Keyring,
        *,
        kind: str = "person",
        cache_seconds: float = 30.0,
        max_cached: int = 10_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        given: Any = store
        if not isinstance(given, KeyStore):
            raise NotConfigured(
                f"SubjectKeys takes a KeyTable, or an object with the methods of KeyStore, got "
                f"{type(given).__name__}; write SubjectKeys(KeyTable(url), keyring)."
            )
        self.kind = kind
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._cache: TTLCache[str, AESGCM | _Forgotten] = TTLCache(
            ttl_seconds=cache_seconds, max_size=max_cached
        )

    def __repr__(self) -> str:
        return f"SubjectKeys({self._store!r}, kind={self.kind!r})"

    def encrypt(self, plaintext: bytes, context: bytes, tenant: str | None, subject: str) -> bytes:
        """Return the ciphertext of a value under the key of its subject; create the key of a new subject."""
        name = self._name(tenant, subject)
        found = self._cache.get(name) or self._ensure(tenant, subject)
        if isinstance(found, _Forgotten):
            raise _forgotten(self.kind, tenant, subject, found.at)
        header = bytes((_OF_SUBJECT,)) + bytes.fromhex(name)
        nonce = os.urandom(_NONCE_BYTES)
        return header + nonce + found.encrypt(nonce, plaintext, header + context)

    def decrypt(self, ciphertext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the value of a ciphertext; raise SubjectForgotten, or ValueError with the reason.

        A ciphertext of the keyring, from before the field had a subject, is decrypted too.
        """
        from cryptography.exceptions import InvalidTag

        name = _name_in(ciphertext)
        if name is None:
            return self._keyring.decrypt(ciphertext, context, tenant)
        found = self._cache.get(name) or self._load_one(name)
        if isinstance(found, _Forgotten):
            raise _forgotten(self.kind, tenant, name, found.at)
        header, rest = ciphertext[:_HEADER_BYTES], ciphertext[_HEADER_BYTES:]
        try:
            return found.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], header + context)
        except InvalidTag:
            raise ValueError(
                "it was changed, copied from another item, or its subject has another key now"
            ) from None

    def is_current(self, ciphertext: bytes) -> bool:
        """Return whether a ciphertext has a subject's key."""
        return _name_in(ciphertext) is not None

    def not_cached(self, ciphertexts: Iterable[bytes]) -> frozenset[str]:
        """Return the names of the keys that `decrypt` would read from the key store."""
        names = {name for each in ciphertexts if (name := _name_in(each)) is not None}
        return frozenset(name for name in names if self._cache.get(name) is None)

    def load(self, names: frozenset[str]) -> None:
        """Read keys into the cache, with few requests; `decrypt` raises the error of a damaged one."""
        generation = self._cache.generation
        for name, record in self._store.read(sorted(names)).items():
            try:
                self._cache.put(name, self._unwrap(name, record), generation=generation)
            except ValueError:
                continue

    def is_cached(self, tenant: str | None, subject: str) -> bool:
        """Return whether `encrypt` needs no request."""
        return self._cache.get(self._name(tenant, subject)) is not None

    def ensure(self, tenant: str | None, subject: str) -> None:
        """Read the key of a subject into the cache, or create it."""
        self._ensure(tenant, subject)

    def forget(self, subject: object, *, tenant: str | None) -> Receipt:
        """Destroy the key of a subject, for good. `tenant` is None for global entities.

        Values that were encrypted with it are None from now on, in every copy and backup of the data, and
        writing such a value raises SubjectForgotten. Repeat a call that was interrupted; other repetitions
        change nothing.
        """
        return self.forget_many([subject], tenant=tenant)[0]

    def forget_many(self, subjects: Iterable[object], *, tenant: str | None) -> list[Receipt]:
        """Destroy the keys of several subjects of a tenant; the key store is rewritten once."""
        return self._forget([(tenant, str(subject)) for subject in subjects])

    def forget_tenant(self, tenant: str) -> list[Receipt]:
        """Destroy the keys of all subjects of a tenant. Stop its writers first: they would create others."""
        found = self._store.records(tenant=tenant)
        return self._forget([(tenant, each.subject) for each in found if each.kind == self.kind])

    def replay(self, receipts: Iterable[Receipt]) -> list[Receipt]:
        """Forget the subjects of receipts again, after the key store was restored from an older copy."""
        return self._forget([(each.tenant, each.subject) for each in receipts if each.kind == self.kind])

    def forgotten(self) -> Iterator[Receipt]:
        """Yield the receipts of the forgotten subjects of this kind, the first one first."""
        return (_receipt(each) for each in self._store.forgotten() if each.kind == self.kind)

    def find(self, subject: object, *, tenant: str | None) -> KeyRecord | None:
        """Return the record of a subject in the key store; None if it never had a key."""
        name = self._name(tenant, str(subject))
        return self._store.read([name]).get(name)

    def of_tenant(self, tenant: str) -> Iterator[KeyRecord]:
        """Yield the records of a tenant's subjects of this kind."""
        return (each for each in self._store.records(tenant=tenant) if each.kind == self.kind)

    def rewrap(self) -> int:
        """Encrypt the stored keys with the first key of the keyring; return how many had a former one."""
        done = 0
        for record in self._store.all_records():
            if record.kind != self.kind or record.wrapped is None:
                continue
            if self._keyring.is_current(record.wrapped):
                continue
            context = _context(record.kind, record.tenant, record.subject)
            key = self._keyring.decrypt(record.wrapped, context, record.tenant)
            done += self._store.rewrap(record, self._keyring.encrypt(key, context, record.tenant))
        return done

    def _forget(self, subjects: Iterable[tuple[str | None, str]]) -> list[Receipt]:
        stored: list[KeyRecord] = []
        for tenant, subject in dict.fromkeys(subjects):
            name, now = self._name(tenant, subject), self._now()
            gone = KeyRecord(
                name=name,
                kind=self.kind,
                tenant=tenant,
                subject=subject,
                wrapped=None,
                created_at=now,
                forgotten_at=now,
            )
            # A subject without a key gets a record too, so that it cannot get a key later.
            found = self._store.add(gone)
            if found.forgotten_at is None:
                found = self._store.forget(replace(gone, created_at=found.created_at, had_key=True))
            stored.append(found)
            self._cache.forget(name)
        warnings = self._store.scrub() if stored else ()
        return [replace(_receipt(each), warnings=warnings) for each in stored]

    def _ensure(self, tenant: str | None, subject: str) -> AESGCM | _Forgotten:
        name = self._name(tenant, subject)
        generation = self._cache.generation
        record = self._store.read([name]).get(name)
        if record is None:
            wrapped = self._keyring.encrypt(generate_key(), _context(self.kind, tenant, subject), tenant)
            record = self._store.add(
                KeyRecord(
                    name=name,
                    kind=self.kind,
                    tenant=tenant,
                    subject=subject,
                    wrapped=wrapped,
                    created_at=self._now(),
                )
            )
        try:
            found = self._unwrap(name, record)
        except ValueError as error:
            raise StoredDataError(f"Cannot use the key of {self.kind} {subject!r}: {error}.") from None
        self._cache.put(name, found, generation=generation)
        return found

    def _load_one(self, name: str) -> AESGCM | _Forgotten:
        generation = self._cache.generation
        record = self._store.read([name]).get(name)
        if record is None:
            raise ValueError(
                f"the key {name} of its subject is not in {self._store!r}; restore the key store, or correct "
                f"its URL"
            )
        found = self._unwrap(name, record)
        self._cache.put(name, found, generation=generation)
        return found

    def _unwrap(self, name: str, record: KeyRecord) -> AESGCM | _Forgotten:
        """Return the usable form of a record, or raise ValueError if it is damaged."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if name != _digest(record.kind, record.tenant, record.subject):
            raise ValueError(f"the record {name} in the key store is of another subject")
        if record.forgotten_at is not None:
            return _Forgotten(record.forgotten_at)
        context = _context(record.kind, record.tenant, record.subject)
        try:
            if record.wrapped is None:
                raise ValueError("it has no key")
            return AESGCM(self._keyring.decrypt(record.wrapped, context, record.tenant))
        except ValueError as error:
            raise ValueError(f"the key of its subject cannot be decrypted: {error}") from None

    def _name(self, tenant: str | None, subject: str) -> str:
        return _digest(self.kind, tenant, subject)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _digest(kind: str, tenant: str | None, subject: str) -> str:
    # A list in JSON is injective: no two subjects have the same text.
    return sha256(json.dumps([kind, tenant, subject]).encode()).digest()[:_NAME_BYTES].hex()


def _context(kind: str, tenant: str | None, subject: str) -> bytes:
    return json.dumps(["solotable subject key", kind, tenant, subject]).encode()


def _name_in(ciphertext: bytes) -> str | None:
    """Return the name of the key of a ciphertext; None if it is not of a subject."""
    if ciphertext[:1] != bytes((_OF_SUBJECT,)) or len(ciphertext) < _HEADER_BYTES + _NONCE_BYTES + _TAG_BYTES:
        return None
    return ciphertext[1:_HEADER_BYTES].hex()


def _forgotten(kind: str, tenant: str | None, subject: str, at: datetime) -> SubjectForgotten:
    owner = "" if tenant is None else f" of tenant {tenant!r}"
    return SubjectForgotten(
        f"The {kind} {subject!r}{owner} was forgotten at {at.isoformat(timespec='seconds')}, so its personal "
        f"data cannot be stored; leave the fields None, or use another id for a new account.",
        tenant=tenant,
        subject=subject,
        forgotten_at=at,
    )


def _receipt(record: KeyRecord) -> Receipt:
    assert record.forgotten_at is not None
    return Receipt(
        kind=record.kind,
        tenant=record.tenant,
        subject=record.subject,
        forgotten_at=record.forgotten_at,
        had_key=record.had_key,
    )
