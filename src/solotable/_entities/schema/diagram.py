"""The layout of tables as a picture shows it: key spaces, their partitions, and the entities in them.

A key space is a table or one of its indexes. `mermaid_text` and `svg_text` draw the layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Index, Table
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import KeyLayout, TemplateLayout
from solotable._entities.patterns.access_patterns import AccessPattern, access_patterns
from solotable._values.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    """The items of one entity in a partition: their sort key, and the patterns that read them."""

    entity: str
    #: The name of the key in the class, such as `key` or `by_order`.
    key: str
    #: The template of the sort key; empty for a key without one.
    sort: str
    patterns: tuple[str, ...]
    #: Whether some entities are not in the index: a part of the key can be None, or the key has a condition.
    sparse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBox:
    """The entities whose partition keys have the same template."""

    template: str
    rows: tuple[EntityRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpace:
    """A table or an index, with its partitions in the order of their declaration."""

    name: str
    #: The names of the key attributes, and for an index its projection.
    attributes: str
    is_index: bool
    partitions: tuple[PartitionBox, ...]


def key_spaces(table: Table, name: str | None = None) -> list[KeySpace]:
    """Return the key spaces of a table: the table first, then its indexes."""
    patterns = [each for each in access_patterns([table]) if each.table == table.name]
    keys = ", ".join(table.key_names)
    spaces = [_space(name or table.name, keys, None, table, patterns)]
    for index in table.indexes.values():
        attributes = ", ".join(each.name for each in (*index.partition, *index.sort))
        spaces.append(
            _space(index.name, f"{attributes}; {_projection(table, index)}", index, table, patterns)
        )
    return spaces


def _projection(table: Table, index: Index) -> str:
    """Return the projection of an index in a few words; a list of attributes may be long."""
    included = table.projection(index).get("NonKeyAttributes")
    return str(index.projection) if included is None else f"{len(included)} attributes"


def _space(
    name: str, attributes: str, index: Index | None, table: Table, patterns: Sequence[AccessPattern]
) -> KeySpace:
    boxes: dict[str, list[EntityRow]] = {}
    for plan in table.plans.values():
        for path in plan.keys.values():
            if path.index is index:
                boxes.setdefault(_text(path.partition), []).append(_row(plan, path, patterns))
    return KeySpace(
        name=name,
        attributes=attributes,
        is_index=index is not None,
        partitions=tuple(
            PartitionBox(template=template, rows=tuple(sorted(rows, key=lambda row: row.sort)))
            for template, rows in boxes.items()
        ),
    )


def _row(plan: Plan, path: AccessPath, patterns: Iterable[AccessPattern]) -> EntityRow:
    index = None if path.index is None else path.index.name
    # Alternatives of one index differ in their literals, which the key condition of a pattern starts with.
    start = f"{path.partition.names[0]} = {_text(path.partition).partition('{')[0]}"
    return EntityRow(
        entity=plan.name,
        key=path.name,
        sort="" if path.sort is None else _text(path.sort),
        patterns=tuple(
            each.name.rpartition(".")[2]
            for each in patterns
            if each.name.startswith(f"{plan.name}.")
            and each.index == index
            and any(part.startswith(start) for part in each.key_condition.split(" OR "))
        ),
        sparse=bool(path.when) or any(_optional(layout) for layout in (path.partition, path.sort)),
    )


def _text(layout: KeyLayout) -> str:
    if isinstance(layout, TemplateLayout):
        return layout.template.text + ("#{shard}" if layout.sharding is not None else "")
    return ", ".join(f"{{{name}}}" for name in layout.names)


def _optional(layout: KeyLayout | None) -> bool:
    return isinstance(layout, TemplateLayout) and bool(layout.template.optional)
