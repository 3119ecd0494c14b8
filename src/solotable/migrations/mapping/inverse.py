"""The way back: source items from the entities of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.recognition import tag_of
from solotable._entities.declare.table import HISTORY_TAG
from solotable._entities.traits.history import History
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._store import Database
from solotable._table import Table
from solotable._values import Item, dump_item, load_item
from solotable.errors import DataError, DeclarationError, SolotableError

from .outputs import DeadLetter, Output, OutputKey, Outputs, Snapshot, check_item, output_key
from .source import Source

KeyFunction = Callable[[Any], Mapping[str, Any]]
ReadFunction = Callable[[Database, Mapping[str, Any]], Iterable[Entity]]


@dataclass(frozen=True, slots=True)
class Inverse:
    """The function that builds an item of a source from one entity, or from those of one source item."""

    source: Source
    entities: tuple[type[Entity], ...]
    function: Callable[[Any], Any]
    key: KeyFunction | None = None
    read: ReadFunction | None = None
    #: Whether the function takes snapshots of former versions too.
    snapshots: bool = False

    def build(self, argument: Any) -> Item | None:
        """Return the source item in wire form; None without an item."""
        built = self.function(argument)
        if built is None:
            return None
        if isinstance(built, Entity):
            item = built.to_item()
        elif isinstance(built, BaseModel):
            item = dump_item(built.model_dump(exclude_unset=True))
        else:
            item = dump_item(built)
        check_item(self.source.key_names, item)
        return item


def check_inverse(target: Table, inverse: Inverse) -> None:
    """Raise DeclarationError for an inverse that cannot work."""
    where = f"inverse({inverse.source.name!r})"
    if not inverse.entities:
        raise DeclarationError(f"{where} names no entity; name those that the function takes.")
    for entity in inverse.entities:
        if entity.plan().table is not target:
            raise DeclarationError(
                f"{where}: {entity.__name__} is an entity of table {entity.plan().table.name!r}, not of "
                f"{target.name!r}."
            )
    several = len(inverse.entities) > 1 or inverse.key is not None
    if several and (inverse.key is None or inverse.read is None):
        raise DeclarationError(
            f"{where} builds an item from several entities, so it needs key= and read=: the key of the "
            f"source item of an entity, and all entities of a key."
        )
    if several and inverse.snapshots:
        raise DeclarationError(f"{where}: snapshots=True is for an inverse of one entity class.")


class ReversedMapping:
    """The mapping from the items of the target to those of the sources."""

    def __init__(
        self,
        target: Table,
        sources: Mapping[str, Source],
        inverses: Mapping[str, Inverse],
        copied: AbstractSet[str],
        forward: Callable[[str, Item], Outputs],
    ) -> None:
        self.sources = {target.name: Source(target)}
        self._table = target
        self._targets = sources
        self._inverses = inverses
        self._copied = copied
        self._forward = forward

    def outputs(self, source: str, item: Item) -> Outputs:
        """Return the source items that an item of the target becomes.

        An output of kind "gather" has the key of an item of several entities; `gather` builds it.
        """
        items: dict[OutputKey, Output] = {}
        try:
            for output in self._encode(item):
                items[output_key(output.table, output.key)] = output
        except Exception as error:  # noqa: BLE001 - whatever an inverse raises is a dead letter
            cause = str(error) if isinstance(error, SolotableError) else f"{type(error).__name__}: {error}"
            key = {name: item[name] for name in self._table.key_names}
            return Outputs(dead=(DeadLetter(source, key, cause[:500]),))
        return Outputs(items)

    def _encode(self, item: Item) -> Iterable[Output]:
        for name in self._copied:
            if self._targets[name].includes(item):
                yield Output(name, self._targets[name].key_of(item), item, "")
        if DELETED_AT in item:
            return
        entity = self._decode(item)
        if isinstance(entity, Snapshot):
            yield from self._encode_snapshot(entity)
            return
        for name, inverse in self._inverses.items():
            if not isinstance(entity, inverse.entities):
                continue
            if inverse.key is not None:
                found = dump_item(inverse.key(entity))
                if not found.keys() >= set(inverse.source.key_names):
                    raise DataError(
                        f"The key= of inverse({name!r}) returns {sorted(found)}, expected "
                        f"{sorted(inverse.source.key_names)}."
                    )
                key = {each: found.pop(each) for each in inverse.source.key_names}
                # Other values than the key help to read the entities.
                yield Output(name, key, found, entity.plan().tag, "gather")
                continue
            built = inverse.build(entity)
            if built is not None:
                yield Output(name, inverse.source.key_of(built), built, entity.plan().tag)

    def _encode_snapshot(self, snapshot: Snapshot) -> Iterable[Output]:
        for name, inverse in self._inverses.items():
            if inverse.snapshots and isinstance(snapshot.entity, inverse.entities):
                built = inverse.build(snapshot)
                if built is not None:
                    yield Output(name, inverse.source.key_of(built), built, snapshot.entity.plan().tag)

    def _decode(self, item: Item) -> Entity | Snapshot | None:
        """Return the entity of an item, or the former version of a snapshot; None for other items."""
        plan = self._table.recognise(item)
        if plan is not None:
            return plan.decode(item, STORED)
        tag = tag_of(self._table, item) or ""
        plan = self._table.plans.get(tag.removeprefix(HISTORY_TAG)) if tag.startswith(HISTORY_TAG) else None
        trait = (
            None if plan is None else next((each for each in plan.traits if isinstance(each, History)), None)
        )
        if plan is None or trait is None or item.get(trait.sort, {}).get("S", "").endswith("DELETED"):
            return None
        return Snapshot(plan.decode(trait.original(item, plan.identity), STORED))

    def normal(self, source: str, item: Item) -> Item:
        """Return a source item as the way back would write it, so that two can be compared.

        Items that clients wrote may lack what a rule fills in; the way back writes it.
        """
        inverse = self._inverses.get(source)
        if inverse is None:
            return item
        found = self._forward(source, item)
        entities = [self._decode(output.item) for output in found.items.values() if output.kind == "put"]
        if found.dead or not entities:
            return item
        if inverse.key is not None:
            built = inverse.build([each for each in entities if isinstance(each, inverse.entities)])
        else:
            taken = [each for each in entities if isinstance(each, (Snapshot, *inverse.entities))]
            built = inverse.build(taken[0]) if taken else None
        return item if built is None else built

    def is_head(self, output: Output) -> bool:
        """Return whether an output comes from the first class of its inverse: one for each item."""
        inverse = self._inverses[output.table]
        return inverse.entities[0].plan().tag == output.entity

    def gather(self, output: Output, db: Database) -> Item | None:
        """Read the entities of a source item and build it; None if it does not exist any more."""
        inverse = self._inverses[output.table]
        assert inverse.read is not None
        entities = list(inverse.read(db, load_item({**output.key, **output.item})))
        item = inverse.build(entities) if entities else None
        if item is not None and inverse.source.key_of(item) != output.key:
            raise DataError(
                f"inverse({output.table!r}) builds an item with the key {inverse.source.key_of(item)} for "
                f"{output.key}."
            )
        return item
