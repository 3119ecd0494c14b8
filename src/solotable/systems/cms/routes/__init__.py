"""The CMS over HTTP: thin routers over the services, one module for each part of the API.

A route names the roles that it requires (`access`), takes the store of the right tenant (`dependencies`),
calls a service and returns its result. The services enforce the rules of the data, not the routes.
"""

from .admin import tenants, users, visitors
from .editing import catalogue, comments, content, files, graph, versions
from .site import pages, previews, routing

ROUTERS = (
    pages.router,
    content.router,
    versions.router,
    previews.router,
    routing.router,
    comments.router,
    visitors.router,
    files.router,
    files.bytes_router,
    catalogue.router,
    tenants.router,
    users.router,
    graph.router,
)

__all__ = ["ROUTERS"]
