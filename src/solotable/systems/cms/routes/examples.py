"""Examples of every body in the OpenAPI document; a test finds bodies without one."""

from __future__ import annotations

from typing import Any

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
_AT = "2026-11-15T09:30:00Z"
_BLOCKS = [{"type": "heading", "text": "Who we are"}, {"type": "text", "text": "A small team."}]
_SUMMARY = {
    "node_id": _ID,
    "slug": "/about-us",
    "title": "About us",
    "kind": "page",
    "status": "published",
    "created": _AT,
    "updated": _AT,
    "version": 2,
}
_COMMENT = {
    "page_id": _ID,
    "at": _AT,
    "comment_id": _ID,
    "status": "approved",
    "author_name": "Ben",
    "body": "Well said.",
}
_MESSAGE = {
    "lead_id": "9f2c",
    "at": _AT,
    "message_id": _ID,
    "label": "a***@example.org",
    "name": "Ann",
    "body": "Do you deliver?",
}
_PRODUCT = {
    "title": "Mug",
    "description": "Holds tea.",
    "price": "12.50",
    "currency": "EUR",
    "status": "active",
}
_CONTEXT = {"title": "Voice", "kind": "brand", "text": "Short sentences."}
_SIGNAL = {"title": "A question that comes often", "source": "support", "status": "new", "data": {}}
_FILE = {"name": "logo.png", "mime": "image/png", "size": 2048}
_USER = {"email": "eve@acme.example", "name": "Eve", "role": "EDITOR"}
_TENANT = {"id": "acme", "name": "Acme", "domain": "acme.example"}
_CONSENT = {"visitor_id": "v-81", "choices": {"analytics": False}, "policy_version": "2026-01"}
_STORED = {"tenant_id": "acme", "version": 1}

_AUDIT = {
    "at": _AT,
    "event_id": _ID,
    "verb": "updated",
    "actor": {"id": "u-17", "name": "Eve", "email": "eve@acme.example"},
    "target": {"entity": "Content", "key": {"node_id": _ID}, "title": "About us"},
    "snapshot": {"title": "About us", "status": "published"},
    "changes": {"status": {"before": "draft", "after": "published"}},
    "request_id": "r-1",
}

