"""The four tables of the portal, with the key attributes of the written design (S3.1).

Corrections of the written design:

- C3.2: the store derives index keys on every write.
- C3.3: an item without a product has no attribute for the index, so the index leaves it out.
- C3.4: the parts of a composed key are escaped, and a suite alone has an index.
- C3.5: the store aliases attribute names with a `#`, and reserved ones.
- C3.8: the partitions of a status and of a day have shards.
- C3.9: users of events, subscribers of a product and content that expires are found by indexes.

The portal serves one organisation, so the tables have no tenant. Separate installations by the prefix of
their tables.
"""

from __future__ import annotations

from solotable import Index, Table

#: What lists of content show. DynamoDB: at most 100 names in all projections of a table together.
LISTED = (
    *("status", "title", "summary", "product_suite", "product_concept", "audience_role", "lifecycle_stage"),
    *("owner_user_id", "tags", "version", "last_updated", "expiry_date", "file_name", "size_bytes"),
    "revision",
)

content_registry = Table(
    "content_registry",
    partition="content_id",
    sort=None,
    stream=True,
    indexes=[
        Index("by_status_updated", partition="GSI1PK", sort="GSI1SK", projection=LISTED),
        Index("by_product", partition="GSI2PK", sort="GSI2SK", projection=LISTED),
        Index("by_suite", partition="product_suite", sort="last_updated", projection=LISTED),
        Index("by_owner", partition="owner_user_id", sort="last_updated", projection=LISTED),
        Index("by_expiry", partition="GSI5PK", sort="GSI5SK", projection=()),
    ],
)

notifications = Table(
    "notifications",
    partition="user_id",
    sort="created_at#notification_id",
    ttl="expires_at",
    stream=True,
)

subscriptions = Table(
    "subscriptions",
    partition="user_id",
    sort="subscription_id",
    ttl="expires_at",
    indexes=[Index("by_match", partition="GSI1PK", sort="GSI1SK")],
)

events = Table(
    "events",
    partition="date_bucket",
    sort="ts#event_id",
    ttl="expires_at",
    stream=True,
    indexes=[Index("by_user", partition="user_id", sort="ts#event_id")],
)

#: `connect(url, *TABLES)` opens the portal.
TABLES = (content_registry, notifications, subscriptions, events)
