"""Offline-first clients: push, pull and poke of the Replicache protocol over synced entities.

An entity with `sync = Synced()` is replicated. `Mutators` are the functions that clients call by name,
`Sync` serves one database, and `solotable.web.replicache` has its routes.
"""

from solotable.errors import SyncUnavailable

from .mutators import MutationContext, Mutators, Rejected
from .service import SpaceVersion, Sync

__all__ = ["MutationContext", "Mutators", "Rejected", "SpaceVersion", "Sync", "SyncUnavailable"]
