"""The eight tables before the migration, with the 18 indexes that their queries need (S4.2).

The written design names the tables and "potentially 15+" indexes without listing them. A survey is one item
with everything that was entered as a JSON text in `content`.
"""

from __future__ import annotations

from solotable import Index, Table


def _index(name: str, partition: str, sort: str | None) -> Index:
    return Index(name, partition=partition, sort=sort)


_BY_TENANT = _index("by_tenant", "tenant_id", "updated")
_BY_SYNC = _index("by_sync", "sync_key", "id")

tenants = Table("Tenants", partition="id", sort=None)
surveys = Table(
    "Surveys", partition="id", sort=None, indexes=[_BY_TENANT, _BY_SYNC, _index("by_owner", "owner", "id")]
)
sections = Table("Sections", partition="id", sort=None, indexes=[_BY_TENANT, _BY_SYNC])
elements = Table(
    "Elements",
    partition="id",
    sort=None,
    indexes=[_BY_TENANT, _BY_SYNC, _index("by_section", "section_id", "order")],
)
components = Table(
    "Components",
    partition="id",
    sort=None,
    indexes=[_BY_TENANT, _BY_SYNC, _index("by_element", "element_id", "order")],
)
phrases = Table(
    "Phrases",
    partition="id",
    sort=None,
    indexes=[_BY_TENANT, _BY_SYNC, _index("by_type", "type_key", "name")],
)
images = Table("ImageMetadata", partition="id", sort=None, indexes=[_BY_TENANT, _BY_SYNC])
documents = Table("DocumentRecord", indexes=[_BY_TENANT, _index("by_owner", "owner", "updated")])

OLD_TABLES = (tenants, surveys, sections, elements, components, phrases, images, documents)
