"""What every item of the surveys has: a tenant, a version, times, a synchronisation status (S4.13)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from solotable import FROM_SCOPE, Created, Entity, Updated, Version
from solotable.systems.surveys.formats.order_keys import MAX_LENGTH

SyncStatus = Literal["synced", "pending", "failed"]
#: Ids may come from a client that works offline; the key escapes them.
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._:-]+$")]
Order = Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, pattern=r"^[0-9A-Za-z]*[1-9A-Za-z]$")]
#: C4.12: one list of conditions for all parts of a survey.
Condition = Literal["Excellent", "Good", "Fair", "Poor", "N/A"]
#: The space of a survey and its parts: their writes have one order, and a user sees all of it or nothing.
SPACE = "survey/{survey_id}"
#: What clients that work offline do not get: they have their own queue, and the server's is not theirs.
NOT_SENT = ("sync_status", "waiting_since", "sync_error")


class Stored(Entity):
    """An item with a version, times and a status of its synchronisation."""

    tenant_id: str = FROM_SCOPE
    sync_status: SyncStatus = "synced"
    #: Since when an item is pending or failed; None for one that is synced.
    waiting_since: datetime | None = None
    sync_error: Annotated[str, Field(max_length=1000)] | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0
