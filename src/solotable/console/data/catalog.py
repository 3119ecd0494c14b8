"""The tables of a database with their entities: declared by models, or guessed from a sample of items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

from solotable._connect import table_names
from solotable._entities.adoption.inference import InferredTable, infer_table
from solotable._entities.adoption.key_inference import InferredTemplate
from solotable._entities.adoption.models_file import models_file
from solotable._entities.adoption.sample import TableSample
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import is_internal, tag_of
from solotable._entities.declare.table import Table, suggestion
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable._values import Item
from solotable.errors import NotFound, SolotableError, TableNotFound
from solotable.urls import Url

_COLOURS = 8
_MOST_TABLES = 100
#: The most items that entities are guessed from.
_MOST_INFERRED = 500
_SEPARATORS = re.compile(r"[#|/:]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facet:
    """The items of one entity: declared, guessed from a sample, internal, or of no entity."""

    name: str
    #: The colour: 1 to 8 in the order of declaration, 0 for unclaimed and internal items.
    colour: int
    monogram: str
    plan: Plan | None = None
    #: Templates of the key that a sample shows; for declared entities, those of the model.
    templates: tuple[tuple[str, str], ...] = ()


UNCLAIMED = Facet(name="Unclaimed", colour=0, monogram="?")
INTERNAL = Facet(name="Internal", colour=0, monogram="·")


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One attribute of a key: its name and type."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveIndex:
    """A secondary index of a live table."""

    name: str
    partition: tuple[KeyPart, ...]
    sort: tuple[KeyPart, ...]
    local: bool
    projection: str
    item_count: int
    bytes: int

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """The attributes of its key."""
        return (*self.partition, *self.sort)


@dataclass(frozen=True, kw_only=True)
class LiveTable:
    """A table of the database, and the models that describe it."""

    name: str
    partition: KeyPart
    sort: KeyPart | None
    indexes: tuple[LiveIndex, ...]
    item_count: int
    bytes: int
    description: Mapping[str, Any]
    declared: Table | None = None
    facets: tuple[Facet, ...] = ()
    #: Finds the facet of an item in a table without models.
    guess: Callable[[Item], str | None] = field(default=lambda _: None, repr=False)

    @property
    def keys(self) -> tuple[KeyPart, ...]:
        """The attributes of the primary key."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def synced(self) -> list[Facet]:
        """The entities that are replicated to offline clients."""
        return [each for each in self.facets if each.plan is not None and each.plan.synced is not None]

    def key_of(self, item: Item) -> Item:
        """Return the primary key of an item."""
        return {part.name: item[part.name] for part in self.keys}

    def position_of(self, item: Item, index: str | None) -> Item:
        """Return the start key after an item, in the table or in an index."""
        position = self.key_of(item)
        if index is not None:
            position |= {part.name: item[part.name] for part in self.index(index).parts}
        return position

    def index(self, name: str) -> LiveIndex:
        """Return an index by its name."""
        return next(each for each in self.indexes if each.name == name)

    def facet_of(self, item: Item) -> Facet:
        """Return the facet of an item."""
        if self.declared is not None:
            if is_internal(self.declared, item):
                return INTERNAL
            plan = self.declared.recognise(item)
            return next((each for each in self.facets if each.plan is plan), UNCLAIMED) if plan else UNCLAIMED
        name = self.guess(item)
        return next((each for each in self.facets if each.name == name), UNCLAIMED)

    def facet(self, name: str) -> Facet:
        """Return a facet by its name, or raise NotFound with the nearest name."""
        for each in (*self.facets, UNCLAIMED, INTERNAL):
            if each.name == name:
                return each
        known = [each.name for each in self.facets]
        raise NotFound(f"Table {self.name} has no entity {name!r}; {suggestion(name, known)}")


