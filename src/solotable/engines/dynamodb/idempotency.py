"""Whether a request in wire form only reads, so that it is safe to repeat."""

from __future__ import annotations

from typing import Any, Final

_READS: Final = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


def is_read_only(operation: str, members: dict[str, Any]) -> bool:
    """Return whether a request writes nothing."""
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
