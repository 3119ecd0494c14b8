"""The routes of the HTTP API, one module per part.

A route declares who may call it (`access`) and gets the limiter of its namespace (`dependencies`).
"""

from . import administration, dashboard, leases, namespaces, reports

ROUTERS = (
    leases.router,
    dashboard.router,
    administration.router,
    reports.router,
    namespaces.router,
)

__all__ = ["ROUTERS"]
