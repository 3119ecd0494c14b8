"""The linter: proves over all entities of a table what no single declaration can show.

Only looks at what was declared: no table is opened, no item is read. A finding says what can happen,
with an example where there is one, and the way out.
"""

from __future__ import annotations

from solotable._entities.declare.table import Table

from .findings import CODES, ON_REQUEST, Finding, Severity
from .keys import judge_keys, places
from .partitions import judge_partitions
from .patterns import judge_patterns
from .storage import judge_attributes, judge_indexes, judge_nesting

__all__ = ["CODES", "ON_REQUEST", "Finding", "Severity", "lint"]


def lint(table: Table) -> list[Finding]:
    """Return everything that is to be said about a table, by code and then by entity."""
    by_index = places(table)
    found = [*judge_keys(by_index), *judge_indexes(table, by_index), *judge_nesting(table)]
    for plan in table.plans.values():
        found += judge_partitions(plan)
        found += judge_patterns(plan, by_index)
        found += judge_attributes(plan)
    return sorted(dict.fromkeys(found), key=lambda each: (each.code, each.entity or "", each.message))
