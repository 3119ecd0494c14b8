"""The linter: checks over all entities of a table that no single declaration can make.

It reads declarations only. A finding says what can happen, with an example where there is one, and the fix.
"""

from __future__ import annotations

from solotable._entities.declare.table import Table

from .findings import CODES, ON_REQUEST, Finding, Severity
from .keys import check_keys, entity_keys
from .partitions import check_partitions
from .patterns import check_patterns
from .storage import check_attributes, check_indexes, check_nesting

__all__ = ["CODES", "ON_REQUEST", "Finding", "Severity", "lint"]


def lint(table: Table) -> list[Finding]:
    """Return all findings for a table, sorted by code and entity."""
    by_index = entity_keys(table)
    found = [*check_keys(by_index), *check_indexes(table, by_index), *check_nesting(table)]
    for plan in table.plans.values():
        found += check_partitions(plan)
        found += check_patterns(plan, by_index)
        found += check_attributes(plan)
    return sorted(dict.fromkeys(found), key=lambda each: (each.code, each.entity or "", each.message))
