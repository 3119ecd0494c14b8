"""The surveys over HTTP: thin routers over the services, one module for each part of the API.

A route names the roles that it requires (`access`), calls a service and returns its result. The services
enforce the rules of the data, not the routes.
"""

from . import admin, files, library, migration, sync
from .survey import parts, reports, surveys

ROUTERS = (
    surveys.router,
    parts.router,
    reports.router,
    reports.public_router,
    library.router,
    files.router,
    files.bytes_router,
    admin.router,
    migration.router,
    sync.router,
)

__all__ = ["ROUTERS"]
