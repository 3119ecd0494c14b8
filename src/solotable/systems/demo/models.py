"""The tables of all systems, for commands and the console: `-m solotable.systems.demo.models`."""

from __future__ import annotations

from solotable.systems.cms.table import cms
from solotable.systems.community.table import community
from solotable.systems.limiter.table import limiter
from solotable.systems.portal.app import ALL_TABLES
from solotable.systems.surveys import surveyor

content_registry, notifications, subscriptions, events, *_, users = ALL_TABLES

__all__ = [
    "cms",
    "community",
    "content_registry",
    "events",
    "limiter",
    "notifications",
    "subscriptions",
    "surveyor",
    "users",
]
