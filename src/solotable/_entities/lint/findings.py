"""Findings of the linter, their severities, and the list of all codes."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from solotable._values.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

Severity = Literal["error", "warning", "note"]

#: Every code and what it is about; docs/reference/lint.md explains each.
CODES: Final = {
    "ST100": "a declaration is rejected",
    "ST101": "two entities can have the same primary key",
    "ST102": "a pattern's range reaches another entity's items",
    "ST103": "two tenants can share a partition",
    "ST104": "a global entity can lie in a tenant's partition",
    "ST105": "an entity lies among the store's own items",
    "ST201": "few partitions take all the traffic",
    "ST202": "all writes of one time go to one partition",
    "ST301": "an index is used by no entity",
    "ST302": "an index key may be absent altogether",
    "ST303": "rows from an index are fetched from the table",
    "ST401": "an attribute's name is a reserved word",
    "ST402": "nested values in a flat table",
    "ST501": "a pattern cannot be served",
    "ST502": "a pattern says nothing of itself",
    "ST902": "a pattern cannot be proved",
}
#: Codes that are reported only when they are selected by name.
ON_REQUEST: Final = frozenset({"ST401"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: what can happen, and how to fix it."""

    code: str
    severity: Severity
    #: The names of the table and the entity; None for a finding about the table.
    table: str
    entity: str | None
    #: `file:line`, if known.
    where: str | None
    message: str


def found(
    code: str,
    severity: Severity,
    message: str,
    *,
    plan: Plan | None = None,
    table: str = "",
    at: Callable[..., Any] | None = None,
) -> Finding:
    """Return a finding about an entity, a function of it, or a table."""
    return Finding(
        code=code,
        severity=severity,
        table=plan.table.name if plan else table,
        entity=plan.name if plan else None,
        where=_of_function(at) if at else _of_class(plan.entity) if plan else None,
        message=message,
    )


def _of_function(function: Callable[..., Any]) -> str | None:
    code = getattr(function, "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _of_class(entity: type) -> str | None:
    """Return where a class is defined; `inspect` would parse the whole file for each of them."""
    file = getattr(sys.modules.get(entity.__module__), "__file__", None)
    if file is None:
        return None
    definition = re.compile(rf"\s*class\s+{re.escape(entity.__name__)}\b")
    for number, line in enumerate(linecache.getlines(file), 1):
        if definition.match(line):
            return f"{file}:{number}"
    return f"{file}:1"
