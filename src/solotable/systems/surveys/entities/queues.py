"""What waits for its synchronisation, and what was changed lately, whatever its class (S4.16, S4.17).

C4.6: every write derives these index keys, so no change is missing from them. C4.7: a time is not a cursor
for synchronisation: two items may have the same, and deletes do not appear. It is for people who look.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from solotable import Query

from .stored import SyncStatus
from .surveys import SurveyComponent, SurveyElement, SurveyMeta, SurveySection

Synced = SurveyComponent | SurveyElement | SurveySection | SurveyMeta


def waiting(status: SyncStatus) -> Query[Synced]:
    """Return the items that are pending, or failed, the longest waiting first (Q9)."""
    return SurveyMeta.waiting(status)


def changed_since(since: datetime) -> Query[Any]:
    """Return the items of a tenant that were changed at a time or later, the oldest change first (Q10)."""
    return SurveyMeta.changed_since(since)
