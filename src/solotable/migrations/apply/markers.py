"""Markers: the attributes of a migrated item that name the source item which it comes from.

Two source items may produce one key, one after the other: the marker tells which of them owns the item. A
migration removes only items that it wrote.
"""

from __future__ import annotations

from solotable._protocol.json_codec import dumps, loads
from solotable._values import Item

#: Every attribute of a migration begins with this. A whole item has its owner here.
MARKER = "_migration"
#: The number of the copy in which the item was last written.
GENERATION = "_migration_copy"
#: A part of an item has its owner in this and the name of the source.
_PART = "_migration:"


def key_text(key: Item) -> str:
    """Return a primary key as text, the same for the same key."""
    return dumps([next(iter(key[name].items())) for name in sorted(key)]).decode()


def key_of_text(text: str, names: tuple[str, ...]) -> Item:
    """Return the primary key of a text."""
    values = loads(text.encode())
    return {name: {kind: content} for name, (kind, content) in zip(sorted(names), values, strict=True)}


def owner_text(source: str, key: Item) -> str:
    """Return the owner of an output: a source and the key of its item."""
    return f"{source}|{key_text(key)}"


def owner_of(item: Item) -> str | None:
    """Return the owner of a whole item; None if no migration wrote it."""
    found = item.get(MARKER)
    return None if found is None else found["S"]


def part_marker(source: str) -> str:
    """Return the attribute with the owner of a part."""
    return _PART + source


def mark(item: Item, owner: str, generation: int) -> Item:
    """Return a whole item with its markers."""
    return {**item, MARKER: {"S": owner}, GENERATION: {"N": str(generation)}}


def part_value(owner: str, generation: int) -> str:
    """Return the marker of a part."""
    return f"{generation}|{owner}"


def part_owners(item: Item) -> dict[str, tuple[int, str]]:
    """Return the generation and the owner of each part of an item, by its marker attribute."""
    found: dict[str, tuple[int, str]] = {}
    for name, value in item.items():
        if name.startswith(_PART) and "S" in value:
            generation, _, owner = value["S"].partition("|")
            found[name] = int(generation), owner
    return found


def is_marked(item: Item) -> bool:
    """Return whether a migration wrote an item."""
    return MARKER in item or any(name.startswith(_PART) for name in item)


def markers_in(item: Item) -> list[str]:
    """Return the marker attributes of an item."""
    return [name for name in item if name.startswith(MARKER)]


def strip_markers(item: Item) -> Item:
    """Return an item without its markers."""
    return {name: value for name, value in item.items() if not name.startswith(MARKER)}


def old_owners(item: Item, generation: int) -> list[str]:
    """Return the owners of an item's outputs that an older copy wrote."""
    found = [owner for written, owner in part_owners(item).values() if written < generation]
    owner = owner_of(item)
    if owner is not None and int(item.get(GENERATION, {}).get("N", "0")) < generation:
        found.append(owner)
    return found
