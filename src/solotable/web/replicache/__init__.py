"""Routes of the Replicache protocol: POST push, POST pull, and GET poke as server-sent events."""

from .router import replicache_router

__all__ = ["replicache_router"]
