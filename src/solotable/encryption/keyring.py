"""Keyring: AES-256-GCM keys for `Encrypted` fields, with rotation and keys derived for each tenant.

It needs the `cryptography` package, which the extra `solotable[encryption]` installs.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from solotable.errors import NotConfigured
from solotable.fork_safe import new_lock

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_LONGEST_ID: Final = 64
_SHARED, _OF_TENANT = 1, 2
#: Ciphers that a keyring caches; with per_tenant=True there is one for each tenant and key.
_MOST_CIPHERS: Final = 1_024
#: A provider is called again for an unknown key id, but not more often than this.
_RELOAD_SECONDS: Final = 30.0

Keys = Mapping[str, bytes]


class Keyring:
    """Keys by id: the first one encrypts, all of them decrypt.

    - `keys` maps ids to keys of 32 bytes, or is a function that returns such a mapping. The function is
      called on first use, and again when a value names a key that is not known yet.
    - `per_tenant=True` derives a key for each tenant with HKDF-SHA256, so that no two tenants share one.

    To rotate, put the new key first and run a backfill; it encrypts stored values again.
    """

    def __init__(self, keys: Keys | Callable[[], Keys], *, per_tenant: bool = False) -> None:
        try:
            import cryptography  # noqa: F401 - fails now instead of at the first write
        except ImportError as error:
            raise NotConfigured(
                "Keyring needs the package cryptography; install solotable[encryption]."
            ) from error
        self._provider = keys if callable(keys) else None
        self._per_tenant = per_tenant
        self._lock = new_lock()
        self._ciphers: OrderedDict[tuple[str, str | None, bool], AESGCM] = OrderedDict()
        self._keys: dict[str, bytes] = {}
        #: When a value with an unknown key last caused a reload.
        self._reloaded_at: float | None = None
        if not callable(keys):
            self._keys = _checked(keys)

    def __repr__(self) -> str:
        return f"Keyring({len(self._keys)} keys)"

    def encrypt(self, plaintext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the ciphertext of a value under the first key, with a random nonce."""
        key_id = self._first()
        name = key_id.encode()
        header = bytes((_OF_TENANT if self._per_tenant else _SHARED, len(name))) + name
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._cipher(key_id, tenant, per_tenant=self._per_tenant)
        return header + nonce + cipher.encrypt(nonce, plaintext, header + context)

    def decrypt(self, ciphertext: bytes, context: bytes, tenant: str | None) -> bytes:
        """Return the value of a ciphertext, or raise ValueError."""
        from cryptography.exceptions import InvalidTag

        key_id, start = _key_id(ciphertext)
        if key_id not in self._keys and not (self._reload() and key_id in self._keys):
            raise ValueError(
                f"it was encrypted with the key {key_id!r}, which the keyring does not have; add it again"
            )
        cipher = self._cipher(key_id, tenant, per_tenant=ciphertext[0] == _OF_TENANT)
        header, nonce = ciphertext[:start], ciphertext[start : start + _NONCE_BYTES]
        try:
            return cipher.decrypt(nonce, ciphertext[start + _NONCE_BYTES :], header + context)
        except InvalidTag:
            raise ValueError(
                f"it was changed, copied from another item, or encrypted with another key {key_id!r}"
            ) from None

    def is_current(self, ciphertext: bytes) -> bool:
        """Return whether a ciphertext uses the first key, and a tenant's key if `per_tenant` is set."""
        key_id, _ = _key_id(ciphertext)
        return key_id == self._first() and (ciphertext[0] == _OF_TENANT) == self._per_tenant

    def reload(self) -> None:
        """Call the provider of the keys again, such as after a rotation."""
        if self._provider is not None:
            self._load(self._provider)

    def _first(self) -> str:
        if not self._keys and self._provider is not None:
            self._load(self._provider)
        return next(iter(self._keys))

    def _reload(self) -> bool:
        """Call the provider for an unknown key, but not for each of many; return whether it was called."""
        if self._provider is None:
            return False
        now = time.monotonic()
        if self._reloaded_at is not None and now - self._reloaded_at < _RELOAD_SECONDS:
            return False
        self._reloaded_at = now
        self._load(self._provider)
        return True

    def _load(self, provider: Callable[[], Keys]) -> None:
        keys = _checked(provider())
        with self._lock:
            self._ciphers.clear()
            self._keys = keys

    def _cipher(self, key_id: str, tenant: str | None, *, per_tenant: bool) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        place = (key_id, tenant if per_tenant else None, per_tenant)
        with self._lock:
            found = self._ciphers.get(place)
            if found is not None:
                self._ciphers.move_to_end(place)
                return found
            key = self._keys[key_id]
            found = self._ciphers[place] = AESGCM(_derive(key, tenant) if per_tenant else key)
            if len(self._ciphers) > _MOST_CIPHERS:
                self._ciphers.popitem(last=False)
        return found


def generate_key() -> bytes:
    """Return a random key of 32 bytes."""
    return os.urandom(_KEY_BYTES)


def _checked(keys: Keys) -> dict[str, bytes]:
    if not keys:
        raise NotConfigured("Keyring has no keys; pass at least one: Keyring({'2026-01': key}).")
    if not isinstance(keys, Mapping):
        raise NotConfigured(f"Keyring takes a mapping of ids to keys, got {type(keys).__name__}.")
    key_id: Any
    key: Any
    for key_id, key in keys.items():
        if not isinstance(key_id, str) or not isinstance(key, bytes | bytearray | memoryview):
            raise NotConfigured(
                f"Keyring takes ids that are strings and keys of {_KEY_BYTES} bytes, got a key "
                f"of type {type(key).__name__} for {key_id!r}; decode a key that is text, such as base64."
            )
        if not key_id or len(key_id.encode()) > _LONGEST_ID:
            raise NotConfigured(f"The key id {key_id!r} must have 1 to {_LONGEST_ID} bytes.")
        if len(key) != _KEY_BYTES:
            raise NotConfigured(
                f"The key {key_id!r} must have {_KEY_BYTES} bytes, got {len(key)}; "
                f"make one with generate_key()."
            )
    return {key_id: bytes(key) for key_id, key in keys.items()}


def _key_id(ciphertext: bytes) -> tuple[str, int]:
    """Return the key id of a ciphertext, and the position of its nonce."""
    start = 2 + (ciphertext[1] if len(ciphertext) > 1 else 0)
    if len(ciphertext) < start + _NONCE_BYTES + _TAG_BYTES or ciphertext[0] not in (_SHARED, _OF_TENANT):
        raise ValueError("it is not a value of a Keyring")
    return ciphertext[2:start].decode("utf-8", "replace"), start


def _derive(key: bytes, tenant: str | None) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = b"solotable global" if tenant is None else b"solotable tenant " + tenant.encode()
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=info).derive(key)
