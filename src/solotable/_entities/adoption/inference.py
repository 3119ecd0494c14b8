"""Infer the entities of a sampled table, by the type attribute or by the shape of the keys."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from solotable._values import Item, item_size
from solotable._values.lazy_dataclass import dataclass

from .attribute_types import AttributeType, infer_type
from .key_inference import InferredTemplate, Notation, find_delimiter, infer_template, shape
from .sample import SampledIndex, TableSample

LibraryName = Literal["electrodb", "onetable", "toolbox", "pynamodb"]
Confidence = Literal["high", "medium", "low"]

#: The type attributes of libraries, then those that programs often use.
_TAGS: Final = (
    *("__edb_e__", "_et", "_type", "cls"),
    *("__typename", "type", "Type", "entityType", "entity_type", "EntityType", "entity", "Entity", "_entity"),
    *(
        "itemType",
        "item_type",
        "ItemType",
        "recordType",
        "record_type",
        "kind",
        "Kind",
        "model",
        "_model",
        "_t",
    ),
)
_ISO_PYNAMODB: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+0000")
_MOST_TYPES: Final = 100
#: Attributes that libraries write for themselves, which no key contains.
_LIBRARY_ATTRIBUTES: Final = frozenset({"__edb_v__", "_ct", "_md"})
#: Fewer items say little about an entity.
_FEW_ITEMS: Final = 3
#: solotable's own items, such as locks, have a tag that begins with it.
_INTERNAL: Final = "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredKey:
    """The templates of the primary key or of an index key, in the items of one entity."""

    index: SampledIndex | None
    partition: tuple[InferredTemplate, ...]
    sort: tuple[InferredTemplate, ...]
    #: How many of the entity's items have the key.
    count: int
    #: Why the models file cannot declare it; None if it can.
    problem: str | None = None

    @property
    def templates(self) -> tuple[InferredTemplate, ...]:
        """Both templates."""
        return (*self.partition, *self.sort)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredEntity:
    """An entity as its sampled items show it."""

    name: str
    #: The value of the type attribute; None if the items have none.
    tag: str | None
    items: Sequence[Item]
    key: InferredKey
    indexes: tuple[InferredKey, ...]
    attributes: tuple[AttributeType, ...]
    #: Why the class is not declared by templates, or not at all; None if it is.
    problem: str | None = None
    declared: bool = True
    average_bytes: int
    largest_bytes: int

    @property
    def confidence(self) -> Confidence:
        """How much the sample supports the declaration."""
        if len(self.items) < _FEW_ITEMS or any(each.misfits for each in self.key.templates):
            return "low"
        keys = (self.key, *self.indexes)
        odd = any(part.key_only for each in self.key.templates for part in each.parts)
        return "medium" if odd or any(each.problem for each in keys) else "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredTable:
    """What a sample of a table shows."""

    sample: TableSample
    library: LibraryName | None
    #: The type attribute; None without one.
    tag: str | None
    #: Whether every sampled item has it.
    tag_required: bool
    notation: Notation
    entities: tuple[InferredEntity, ...]
    #: Items that solotable itself wrote, such as locks and counters.
    internal: int


def infer_table(sample: TableSample) -> InferredTable:
    """Group the items of a sample into entities, and infer their keys and attributes."""
    internal = [each for each in sample.items if _tag_of(each, "_type").startswith(_INTERNAL)]
    items = [each for each in sample.items if not _tag_of(each, "_type").startswith(_INTERNAL)]
    tag = _find_tag(sample, items)
    library = _find_library(items, tag)
    notation = _notation(sample, items, library, tag)
    groups = _groups(sample, items, tag, notation)
    entities = []
    names: set[str] = set()
    for (of_tag, key_shape), members in sorted(groups.items(), key=lambda each: -len(each[1])):
        name = _unique(_class_name(of_tag, key_shape, sample.name), names)
        names.add(name)
        entities.append(_entity(name, of_tag, members, sample, notation, tag))
    return InferredTable(
        sample=sample,
        library=library,
        tag=tag,
        tag_required=tag is not None and all(tag in each for each in items),
        notation=notation,
        entities=tuple(entities),
        internal=len(internal),
    )


def _find_tag(sample: TableSample, items: Sequence[Item]) -> str | None:
    """Return the type attribute: most items have it, and items of one key shape have one type."""
    for name in _TAGS:
        if name in sample.key_names:
            continue
        tagged = [item for item in items if "S" in item.get(name, {})]
        types = {item[name]["S"] for item in tagged}
        if len(tagged) * 2 <= len(items) or len(types) > _MOST_TYPES:
            continue
        if name in _TAGS[:4] or _tells_apart(sample, tagged, name):
            return name
    return None


def _tells_apart(sample: TableSample, items: Sequence[Item], name: str) -> bool:
    """Return whether an attribute is the type: a function of the key's shape, not a value among others."""
    notation = Notation(delimiter=find_delimiter(_key_texts(sample, items)))
    types: dict[object, set[str]] = defaultdict(set)
    for item in items:
        without = {key: value for key, value in item.items() if key != name}
        types[_key_shape(sample, without, notation)].add(item[name]["S"])
    return len(types) > 1 and all(len(each) == 1 for each in types.values())


def _find_library(items: Sequence[Item], tag: str | None) -> LibraryName | None:
    match tag:
        case "__edb_e__" if all("__edb_v__" in item for item in items if tag in item):
            return "electrodb"
        case "_et":
            return "toolbox"
        case "_type" if any("N" in item.get(name, {}) for item in items for name in ("created", "updated")):
            return "onetable"
    texts = (value["S"] for item in items for value in item.values() if "S" in value)
    return "pynamodb" if any(_ISO_PYNAMODB.fullmatch(each) for each in texts) else None


