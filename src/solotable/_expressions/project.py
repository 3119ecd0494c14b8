"""Project an item to the values at some paths, and keep its structure. Shares values, copies none."""

from __future__ import annotations

from typing import Union

from solotable._values import AttributeValue, Item

from .ast import Path, Projection

# A node in the tree of wanted paths: None where a path ends.
_Wanted = dict[Union[str, int], Union["_Wanted", None]]


def project(projection: Projection, item: Item) -> Item:
    """Return only the values at the paths; {} if there are none.

    The wanted elements of a list form a shorter list, in its order.
    """
    picked: Item = {}
    nested: dict[str, _Wanted] = {}
    for path in projection:
        name = str(path[0])
        value = item.get(name)
        if value is None:
            continue
        if len(path) == 1:
            picked[name] = value
        else:
            _want(nested.setdefault(name, {}), path[1:])
    for name, wanted in nested.items():
        part = _part(item[name], wanted)
        if part is not None:
            picked[name] = part
    return picked


def _want(wanted: _Wanted, steps: Path) -> None:
    for step in steps[:-1]:
        inner = wanted.setdefault(step, {})
        assert inner is not None  # no path lies within another
        wanted = inner
    wanted[steps[-1]] = None


def _part(value: AttributeValue, wanted: _Wanted) -> AttributeValue | None:
    if "M" in value:
        members = value["M"]
        found = {
            step: part
            for step, inner in wanted.items()
            if step in members and (part := _reach(members[step], inner)) is not None
        }
        return {"M": found} if found else None
    if "L" in value:
        elements = value["L"]
        listed = [
            part
            for step in sorted(step for step in wanted if isinstance(step, int))
            if step < len(elements) and (part := _reach(elements[step], wanted[step])) is not None
        ]
        return {"L": listed} if listed else None
    return None


def _reach(value: AttributeValue, wanted: _Wanted | None) -> AttributeValue | None:
    return value if wanted is None else _part(value, wanted)