class Catalog:
    """The tables of one database; each call asks the engine, which is free of charge."""

    def __init__(self, engine: Engine, url: Url, tables: Sequence[Table]) -> None:
        self._engine = engine
        self._url = url
        names = table_names(tables, url) if tables else {}
        self._declared = {names[table.name]: table for table in tables}
        #: What samples of tables without models show, by table; filled when a sample is read.
        self.inferred: dict[str, InferredTable] = {}
        self._suggested: dict[str, str] = {}

    def names(self) -> list[str]:
        """Return the names of the tables, those with models first."""
        if self._url.table is not None:
            return [self._url.table]
        found = self._engine.handle(Control(operation="ListTables", members={"Limit": _MOST_TABLES}))
        listed: list[str] = found["TableNames"]
        return sorted(listed, key=lambda each: (each not in self._declared, listed.index(each)))

    def tables(self) -> list[LiveTable]:
        """Return all tables."""
        return [self.table(name) for name in self.names()]

    def table(self, name: str) -> LiveTable:
        """Return a table, or raise NotFound with the nearest name."""
        try:
            described = self._engine.handle(Control(operation="DescribeTable", members={"TableName": name}))
        except TableNotFound:
            advice = suggestion(name, self.names())
            raise NotFound(f"{self._url.text} has no table {name!r}; {advice}") from None
        return self._live(described["Table"])

    def sampled(self, table: LiveTable, items: Sequence[Item]) -> None:
        """Guess the entities of a table without models from a sample of its items."""
        if table.declared is None:
            some = _some_of_each_kind(items, [part.name for part in table.keys])
            self.inferred[table.name] = infer_table(TableSample.of(table.description, None, some))
            self._suggested.pop(table.name, None)

    def suggested_models(self, name: str) -> str:
        """Return the models that a sample of a table suggests; empty without entities."""
        inferred = self.inferred.get(name)
        if inferred is None or not inferred.entities:
            return ""
        if name not in self._suggested:
            try:
                self._suggested[name] = models_file(inferred, frozenset())
            except SolotableError:
                self._suggested[name] = ""
        return self._suggested[name]

    def _live(self, described: Mapping[str, Any]) -> LiveTable:
        name = described["TableName"]
        kinds = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
        partition, sort = _key(described["KeySchema"], kinds)
        declared = self._declared.get(name)
        inferred = self.inferred.get(name)
        if declared is not None:
            facets = declared_facets(declared)
        else:
            facets = () if inferred is None else _guessed_facets(inferred)
        indexes = [
            _index(each, kinds, local=local)
            for place, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
            for each in described.get(place) or ()
        ]
        return LiveTable(
            name=name,
            partition=partition[0],
            sort=sort[0] if sort else None,
            indexes=tuple(indexes),
            item_count=described.get("ItemCount", 0),
            bytes=described.get("TableSizeBytes", 0),
            description=described,
            declared=declared,
            facets=facets,
            guess=(lambda _: None) if inferred is None else _guesser(inferred),
        )


def declared_facets(table: Table) -> tuple[Facet, ...]:
    """Return the facets of a table's models, in the order of their declaration."""
    plans = list(table.plans.values())
    monograms = choose_monograms([plan.name for plan in plans])
    return tuple(
        Facet(
            name=plan.name,
            colour=number % _COLOURS + 1,
            monogram=monograms[plan.name],
            plan=plan,
            templates=tuple(_templates(plan)),
        )
        for number, plan in enumerate(plans)
    )


def choose_monograms(names: Iterable[str]) -> dict[str, str]:
    """Return two letters for each name, different as far as its letters allow.

    >>> choose_monograms(["Section", "Series", "Survey"])
    {'Section': 'Se', 'Series': 'Sr', 'Survey': 'Su'}
    """
    found: dict[str, str] = {}
    for name in names:
        letters = [each for each in name if each.isalnum()] or ["?"]
        pairs = [letters[0].upper() + each.lower() for each in letters[1:]] or [letters[0].upper()]
        found[name] = next((pair for pair in pairs if pair not in found.values()), pairs[0])
    return found


def _templates(plan: Plan) -> Iterable[tuple[str, str]]:
    for path in plan.keys.values():
        for layout in (path.partition, path.sort):
            if layout is not None:
                shown = getattr(layout, "shown", None) or "+".join(f"{{{each}}}" for each in layout.fields)
                yield "+".join(layout.names), shown


