"""Route the reads and writes of an application to the sides of a migration.

Open a `Router` or an `AsyncRouter` instead of one store. It reads the routing record of the migration at
most once a second.
"""

from .async_routers import AsyncRoutedStore, AsyncRouter
from .dispatch.routing import Routing, SideName
from .mirror import MirrorReport
from .routers import RoutedStore, Router
from .shared import RouterOptions, RouterStatus
from .sides import EntitySide, StoreSide

__all__ = [
    "AsyncRoutedStore",
    "AsyncRouter",
    "EntitySide",
    "MirrorReport",
    "RoutedStore",
    "Router",
    "RouterOptions",
    "RouterStatus",
    "Routing",
    "SideName",
    "StoreSide",
]
