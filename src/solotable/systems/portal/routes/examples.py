"""Examples of every body in the OpenAPI document; a test finds bodies without one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel

from solotable.systems.portal.entities.content import Content, ContentSummary
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.entities.notifications import Notification, notification_id
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.events.analytics import DayFigures, Overview, PeriodFigures, UserFigures
from solotable.systems.portal.identity.directory import Profile
from solotable.systems.portal.services.expiry import ExpiryReport
from solotable.systems.portal.services.files import DownloadTicket, UploadTicket

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
_AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
_BEFORE = date(2026, 11, 15)
_KEY = f"content/{_ID}/source/{_ID}-prices.pdf"


def _json(model: BaseModel) -> Any:
    return model.model_dump(mode="json")


_CONTENT = Content(
    content_id=_ID,
    status="Approved",
    title="Compass pricing, explained on one page",
    summary="The three plans, and what counts as a seat.",
    product_suite="Compass",
    product_concept="Billing",
    owner_user_id="ann",
    tags=["pricing"],
    last_updated=_AT,
    status_changed_at=_AT,
    revision=2,
)
_PROFILE = _json(
    Profile(user_id="ann", email="ann@example.com", name="Ann", role="Contributor", enabled=True, active=True)
)

EXAMPLES: dict[str, Any] = {
    "Content": _json(_CONTENT),
    "ContentSummary": _json(ContentSummary.of(_CONTENT)),
    "ContentDraft": {
        "title": "Compass pricing, explained on one page",
        "product_suite": "Compass",
        "tags": ["pricing"],
    },
    "ContentPatch": {"summary": "The three plans, and what counts as a seat."},
    "UploadDraft": {
        "content_id": _ID,
        "file_name": "prices.pdf",
        "content_type": "application/pdf",
        "size_bytes": 90210,
    },
    "UploadTicket": _json(
        UploadTicket(
            url=f"/storage/{_KEY}?expires=1794822000&signature=5f1d",
            key=_KEY,
            headers={"Content-Type": "application/pdf"},
            expires_at=_AT,
        )
    ),
    "AttachDraft": {"key": _KEY, "file_name": "prices.pdf", "content_type": "application/pdf"},
    "DownloadTicket": _json(
        DownloadTicket(
            url=f"/storage/{_KEY}?expires=1794822000&signature=5f1d",
            key=_KEY,
            file_name="prices.pdf",
            content_type="application/pdf",
            expires_at=_AT,
        )
    ),
    "Notification": _json(
        Notification(
            user_id="ben",
            notification_id=notification_id("approved", _ID, "ben", _AT),
            type="success",
            title="New enablement content available",
            message="Compass pricing, explained on one page",
            created_at=_AT,
            content_id=_ID,
        )
    ),
    "Unread": {"unread": 3},
    "Marked": {"marked": 3},
    "Subscription": _json(
        Subscription(
            user_id="ben", subscription_id=_ID, product_suite="Compass", tags=["pricing"], created_at=_AT
        )
    ),
    "SubscriptionDraft": {"product_suite": "Compass", "tags": ["pricing"]},
    "EventDraft": {"event_name": "content_view", "content_id": _ID},
    "ActivityEvent": _json(
        ActivityEvent(event_id=_ID, event_name="content_view", user_id="ben", content_id=_ID, timestamp=_AT)
    ),
    "Overview": _json(
        Overview(
            days=1,
            current=PeriodFigures(first=_AT.date(), last=_AT.date(), events=2, views=2, active_users=1),
            previous=PeriodFigures(first=_BEFORE, last=_BEFORE),
            by_day=[DayFigures(day=_AT.date(), events=2, views=2, active_users=1)],
        )
    ),
    "ContentReport": {"days": 30, "rows": [{"content_id": _ID, "events": 2, "views": 2, "downloads": 0}]},
    "UserReport": {
        "days": 30,
        "rows": [_json(UserFigures(user_id="ben", events=2, views=2, active_days=1, last_day=_AT.date()))],
    },
    "Profile": _PROFILE,
    "InvitationDraft": {"email": "cy@example.com", "name": "Cy", "role": "Viewer"},
    "Invitation": {"user": _PROFILE, "link": f"{_ID.lower()}.Zm9yIGFuIGV4YW1wbGU"},
    "NewRole": {"role": "Approver"},
    "ExpiryReport": _json(ExpiryReport(scanned=2, expired=2)),
}
