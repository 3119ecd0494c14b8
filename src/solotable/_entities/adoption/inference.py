"""Infer the entities of a sampled table, by the type attribute or by the shape of the keys."""

from __future__ import annotations

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final, Literal

from solotable._values import Item, item_size
from solotable._values.lazy_dataclass import dataclass

from .attribute_types import AttributeType, infer_type
from .key_inference import (
    InferredTemplate,
    Notation,
    find_delimiter,
    infer_template,
    key_only_values,
    shape,
)
from .sample import SampledIndex, TableSample

LibraryName = Literal["electrodb", "onetable", "toolbox", "pynamodb"]
Confidence = Literal["high", "medium", "low"]

#: The modules of the names that a models file may use, which no class can have.
IMPORTS: Final = {
    "date": "datetime",
    "datetime": "datetime",
    "Decimal": "decimal",
    "Annotated": "typing",
    "Any": "typing",
    **dict.fromkeys(
        (
            "Attr",
            "Created",
            "Entity",
            "Epoch",
            "Index",
            "Iso",
            "Key",
            "KeyFormat",
            "TTL",
            "Table",
            "Updated",
            "Version",
        ),
        "solotable",
    ),
}
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
#: Names of attributes that hold composed keys: GSI1PK, gs1sk, team_pk.
_COMPOSED: Final = re.compile(r"(?i)(pk|sk|hash|range)[0-9]*$|^(gsi|lsi)")
#: Attributes that libraries write for themselves, which no key contains.
_LIBRARY_ATTRIBUTES: Final = frozenset({"__edb_v__", "_ct", "_md"})
#: Sort keys of main items, which say less than the partition key.
_COMMON_WORDS: Final = frozenset({"PROFILE", "METADATA", "META", "INFO", "ROOT", "DATA"})
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
        odd = any(part.is_key_only for each in self.key.templates for part in each.parts)
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
        name = _unique(_class_names(of_tag, key_shape, sample.name), names)
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
    return _merged(sample, groups)


def _merged(sample: TableSample, groups: Mapping[_GroupKey, list[Item]]) -> Mapping[_GroupKey, list[Item]]:
    """Merge groups whose literals are values of an attribute, such as `OPEN#...` and `SENT#...`."""
    merged: dict[_GroupKey, list[Item]] = defaultdict(list)
    general = {each: _general_shape(sample, each[1], members) for each, members in groups.items()}
    for (of_tag, key_shape), members in groups.items():
        wider = general[of_tag, key_shape]
        similar = [each for each, found in general.items() if each[0] == of_tag and found == wider]
        attributes = {frozenset(item) for each in similar for item in groups[each]}
        merged[(of_tag, wider) if len(similar) > 1 and len(attributes) == 1 else (of_tag, key_shape)] += (
            members
        )
    return merged


def _general_shape(
    sample: TableSample, key_shape: tuple[tuple[str, ...], ...], members: Sequence[Item]
) -> tuple[tuple[str, ...], ...]:
    """Return the shape with `*` for each literal that an attribute of every item equals."""
    values = [
        {value["S"] for name, value in item.items() if name not in sample.key_names and "S" in value}
        for item in members
    ]
    common = set.intersection(*values)
    return tuple(tuple("*" if each in common else each for each in side) for side in key_shape)


def _key_shape(sample: TableSample, item: Item, notation: Notation) -> tuple[tuple[str, ...], ...]:
    values = {
        name: value["S"] for name, value in item.items() if name not in sample.key_names and "S" in value
    }
    names = (sample.partition, *([sample.sort] if sample.sort else []))
    return tuple(
        shape(item[name].get("S", ""), values, notation) if "S" in item[name] else ("*",) for name in names
    )


def _class_names(tag: str | None, key_shape: tuple[tuple[str, ...], ...], table: str) -> list[str]:
    """Return names for a class, the best first: the type, or the literals of the sort or partition key."""
    if tag is not None:
        return [_class_name(tag)]
    sides = [" ".join(each for each in side if each not in ("*", "")) for side in reversed(key_shape)]
    if sides[0] in _COMMON_WORDS:
        sides.reverse()
    return [_class_name(each) for each in sides if each] or [_class_name(table.removesuffix("s"))]


