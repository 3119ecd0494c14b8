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

#: Every code with its title; docs/reference/lint.md explains each.
CODES: Final = {
    "ST100": "a declaration is rejected",
    "ST101": "two entities can have the same primary key",
    "ST102": "a pattern's range reaches another entity's items",
    "ST103": "two tenants can share a partition",
    "ST104": "a global entity can be in a tenant's partition",
    "ST105": "an entity uses a prefix of the store's internal items",
    "ST106": "a number without a width in a sort key",
    "ST107": "a mixed query reads items between its parts",
    "ST201": "a few partitions take all the traffic",
    "ST202": "all current writes go to one partition",
    "ST301": "no entity uses an index",
    "ST302": "all fields of an index key may be None",
    "ST303": "an index lacks attributes that a pattern returns",
    "ST304": "an index does not say which entities are deleted",
    "ST401": "an attribute's name is a reserved word",
    "ST402": "nested values in a flat table",
    "ST403": "the library of an adopted table cannot read the entity",
    "ST501": "no key can serve a pattern",
    "ST502": "a pattern has no docstring",
    "ST902": "a pattern cannot be checked",
}
#: Codes that the linter reports only when the user selects them.
ON_REQUEST: Final = frozenset({"ST401"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: what can happen, and how to fix it."""

    code: str
    severity: Severity
    #: The table's name, and the entity's; None for a finding about the whole table.
    table: str
    entity: str | None
    #: `file:line`, if known.
    where: str | None
    message: str


def make_finding(
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
        where=_locate_function(at) if at else _locate_class(plan.entity) if plan else None,
        message=message,
    )


def _locate_function(function: Callable[..., Any]) -> str | None:
    code = getattr(function, "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _locate_class(entity: type) -> str | None:
    """Return the file and line of a class; `inspect` would parse the whole file for each class."""
    file = getattr(sys.modules.get(entity.__module__), "__file__", None)
    if file is None:
        return None
    definition = re.compile(rf"\s*class\s+{re.escape(entity.__name__)}\b")
    for number, line in enumerate(linecache.getlines(file), 1):
        if definition.match(line):
            return f"{file}:{number}"
    return f"{file}:1"
