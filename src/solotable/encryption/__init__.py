"""Keys for fields that are marked `Encrypted`: shared ones, and a key for each data subject."""

from .key_store import KeyRecord, KeyStore
from .key_table import KeyTable
from .keyring import Keyring, generate_key
from .subject_keys import Receipt, SubjectKeys

__all__ = ["KeyRecord", "KeyStore", "KeyTable", "Keyring", "Receipt", "SubjectKeys", "generate_key"]