def _class_name(words: str) -> str:
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", words)
    name = "".join(each.capitalize() if each.isupper() or each.islower() else each for each in parts)
    is_usable = name and not name[0].isdigit() and not keyword.iskeyword(name) and name not in IMPORTS
    return name if is_usable else f"Item{name}"


def _unique(names: Sequence[str], taken: set[str]) -> str:
    numbered = (f"{names[0]}{number}" for number in count(2))
    return next(each for each in chain(names, numbered) if each not in taken)


def _entity(
    name: str,
    tag: str | None,
    items: Sequence[Item],
    sample: TableSample,
    notation: Notation,
    tag_name: str | None,
) -> InferredEntity:
    plain = _plain_key_attributes(sample, items, notation)
    ignored = (sample.key_names - plain) | ({tag_name} if tag_name else set()) | _LIBRARY_ATTRIBUTES
    present = dict.fromkeys(each for item in items for each in item)
    types = {each: infer_type(each, items, ttl=each == sample.ttl) for each in present}
    epochs = {each for each, found in types.items() if (found.time or "").startswith("Epoch")}

    def template(attribute: str, members: Sequence[Item], partition: str) -> InferredTemplate:
        if attribute in plain:
            return InferredTemplate(attribute=attribute, parts=(), native=True)
        found = infer_template(attribute, members, notation, partition=partition, tag=tag, ignored=ignored)
        # The digits of a time need no format: they are those of its marker.
        parts = [
            replace(part, spec="") if part.spec == "d" and part.attribute in epochs else part
            for part in found.parts
        ]
        return replace(found, parts=tuple(parts))

    primary = [template(sample.partition, items, sample.partition)]
    if sample.sort is not None:
        # The sort key may repeat a value that only the partition key has.
        repeated = [item | key_only_values(primary, item, notation) for item in items]
        primary.append(template(sample.sort, repeated, sample.partition))
    key = InferredKey(index=None, partition=tuple(primary[:1]), sort=tuple(primary[1:]), count=len(items))
    own = {each.attribute: each for each in primary}
    # An index key may contain values that only the primary key has.
    extended = [item | key_only_values(primary, item, notation) for item in items]
    indexes = []
    for index in sample.indexes:
        names = (*index.partition, *index.sort)
        members = [item for item in extended if all(each in item for each in names)]
        if members:
            first = index.partition[0]
            found = InferredKey(
                index=index,
                partition=tuple(own.get(each) or template(each, members, first) for each in index.partition),
                sort=tuple(own.get(each) or template(each, members, first) for each in index.sort),
                count=len(members),
            )
            indexes.append(_checked(found, extended, own.keys()))
    natives = {each.attribute for every in (key, *indexes) for each in every.templates if each.native}
    sizes = [item_size(item) for item in items]
    return InferredEntity(
        name=name,
        tag=tag,
        items=items,
        key=key,
        indexes=tuple(indexes),
        attributes=tuple(
            found
            for each, found in types.items()
            if each in natives | plain or each not in sample.key_names | {tag_name}
        ),
        average_bytes=sum(sizes) // len(sizes),
        largest_bytes=max(sizes),
    )


def _plain_key_attributes(sample: TableSample, items: Sequence[Item], notation: Notation) -> frozenset[str]:
    """Return the key attributes of indexes that are fields themselves, such as `customer`."""
    return frozenset(
        name
        for name in sample.key_names - {sample.partition, sample.sort}
        if _COMPOSED.search(name) is None
        and not any(notation.delimiter in item.get(name, {}).get("S", "") for item in items)
    )


def _checked(key: InferredKey, items: Sequence[Item], own: Collection[str]) -> InferredKey:
    """Return an index key with the reason for which solotable could not derive it, if there is one."""
    problem = None
    names = {each.attribute for each in key.templates}
    fields = {attribute for each in key.templates for attribute in each.attributes}
    unmatched = [
        each.attribute
        for each in key.templates
        if each.attribute not in own and any(part.is_key_only for part in each.parts)
    ]
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
