"""How the children of an entity are found: which of a child's keys is one query for one parent."""

from __future__ import annotations

from collections.abc import Iterable

from solotable._entities.keys.access_path import AccessPath
from solotable.errors import DeclarationError

from .plan import Plan


def path_to(child: Plan, known: Iterable[str], parent: str) -> AccessPath:
    """Return the child's key by which the children of one parent are one query.

    `known` are the child's fields that the parent's key gives.
    """
    fields = set(known)
    fitting = [path for path in child.keys.values() if set(path.partition.fields) <= fields]
    if not fitting:
        raise DeclarationError(
            f"{child.name} has no key by which the children of one {parent} can be queried; "
            f"add an index whose partition is made of {', '.join(sorted(fields))}."
        )
    # The table's own key reads consistently; of several the one that narrows most.
    return max(fitting, key=lambda path: (path.index is None, len(set(path.parts) & fields)))