EXAMPLES: dict[str, Any] = {
    "AccessChange": {"enabled": False},
    "UploadTarget": {"id": _ID, "upload_url": None},
    "Asset": {**_STORED, **_FILE, "asset_id": _ID, "status": "stored", "alt": "Our logo", "created": _AT},
    "AuditSummary": _AUDIT,
    "AssetSummary": {**_FILE, "asset_id": _ID, "status": "stored", "alt": "Our logo", "version": 2},
    "Comment": {**_STORED, **_COMMENT, "page_title": "About us", "author_email": "ben@example.org"},
    "CommentDetail": {**_COMMENT, "page_title": "About us", "author_email": "ben@example.org"},
    "CommentSummary": _COMMENT,
    "Consent": {**_CONSENT, "tenant_id": "acme", "at": _AT, "consent_id": _ID},
    "ConsentSummary": {**_CONSENT, "at": _AT, "consent_id": _ID},
    "Content": {**_SUMMARY, "tenant_id": "acme", "description": "Who we are", "blocks": _BLOCKS, "seo": {}},
    "ContentDraft": {"title": "About us", "status": "published", "blocks": _BLOCKS},
    "ContentPatch": {"title": "About the team", "slug": "/team"},
    "ContentSummary": _SUMMARY,
    "Context": {**_STORED, **_CONTEXT, "context_id": _ID},
    "ContextChange": {"text": "Short sentences, and few."},
    "ContextDraft": _CONTEXT,
    "Confirmation": {"confirm": "acme"},
    "ContextSummary": {"context_id": _ID, "title": "Voice", "kind": "brand", "version": 1},
    "Erasure": {
        **_STORED,
        "at": _AT,
        "erasure_id": _ID,
        "subject": "lead",
        "digest": "9f2c",
        "removed": {"leads": 1},
    },
    "ErasureSummary": {
        "at": _AT,
        "erasure_id": _ID,
        "subject": "lead",
        "digest": "9f2c",
        "removed": {"leads": 1},
    },
    "GraphNode": {
        "node_id": _ID,
        "slug": "/about-us",
        "title": "About us",
        "kind": "page",
        "status": "published",
        "links": [_ID],
        "broken": ["/gone"],
        "incoming": 2,
        "orphan": False,
    },
    "Health": {"status": "ok"},
    "NewPreview": {"hours": 24},
    "PreviewLink": {"path": "/about-us?preview=kX3v9", "expires": _AT},
    "Lead": {
        **_STORED,
        "lead_id": "9f2c",
        "email": "ann@example.org",
        "label": "a***@example.org",
        "status": "new",
    },
    "LeadChange": {"status": "contacted"},
    "LeadDetail": {
        "lead_id": "9f2c",
        "email": "ann@example.org",
        "label": "a***@example.org",
        "status": "new",
    },
    "MessageSummary": _MESSAGE,
    "Moderation": {"page_id": _ID, "at": _AT, "comment_id": _ID, "status": "approved"},
    "PathRedirect": {"path": "/team", "to": "/about-us"},
    "NewAsset": {**_FILE, "alt": "Our logo"},
    "NewComment": {
        "page_id": _ID,
        "author_name": "Ben",
        "author_email": "ben@example.org",
        "body": "Well said.",
    },
    "NewConsent": _CONSENT,
    "NewErasure": {"email": "ann@example.org"},
    "NewLead": {"email": "ann@example.org", "name": "Ann", "source": "newsletter"},
    "NewMessage": {"email": "ann@example.org", "name": "Ann", "message": "Do you deliver?"},
    "NewResource": {"name": "guide.pdf", "mime": "application/pdf", "size": 90210, "gate": "lead"},
    "NewUser": _USER,
    "Product": {**_STORED, **_PRODUCT, "product_id": _ID},
    "ProductChange": {"price": "11.00"},
    "ProductDraft": _PRODUCT,
    "ProductSummary": {
        "product_id": _ID,
        "slug": "mug",
        "title": "Mug",
        "price": "12.50",
        "currency": "EUR",
        "status": "active",
        "version": 1,
    },
    "PublicPage": {
        "id": _ID,
        "path": "/about-us",
        "title": "About us",
        "kind": "page",
        "description": "Who we are",
        "blocks": _BLOCKS,
        "seo": {},
        "updated": _AT,
    },
    "Receipt": {"received": True},
    "Resource": {**_STORED, **_FILE, "resource_id": _ID, "status": "stored", "gate": "lead", "created": _AT},
    "ResourceSummary": {**_FILE, "resource_id": _ID, "status": "stored", "gate": "lead", "created": _AT},
    "VersionRestore": {"version": 1},
    "RouteSummary": {"slug": "/about-us", "node_id": _ID, "version": 1},
    "Signal": {**_STORED, **_SIGNAL, "signal_id": _ID},
    "SignalChange": {"status": "done"},
    "SignalDraft": _SIGNAL,
    "SignalSummary": {"signal_id": _ID, "title": _SIGNAL["title"], "source": "support", "status": "new"},
    "TenantChange": {"domain": "www.acme.example"},
    "TenantDraft": _TENANT,
    "TenantErasure": {"tenant": "acme", "removed": 4711, "done": True, "unknown": 0},
    "TenantSummary": {**_TENANT, "status": "active"},
    "User": {**_STORED, **_USER, "user_id": "u-17", "enabled": True},
    "UserSummary": {**_USER, "user_id": "u-17", "enabled": True, "version": 1},
    "UserChange": {"role": "TENANT_ADMIN"},
    "VersionDifference": {
        "before": 1,
        "after": 2,
        "changes": [{"field": "title", "before": "About", "after": "About us"}],
    },
    "PublicSettings": {"paths": ["/mail/from", "/theme"]},
    "VersionSummary": {"version": 1, "title": "About", "slug": "/about", "status": "draft", "updated": _AT},
}
#: For bodies without a model.
SETTINGS = {"theme": "light", "mail": {"from": "hello@acme.example", "api_key": "********"}}


def add_settings_examples(document: dict[str, Any]) -> None:
    """Add examples to the bodies without a model."""
    for operation in document["paths"].get("/settings", {}).values():
        _set_example(operation.get("requestBody", {}))
        _set_example(operation["responses"]["200"])
    _set_example(
        document["paths"].get("/settings/secrets", {}).get("get", {}).get("responses", {}).get("200", {})
    )


def _set_example(body: dict[str, Any]) -> None:
    for content in body.get("content", {}).values():
        content["example"] = SETTINGS
