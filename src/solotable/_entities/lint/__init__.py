"""The linter: checks of a table's declarations that need all of its entities.

It reads declarations and no items. A finding says what can happen, shows an example if it has one, and names
the fix.
"""

from __future__ import annotations

from solotable._entities.declare.table import Table

from .findings import CODES, ON_REQUEST, Finding, Severity
from .keys import check_keys, entity_keys
from .partitions import check_partitions
from .patterns import check_patterns
from .storage import check_attributes, check_deletion, check_indexes, check_nesting, check_stamps

__all__ = ["CODES", "ON_REQUEST", "Finding", "Severity", "lint"]


def lint(table: Table) -> list[Finding]:
    """Return all findings for a table, sorted by code and entity."""
    by_index = entity_keys(table)
    findings = [*check_keys(by_index), *check_indexes(table, by_index), *check_nesting(table)]
    for plan in table.plans.values():
        findings += check_partitions(plan)
        findings += check_patterns(plan, by_index)
        findings += check_attributes(plan)
        findings += check_deletion(plan)
        findings += check_stamps(plan)
    return sorted(dict.fromkeys(findings), key=lambda each: (each.code, each.entity or "", each.message))
