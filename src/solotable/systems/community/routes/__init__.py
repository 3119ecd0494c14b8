"""The community's API: thin routers over the services.

A route names who it is for (`requests.access`), calls a service and returns its result. The services enforce
the rules of the data: roles in a neighbourhood, the owner of a site, what is private.
"""

from . import accounts, admin, auth, health, neighbourhoods, sites, templates, users

ROUTERS = (
    health.router,
    auth.router,
    users.router,
    accounts.router,
    neighbourhoods.router,
    sites.router,
    templates.router,
    admin.router,
)

__all__ = ["ROUTERS"]
