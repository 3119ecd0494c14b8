"""The limiter's one table. Its tenants are namespaces; every item in it is flat (S1.1)."""

from __future__ import annotations

from solotable import Table
from solotable._entities.declare.table import Index

limiter = Table(
    "Limiter",
    tenant="namespace",
    ttl="expires",
    stream=True,
    flat=True,
    indexes=[Index("GSI1")],
)
