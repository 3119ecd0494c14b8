"""Check declared models against items: which entity each item is, and whether a put would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.declare.table import Table
from solotable._values import AttributeValue, Item, canonical
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import SolotableError

_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """How many items the models read and write back unchanged, and what is wrong with the others."""

    items: int
    unchanged: int
    #: By entity.
    recognised: Counter[str] = field(default_factory=Counter)
    #: Items of no entity, by their keys; the first ones.
    unknown: tuple[Item, ...] = ()
    #: What is wrong with the first items that cannot be read, or that a put would change.
    problems: tuple[str, ...] = ()


def check_items(table: Table, items: Iterable[Item]) -> RoundTrip:
    """Decode each item by the models of a table, encode it again, and compare."""
    recognised: Counter[str] = Counter()
    unknown: list[Item] = []
    problems: list[str] = []
    total = unchanged = 0
    for item in items:
        total += 1
        plan = table.recognise(item)
        if plan is None:
            unknown.append({name: item[name] for name in table.key_names})
            continue
        recognised[plan.name] += 1
        try:
            entity = plan.decode(item, STORED)
            written = plan.encode(entity.__dict__, plan.kept(entity, entity.__dict__))
        except SolotableError as error:
            problems.append(str(error))
            continue
        changed = _changed(item, written, ignored=table.tag)
        if changed:
            key = {name: item[name] for name in table.key_names}
            problems.append(f"{plan.name} {key}: a put would change {', '.join(changed)}.")
        else:
            unchanged += 1
    return RoundTrip(
        items=total,
        unchanged=unchanged,
        recognised=recognised,
        unknown=tuple(unknown[:_MOST_PROBLEMS]),
        problems=tuple(problems[:_MOST_PROBLEMS]),
    )


def _changed(stored: Item, written: Item, *, ignored: str | None) -> list[str]:
    """Return the attributes that a put would change; a NULL that it removes and a new tag do not count."""
    return [
        name
        for name in dict.fromkeys((*stored, *written))
        if not _equal(stored.get(name), written.get(name)) and (name != ignored or name in stored)
    ]


def _equal(one: AttributeValue | None, other: AttributeValue | None) -> bool:
    return _without_nulls(one) == _without_nulls(other)


def _without_nulls(value: AttributeValue | None) -> AttributeValue | None:
    """Return a canonical value; NULL is None, and members of maps that are NULL are absent."""
    if value is None or "NULL" in value:
        return None
    if "M" in value:
        members = {name: _without_nulls(each) for name, each in value["M"].items()}
        return {"M": {name: each for name, each in members.items() if each is not None}}
    return {"L": [_without_nulls(each) for each in value["L"]]} if "L" in value else canonical(value)
