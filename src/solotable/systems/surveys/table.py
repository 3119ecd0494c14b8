"""The table of the surveys: one partition a tenant, and five indexes whose partitions hold the tenant.

Corrections of the written design:

- C4.1, C4.2: everything of a survey sorts next to its metadata (`SURVEY#<id>`, then `SURVEY#<id>#...`), so
  one range reads it whole, and no other survey. Lists of surveys read `GSI1`, which holds metadata only.
- C4.4: the partition of every index begins with the tenant.
- C4.6: the store derives index keys on every write.
- C4.11: snapshots of the configuration are outside the range of their survey, so reading a survey does not
  read them.
- C4.16: an index holds what its lists show and not the whole item, so a change of a note writes no entry.
  `GSI3` holds only items that wait for their synchronisation, in the order in which they began to wait.
"""

from __future__ import annotations

from solotable import Index, Table

OF_TENANT = "TENANT#{tenant_id}"
#: S4.16: what waits for its synchronisation. Only items with a `waiting_since` are in this index.
WAITING = "TENANT#{tenant_id}#STATUS#{sync_status}"

#: What lists of surveys, of the library, of images and of documents show. DynamoDB: at most 100 names in all
#: projections of a table together.
LISTED = (
    *("tenant_id", "id", "survey_id", "section_id", "element_id", "component_id", "phrase_id", "image_id"),
    *("document_id", "name", "title", "address", "client_name", "survey_date", "status", "owner"),
    *("section_count", "completed_sections", "order", "description", "materials", "created_by"),
    *("element_count", "component_count"),
    *("kind", "text", "level2", "element_ids", "component_ids", "material_ids"),
    *(
        "caption",
        "mime",
        "size",
        "created",
        "updated",
        "version",
        "sync_status",
        "sync_error",
        "waiting_since",
    ),
)
#: What lists of the parts of one parent show, and the photos of a survey.
LISTED_PARTS = (
    *("tenant_id", "survey_id", "section_id", "element_id", "component_id", "config_id", "image_id"),
    *("part_kind", "part_id", "name", "order", "condition", "created"),
)
#: What lists of one user's surveys and documents show.
LISTED_OWNED = (
    *("tenant_id", "survey_id", "document_id", "title", "address", "client_name", "survey_date", "status"),
    *("section_count", "completed_sections", "owner", "name", "mime", "size", "updated", "version"),
)

surveyor = Table(
    "SurveyorData",
    tenant="tenant_id",
    ttl="ttl",
    stream=True,
    indexes=[
        Index("GSI1", projection=LISTED),
        Index("GSI2", projection=LISTED_PARTS),
        Index("GSI3", projection=("tenant_id", "sync_status", "sync_error", "version")),
        Index("GSI4", projection=("tenant_id", "version")),
        Index("GSI5", projection=LISTED_OWNED),
    ],
)
