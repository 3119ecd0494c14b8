"""The limiter over HTTP: thin routers over an AsyncLimiter, one module for each part of the API.

A route says who may ask (`access`) and takes the limiter of the right namespace (`scope`).
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
