"""The table of the CMS: its partitions, and three indexes whose partitions hold the tenant.

Corrections of the written design:

- C0.9: with a bare type or status as their partition, `GSI_Type` and `GSI_Status` would hold all tenants in
  one partition: tenants could read each other, and the installation could do 1000 writes a second. Their
  partitions begin with the tenant.
- C0.2: with a ProjectionExpression DynamoDB still charges for whole items. Both indexes hold metadata only
  (`LISTED`), and lists read only the index.
- C0.10: an index does not guarantee uniqueness. `GSI_Domain` finds the tenant of a host; the lock of a
  unique field guarantees that there is only one. That index holds tenants only.

It rejects entities whose partition is neither `TENANT#{tenant_id}` nor `SYSTEM` (S0.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable import Index, Table
from solotable.errors import DeclarationError

if TYPE_CHECKING:
    from solotable.flow import Plan

OF_TENANT = "TENANT#{tenant_id}"
SYSTEM = "SYSTEM"

#: The attributes of lists: no blocks, no e-mail addresses and no secrets.
LISTED = (
    "tenant_id",
    "id",
    "node_id",
    "product_id",
    "context_id",
    "signal_id",
    "lead_id",
    "comment_id",
    "message_id",
    "page_id",
    "page_title",
    "at",
    "title",
    "name",
    "label",
    "slug",
    "domain",
    "kind",
    "status",
    "author_id",
    "author_name",
    "body",
    "source",
    "price",
    "currency",
    "version",
    "publish_at",
    "created",
    "updated",
)


class CmsTable(Table):
    """A table whose entities are in a tenant's partition or in the system's."""

    def register(self, plan: Plan) -> None:
        """Register an entity, or raise DeclarationError for its partition."""
        partition = plan.partition_template
        if partition not in (OF_TENANT, SYSTEM):
            raise DeclarationError(
                f"{plan.name}.key has the partition {partition!r}; "
                f"table {self.name!r} allows {OF_TENANT!r} and {SYSTEM!r}."
            )
        super().register(plan)


cms = CmsTable(
    "Cms",
    tenant="tenant_id",
    ttl="expires_at",
    stream=True,
    indexes=[
        Index(
            "GSI_Domain", partition="GSI_DomainPK", sort=None, projection=("id", "name", "domain", "status")
        ),
        Index("GSI_Type", projection=LISTED),
        Index("GSI_Status", projection=LISTED),
    ],
)
