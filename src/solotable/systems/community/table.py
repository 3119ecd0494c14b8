"""The table of the community: one table without tenants, and seven indexes.

| index | partition | sort | has |
|---|---|---|---|
| GSI1 | type of entity, 4 shards | `created_at` | users, public neighbourhoods, receipts (S2.8) |
| GSI2 | slug, subdomain or handle | id | neighbourhoods, sites, users (S2.9) |
| GSI3 | user, or neighbourhood | time | memberships and their history (S2.10), sites of a neighbourhood |
| GSI4 | site | `created_at` | builds only (S2.11) |
| GSI5 | user | time | linked Bluesky accounts, and what a user did to memberships |
| GSI6 | name of a queue, 4 shards | time | what waits: builds, templates and files; accounts to purge |
| GSI7 | user and type, or site | `created_at` | records, and posts without their texts |

Corrections of the written design:

- C2.2: the store derives index keys on every write, so every user is listed. The partitions of GSI1 have
  shards. A private neighbourhood is not in GSI1.
- C2.3: a site is not in GSI4, and every build has a `created_at`.
- C2.4: an index does not guarantee uniqueness. Slugs, subdomains and handles have lock items.
- C2.8: the item `SITE#<site_id>` / `OWNER` names the owner of a site.
- C2.11: a post is an item.

Neighbourhoods are not tenants: a user is in several, and a user's sites belong to none. So the table has no
tenant (ADR 52).
"""

from __future__ import annotations

from solotable import Index, Table

#: Of each type of entity in GSI1, and of each queue. One takes 1,000 writes a second.
SHARDS = 4

#: What lists of builds show. DynamoDB: at most 100 names in all projections of a table together.
LISTED_BUILDS = (
    *("did", "site_id", "job_id", "status", "stage", "error", "error_stage", "content_count", "trigger"),
    *("created_at", "started_at", "completed_at", "version"),
)
#: What lists of records and posts show: no values and no texts.
LISTED_RECORDS = (
    *("did", "site_id", "type", "rkey", "cid", "linked_record", "title", "summary", "slug", "status", "tags"),
    *("published_at", "created_at", "updated_at", "version", "_deleted_at"),
)

community = Table(
    "community",
    tag="entity_type",
    ttl="expires_at",
    stream=True,
    indexes=[
        # All attributes: a user of an earlier schema version is upgraded when it is read.
        Index("GSI1"),
        Index("GSI2"),
        Index("GSI3"),
        Index("GSI4", projection=LISTED_BUILDS),
        Index("GSI5", projection=("did", "neighbourhood_id", "event_id", "at")),
        Index("GSI6", projection=("did", "site_id", "job_id", "token", "template_id")),
        Index("GSI7", projection=LISTED_RECORDS),
    ],
)
