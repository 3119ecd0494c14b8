"""Find the key of a child entity for queries of one parent's children."""

from __future__ import annotations

from collections.abc import Iterable

from solotable._entities.keys.access_path import AccessPath
from solotable.errors import DeclarationError

from .plan import Plan


def path_to(child: Plan, known: Iterable[str], parent: str) -> AccessPath:
    """Return the child's key for a single query of the children of one parent.

    `known` names the child's fields that the parent's key gives.
    """
    fields = set(known)
    fitting = [path for path in child.keys.values() if set(path.partition.fields) <= fields]
    if not fitting:
        raise DeclarationError(
            f"{child.name} has no key to query the children of one {parent}; "
            f"add an index with a partition key of {', '.join(sorted(fields))}."
        )
    # Prefer the primary key, which allows consistent reads, then the key with the most known parts.
    return max(fitting, key=lambda path: (path.index is None, len(set(path.parts) & fields)))
