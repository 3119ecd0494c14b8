"""Which requests change nothing, by their wire form: those may be sent again without asking anybody."""

from __future__ import annotations

from typing import Any, Final

_READS: Final = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


def only_reads(operation: str, members: dict[str, Any]) -> bool:
    """Return whether a request leaves everything as it is."""
    match operation:
        case "ExecuteStatement":
            return _selects(members)
        case "BatchExecuteStatement":
            return all(map(_selects, members["Statements"]))
        case "ExecuteTransaction":
            return all(map(_selects, members["TransactStatements"]))
        case _:
            return operation in _READS or operation.startswith(("Describe", "Get", "List"))


def _selects(statement: dict[str, Any]) -> bool:
    text: str = statement["Statement"]
    return text.lstrip()[:6].upper() == "SELECT"