def _guessed_facets(inferred: InferredTable) -> tuple[Facet, ...]:
    monograms = choose_monograms(each.name for each in inferred.entities)
    return tuple(
        Facet(
            name=each.name,
            colour=number % _COLOURS + 1,
            monogram=monograms[each.name],
            templates=tuple((part.attribute, _text(part, inferred)) for part in each.key.templates),
        )
        for number, each in enumerate(inferred.entities)
    )


def _text(template: InferredTemplate, inferred: InferredTable) -> str:
    texts = (
        f"{{{part.attribute or part.key_only}}}" if part.attribute or part.key_only else part.literal
        for part in template.parts
    )
    return inferred.notation.delimiter.join(texts)


def _guesser(inferred: InferredTable) -> Callable[[Item], str | None]:
    """Return a function from an item to the name of its guessed entity: by type attribute, or key prefix."""
    by_tag = {each.tag: each.name for each in inferred.entities if each.tag is not None}
    keys = [name for name in (inferred.sample.partition, inferred.sample.sort) if name]
    by_prefix: dict[tuple[str, ...], str] = {}
    for entity in inferred.entities:
        for item in entity.items:
            by_prefix.setdefault(_prefixes(item, keys), entity.name)

    def guess(item: Item) -> str | None:
        tag = None if inferred.tag is None else item.get(inferred.tag, {}).get("S")
        return by_tag.get(tag) if tag in by_tag else by_prefix.get(_prefixes(item, keys))

    return guess


def _prefixes(item: Item, keys: Sequence[str]) -> tuple[str, ...]:
    texts = (next(iter(item.get(name, {}).values()), "") for name in keys)
    return tuple(_SEPARATORS.split(str(text), maxsplit=1)[0] for text in texts)


def _some_of_each_kind(items: Sequence[Item], keys: Sequence[str]) -> list[Item]:
    """Return up to `_MOST_INFERRED` items, in turn from each kind of key: a rare kind is not left out."""
    kinds: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        kinds.setdefault(_prefixes(item, keys), []).append(item)
    in_turn = (item for turn in zip_longest(*kinds.values()) for item in turn if item is not None)
    return list(islice(in_turn, _MOST_INFERRED))


def _key(
    schema: Iterable[Mapping[str, str]], kinds: Mapping[str, str]
) -> tuple[tuple[KeyPart, ...], tuple[KeyPart, ...]]:
    parts = [
        (each["KeyType"], KeyPart(each["AttributeName"], kinds[each["AttributeName"]])) for each in schema
    ]
    return (
        tuple(part for role, part in parts if role == "HASH"),
        tuple(part for role, part in parts if role == "RANGE"),
    )


def _index(described: Mapping[str, Any], kinds: Mapping[str, str], *, local: bool) -> LiveIndex:
    partition, sort = _key(described["KeySchema"], kinds)
    projection = described["Projection"]
    included = projection.get("NonKeyAttributes")
    return LiveIndex(
        name=described["IndexName"],
        partition=partition,
        sort=sort,
        local=local,
        projection=f"INCLUDE {', '.join(included)}" if included else projection["ProjectionType"],
        item_count=described.get("ItemCount", 0),
        bytes=described.get("IndexSizeBytes", 0),
    )


def why_unclaimed(table: LiveTable, item: Item) -> tuple[str, str]:
    """Return the nearest template of an unclaimed item, and why it does not match."""
    declared = table.declared
    if declared is None:
        return "", "no model describes this table"
    tag = tag_of(declared, item)
    if tag is not None and declared.tag is not None and tag not in declared.plans:
        return "", f"{declared.tag} says {tag}, and no entity has this name"
    for facet in table.facets:
        if facet.plan is not None and facet.plan.arguments_of(table.key_of(item)) is not None:
            return facet.plan.describe(), f"the key is one of {facet.name}, but {declared.tag} is missing"
    text = str(next(iter(item[table.keys[-1].name].values())))
    prefix = _SEPARATORS.split(text, maxsplit=1)[0]
    literals = {part[0]: part for facet in table.facets for part in ((facet.name, facet.templates),)}
    for name, templates in literals.values():
        if any(shown.startswith(prefix) for _, shown in templates):
            return ", ".join(shown for _, shown in templates[:2]), f"the key is not a whole key of {name}"
    return "", f"{prefix!r} is in no key template"
