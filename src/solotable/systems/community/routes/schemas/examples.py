"""Examples of every body in the OpenAPI document; a test finds bodies without one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from solotable.systems.community.entities.accounts import DeletionReceipt
from solotable.systems.community.entities.builds import BuildSummary
from solotable.systems.community.entities.neighbourhoods import MembershipEvent, NeighbourhoodSettings
from solotable.systems.community.entities.sites import Post, PostSummary, Site
from solotable.systems.community.entities.users import ProfileImages
from solotable.systems.community.membership_lists import MembershipView
from solotable.systems.community.recovery import ExportReport, RestoreReport
from solotable.systems.community.services.invitations import InvitationTicket
from solotable.systems.community.services.memberships import MemberView
from solotable.systems.community.services.neighbourhoods import NeighbourhoodView
from solotable.systems.community.services.users import OwnProfile, Profile

from .bodies import (
    BuildView,
    CustomTemplateView,
    DeletionTicket,
    InvitationSummary,
    JoinResult,
    LogLine,
    Me,
    Prefill,
    SiteDocument,
    TemplatePreview,
    TemplateView,
)

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
_DID = "did:plc:abc123"
_AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
_DIGEST = "5f1d" * 16


def _json(model: BaseModel) -> Any:
    return model.model_dump(mode="json")


_PROFILE = Profile(
    did=_DID,
    bluesky_handle="alice.bsky.social",
    display_name="Alice",
    bio="Community organizer",
    profile_images=ProfileImages(),
    created_at=_AT,
)
_OWN = OwnProfile(**dict(_PROFILE), email="alice@example.com", email_verified=True, version=3)
_NEIGHBOURHOOD = NeighbourhoodView(
    id=_ID,
    name="Downtown Collective",
    slug="downtown-collective",
    privacy="public",
    description="A neighbourhood for downtown residents",
    creator_did=_DID,
    settings=NeighbourhoodSettings(),
    member_count=42,
    created_at=_AT,
    version=7,
    role="member",
)
_MEMBER = JoinResult(neighbourhood_id=_ID, did=_DID, role="member", status="active", joined_at=_AT)
_SITE = Site(
    did=_DID,
    site_id=_ID,
    title="My Blog",
    template="blog",
    subdomain="alice",
    config={"author": "Alice", "accent_color": "#0f6b6b"},
    created_at=_AT,
    version=1,
)
_POST = Post(
    did=_DID,
    site_id=_ID,
    rkey="3l7f2kq2abc2d",
    title="The heron is back",
    slug="the-heron-is-back",
    body="It stood on the lock gate at seven.",
    published_at=_AT,
    created_at=_AT,
    version=1,
)
_BUILD = BuildView.of(
    BuildSummary(
        site_id=_ID,
        job_id=_ID,
        status="completed",
        content_count=14,
        created_at=_AT,
        started_at=_AT,
        completed_at=_AT + timedelta(seconds=2),
    )
)
_SETTINGS = {"allow_site_creation": True, "require_email_verification": False}

EXAMPLES: dict[str, Any] = {
    "Health": {"status": "ok"},
    "LoginResult": {
        "token": "eyJhbGci...",
        "expires_at": _AT.isoformat(),
        "did": _DID,
        "deleted": False,
    },
    "Me": _json(Me(did=_DID, deleted=False, profile=_OWN)),
    "Profile": _json(_PROFILE),
    "OwnProfile": _json(_OWN),
    "ProfilePatch": {"display_name": "Alice", "bio": "Community organizer"},
    "EmailAddress": {"email": "alice@example.com"},
    "EmailToken": {"token": "eyJhbGci..."},
    "DidList": {"dids": [_DID]},
    "DeletionTicket": _json(
        DeletionTicket(receipt_id="5f1d" * 8, requested_at=_AT, due_at=_AT + timedelta(days=30))
    ),
    "DeletionReceipt": _json(
        DeletionReceipt(receipt_id="5f1d" * 8, requested_at=_AT, purged_at=_AT, removed={"sites": 1})
    ),
    "NeighbourhoodView": _json(_NEIGHBOURHOOD),
    "NeighbourhoodDraft": {
        "name": "Downtown Collective",
        "description": "A neighbourhood for downtown residents",
        "settings": _SETTINGS,
    },
    "NeighbourhoodPatch": {"description": "A neighbourhood for downtown residents"},
    "NeighbourhoodSettings": _SETTINGS,
    "MemberView": _json(
        MemberView(did=_DID, role="member", status="active", joined_at=_AT, profile=_PROFILE)
    ),
    "MembershipView": _json(
        MembershipView(neighbourhood=_NEIGHBOURHOOD, role="member", status="active", joined_at=_AT)
    ),
    "MembershipEvent": _json(
        MembershipEvent(
            neighbourhood_id=_ID, event_id=_ID, at=_AT, kind="joined", user_did=_DID, actor_did=_DID
        )
    ),
    "JoinResult": _json(_MEMBER),
    "InvitationCode": {"code": "Zm9yIGFuIGV4YW1wbGU"},
    "InvitationDraft": {"role": "member"},
    "InvitationTicket": _json(InvitationTicket(code="Zm9yIGFuIGV4YW1wbGU", expires_at=_AT)),
    "InvitationSummary": _json(
        InvitationSummary(digest=_DIGEST, role="member", created_by=_DID, created_at=_AT, expires_at=_AT)
    ),
    "MemberInvitation": {"did": _DID},
    "MemberChange": {"role": "admin"},
    "Site": _json(_SITE),
    "SiteDraft": {"title": "My Blog", "template": "blog", "subdomain": "alice"},
    "SitePatch": {"title": "My Blog"},
    "SiteDocument": _json(SiteDocument(site=_json(_SITE), posts=[_json(_POST)])),
    "Prefill": _json(Prefill(template="blog", config={"author": "Alice"})),
    "Post": _json(_POST),
    "PostSummary": _json(PostSummary.model_validate(_POST, from_attributes=True)),
    "PostDraft": {"title": "The heron is back", "body": "It stood on the lock gate at seven."},
    "PostPatch": {"title": "The heron is back"},
    "BuildView": _json(_BUILD),
    "LogLine": _json(LogLine(number=10000, level="info", stage="fetch", text="15 posts", created_at=_AT)),
    "TemplateView": _json(
        TemplateView(
            template_id="blog",
            version="1.0.0",
            title="Blog",
            description="Posts, newest first.",
            layout="blog",
            content_types=["post"],
        )
    ),
    "TemplatePreview": _json(
        TemplatePreview(template_id="blog", files=["index.html"], html="<!doctype html>")
    ),
    "TemplateManifest": {
        "manifest": {"name": "harbour-log", "version": "1.0.0", "title": "Harbour log", "layout": "blog"}
    },
    "CustomTemplateView": _json(
        CustomTemplateView(template_id=_ID, name="harbour-log", status="pending", problems=[], created_at=_AT)
    ),
    "ExportReport": _json(
        ExportReport(day="2026-11-16", location="exports/2026-11-16", items=1204, existed=False)
    ),
    "RestoreRequest": {"table": "community-restored", "at": "2026-11-16T09:30:00Z"},
    "RestoreReport": _json(RestoreReport(table="community-restored", status="CREATING", restored_at=_AT)),
}
