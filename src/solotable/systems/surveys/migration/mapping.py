"""The mapping from the eight tables to one (S4.2, S4.25 to S4.27)."""

from __future__ import annotations

from solotable.migrations.mapping import Mapping, Source
from solotable.systems.surveys.table import surveyor

from .file_rules import add_file_rules
from .library_rules import add_library_rules
from .old_tables import OLD_TABLES
from .survey_rules import add_survey_rules


def survey_mapping(*, tenant_id: str | None = None) -> Mapping:
    """Return the mapping of all tenants, or of one tenant to move out."""
    where = None if tenant_id is None else (lambda item: _tenant_of(item) == tenant_id)
    mapping = Mapping(
        surveyor, *(Source(table.name, key=table.key_names, where=where) for table in OLD_TABLES)
    )
    add_file_rules(mapping)
    add_survey_rules(mapping)
    add_library_rules(mapping)
    return mapping


def _tenant_of(item: dict[str, object]) -> object:
    """Return the tenant of an old item; an item of Tenants is one."""
    return item.get("tenant_id", item.get("id"))
