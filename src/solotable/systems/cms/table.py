"""The one table of the CMS: which partitions there are, and the three indexes with the tenant inside.

Corrections of the written design, and why:

- C0.9: `GSI_Type` and `GSI_Status` by the bare type or status would put all tenants into one partition: they
  could read each other, and 1000 writes a second would be the limit of the whole installation. Their
  partitions begin with the tenant.
- C0.2: a ProjectionExpression makes a list small, not cheap: DynamoDB charges for the whole items. Both
  indexes hold metadata only (`LISTED`), and lists read nothing but the index.
- C0.10: an index is a lookup, not a guarantee. `GSI_Domain` finds the tenant of a host; that there is only
  one is the lock of a unique field. Only tenants are in that index.

Refused here: an entity whose partition is neither `TENANT#{tenant_id}` nor `SYSTEM` (S0.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable import Table
from solotable._entities.declare.table import Index
from solotable._entities.keys.layout import TemplateLayout
from solotable.errors import DeclarationError

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

OF_TENANT = "TENANT#{tenant_id}"
SYSTEM = "SYSTEM"

#: What lists show. No block, no e-mail address and no secret is among it.
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
    "created",
    "updated",
)


class CmsTable(Table):
    """A table that takes in entities of a tenant's partition, or of the system's, and no others."""

    def register(self, plan: Plan) -> None:
        """Take in an entity, or refuse its partition."""
        side = plan.primary.partition
        text = side.template.text if isinstance(side, TemplateLayout) else None
        if text not in (OF_TENANT, SYSTEM):
            raise DeclarationError(
                f"{plan.name}.key has the partition {text!r}; "
                f"in table {self.name!r} it is {OF_TENANT!r} or {SYSTEM!r}."
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