def _notation(
    sample: TableSample, items: Sequence[Item], library: LibraryName | None, tag: str | None
) -> Notation:
    texts = list(_key_texts(sample, items))
    delimiter = find_delimiter(texts)
    # solotable's own tables are escaped; another program's values may have a % too, but no escapes only.
    escaped = (
        library is None and tag == "_type" and delimiter == "#" and not any(" " in each for each in texts)
    )
    return Notation(delimiter=delimiter, escape=escaped, lower=library == "electrodb")


def _key_texts(sample: TableSample, items: Iterable[Item]) -> Iterable[str]:
    return (item[name]["S"] for item in items for name in sample.key_names if "S" in item.get(name, {}))


_GroupKey = tuple[str | None, tuple[tuple[str, ...], ...]]


def _groups(
    sample: TableSample, items: Sequence[Item], tag: str | None, notation: Notation
) -> Mapping[_GroupKey, list[Item]]:
    groups: dict[_GroupKey, list[Item]] = defaultdict(list)
    shapes: dict[str, Counter[tuple[tuple[str, ...], ...]]] = defaultdict(Counter)
    untagged = []
    for item in items:
        of_tag = None if tag is None else item.get(tag, {}).get("S")
        if of_tag is None:
            untagged.append(item)
        else:
            groups[of_tag, ()].append(item)
            shapes[of_tag][_key_shape(sample, item, notation)] += 1
    # An item without the type attribute belongs to the type whose keys have its shape.
    known = {each: of_tag for of_tag, found in shapes.items() for each in found}
    for item in untagged:
        key_shape = _key_shape(sample, item, notation)
        of_tag = known.get(key_shape)
        groups[(of_tag, ()) if of_tag is not None else (None, key_shape)].append(item)
    return groups


def _key_shape(sample: TableSample, item: Item, notation: Notation) -> tuple[tuple[str, ...], ...]:
    values = {
        name: value["S"] for name, value in item.items() if name not in sample.key_names and "S" in value
    }
    names = (sample.partition, *([sample.sort] if sample.sort else []))
    return tuple(
        shape(item[name].get("S", ""), values, notation) if "S" in item[name] else ("*",) for name in names
    )


def _class_name(tag: str | None, key_shape: tuple[tuple[str, ...], ...], table: str) -> str:
    if tag is not None:
        words = tag
    else:
        sides = [[each for each in side if each not in ("*", "")] for side in key_shape]
        words = " ".join(next((side for side in reversed(sides) if side), [table.removesuffix("s")]))
        if words in ("PROFILE", "METADATA", "META", "INFO", "ROOT", "DATA") and sides[0]:
            words = sides[0][-1]
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", words)
    name = "".join(each.capitalize() if each.isupper() or each.islower() else each for each in parts)
    return name if name and not name[0].isdigit() else f"Item{name}"


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found


def _entity(
    name: str,
    tag: str | None,
    items: Sequence[Item],
    sample: TableSample,
    notation: Notation,
    tag_name: str | None,
) -> InferredEntity:
    ignored = sample.key_names | ({tag_name} if tag_name else set()) | _LIBRARY_ATTRIBUTES

    def templates(
        names: Iterable[str], members: Sequence[Item], partition: str
    ) -> tuple[InferredTemplate, ...]:
        return tuple(
            infer_template(each, members, notation, partition=partition, tag=tag, ignored=ignored)
            for each in names
        )

    key = InferredKey(
        index=None,
        partition=templates((sample.partition,), items, sample.partition),
        sort=templates((sample.sort,) if sample.sort else (), items, sample.partition),
        count=len(items),
    )
    indexes = []
    for index in sample.indexes:
        names = (*index.partition, *index.sort)
        members = [item for item in items if all(each in item for each in names)]
        if members:
            found = InferredKey(
                index=index,
                partition=templates(index.partition, members, index.partition[0]),
                sort=templates(index.sort, members, index.partition[0]),
                count=len(members),
            )
            indexes.append(_checked(found, items, sample))
    natives = {each.attribute for every in (key, *indexes) for each in every.templates if each.native}
    present = dict.fromkeys(each for item in items for each in item)
    sizes = [item_size(item) for item in items]
    return InferredEntity(
        name=name,
        tag=tag,
        items=items,
        key=key,
        indexes=tuple(indexes),
        attributes=tuple(
            infer_type(each, items, ttl=each == sample.ttl)
            for each in present
            if each in natives or each not in sample.key_names | {tag_name}
        ),
        average_bytes=sum(sizes) // len(sizes),
        largest_bytes=max(sizes),
    )


def _checked(key: InferredKey, items: Sequence[Item], sample: TableSample) -> InferredKey:
    """Return an index key with the reason for which solotable could not derive it, if there is one."""
    problem = None
    names = {each.attribute for each in key.templates}
    fields = {attribute for each in key.templates for attribute in each.attributes}
    unmatched = [each.attribute for each in key.templates if any(part.key_only for part in each.parts)]
    outside = [item for item in items if fields <= item.keys() and not names <= item.keys()]
    if unmatched:
        problem = f"no attribute has the value of a part of {' and '.join(unmatched)}"
    elif any(each.misfits for each in key.templates):
        problem = "its keys have different numbers of segments"
    elif outside and not any(each.native for each in key.templates):
        problem = f"{len(outside)} of {len(items)} items have its fields but are not in the index"
    if problem is None:
        return key
    return InferredKey(
        index=key.index, partition=key.partition, sort=key.sort, count=key.count, problem=problem
    )


def _tag_of(item: Item, name: str) -> str:
    return str(item.get(name, {}).get("S", ""))
