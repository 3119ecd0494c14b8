"""Keys for fields that are marked `Encrypted`."""

from .keyring import Keyring, generate_key

__all__ = ["Keyring", "generate_key"]
