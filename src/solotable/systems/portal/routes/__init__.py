"""The portal's API under /v1: thin routers over the services, in envelopes.

A route names the role that it requires and its rate limit (`access`), calls a service and returns its result.
The services enforce the rules of the data, not the routes.
"""

from . import admin, content, files, inbox, telemetry

ROUTERS = (content.router, files.router, inbox.router, telemetry.router, admin.router)

__all__ = ["ROUTERS"]
