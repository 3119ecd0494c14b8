"""The expiry job: content whose expiry date has passed becomes Expired.

It reads the index `by_expiry`, which has only content that can expire (C3.9). A second run finds nothing.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from solotable import Database
from solotable.errors import SolotableError, VersionConflict
from solotable.systems.errors import unwrap_failure
from solotable.systems.portal.entities.content import Content

from .lifecycle import plan_change

#: How often the job reads content again that another caller changes at the same time.
_ATTEMPTS = 5
_log = logging.getLogger("solotable.portal")


class ExpiryReport(BaseModel):
    """What a run of the job did: `skipped` was due in the index and is not any more."""

    model_config = ConfigDict(frozen=True)

    scanned: int = 0
    expired: int = 0
    skipped: int = 0
    errors: int = 0


def expire_due(db: Database, now: datetime) -> ExpiryReport:
    """Expire all content that is due; an error of one leaves the others alone."""
    counts = {"scanned": 0, "expired": 0, "skipped": 0, "errors": 0}
    for due in db.all(Content.due(now), unknown="skip"):
        counts["scanned"] += 1
        try:
            counts[_expire(db, due.content_id, now)] += 1
        except SolotableError:
            _log.exception("cannot expire content %s", due.content_id)
            counts["errors"] += 1
    return ExpiryReport(**counts)


def _expire(db: Database, content_id: str, now: datetime) -> Literal["expired", "skipped"]:
    """Expire content unless it changed since the index was read; repeat after a conflict."""
    for attempt in range(_ATTEMPTS):
        found = db.get(Content, content_id=content_id, consistent=True)
        if found is None or found.status == "Expired":
            return "skipped"
        if found.expiry_date is None or found.expiry_date > now:
            return "skipped"
        planned = plan_change(found, "expire", now)
        try:
            with unwrap_failure(), db.transaction() as tx:
                planned.write(tx)
        except VersionConflict:
            if attempt + 1 == _ATTEMPTS:
                raise
            continue
        return "expired"
    raise AssertionError("the last attempt returns or raises")
