"""Reconcile: make the outputs of some source items equal to what the items are now.

It reads the items and their outputs as stored, and decides the writes. It does not look at the order of
the changes: the items as they are now decide, so a change that is handled late or twice has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from solotable._expressions.ast import (
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Exists,
    Not,
    Remove,
    Update,
)
from solotable._flows.reads.get import get_items
from solotable._protocol.requests import DeleteItem, PutItem, UpdateItem, WriteAction
from solotable._values import Item, item_size
from solotable.errors import SolotableError
from solotable.migrations.mapping import DeadLetter, Output, OutputKey, Outputs, output_key
from solotable.migrations.workflow.sides import Side

from .direction import Direction
from .markers import (
    GENERATION,
    MARKER,
    key_of_text,
    mark,
    owner_of,
    owner_text,
    part_marker,
    part_owners,
    part_value,
    strip_markers,
)

_FOREIGN = "the source {} has an item under {} that takes no part in the migration"


@dataclass(slots=True, kw_only=True)
class Change:
    """A source item that changed: its key, and its images before and after each change."""

    source: str
    key: Item
    images: list[Item] = field(default_factory=list)
    #: Outputs that the item may have had, beside those of the images.
    touched: dict[OutputKey, Output] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """The owner of the item's outputs."""
        return owner_text(self.source, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The write of one output, and the source item that caused it."""

    output: OutputKey
    action: WriteAction
    size: int
    source: str
    key: Item


@dataclass(slots=True, kw_only=True)
class Decisions:
    """The writes of some changes, in order; one output may have several."""

    writes: list[Decision] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    #: Changed items whose outputs are as they should be.
    healthy: list[tuple[str, Item]] = field(default_factory=list)


class Reconciler:
    """Decides the writes of one direction."""

    def __init__(self, direction: Direction, *, generation: int, has_served: bool) -> None:
        self._direction = direction
        self._generation = generation
        #: Whether clients have written to the target: then items without a marker are theirs.
        self._has_served = has_served
        self._stored: dict[OutputKey, Item | None] = {}
        self._decisions = Decisions()

    def decide(self, changes: Sequence[Change], keep: Callable[[], None]) -> Decisions:
        """Read the changed items as they are now, and return the writes for their outputs.

        It calls `keep` after the rules of each item, so that slow ones do not outlast a lease.
        """
        self._stored, self._decisions = {}, Decisions()
        current = self.read_current(changes)
        outputs, former = [], []
        for change, item in zip(changes, current, strict=True):
            outputs.append(self._direction.outputs(change.source, item))
            former.append(self._former(change))
            keep()
        self._read_stored(
            [output for each in outputs for output in each.items.values()]
            + [output for each in former for output in each.values()]
        )
        # First the outputs that must be there, so that none of them is removed for a former owner.
        for change, wanted, before in zip(changes, outputs, former, strict=True):
            self._write(change, wanted, before)
        whole = {key for each in outputs for key, output in each.items.items() if output.kind == "put"}
        for change, wanted, before in zip(changes, outputs, former, strict=True):
            for key, output in before.items():
                if key not in wanted.items and key not in whole:
                    self._remove(change, key, output)
        return self._decisions

    def read_current(self, changes: Sequence[Change]) -> list[Item | None]:
        """Read the changed items consistently."""
        return read_items(self._direction.origin, [(change.source, change.key) for change in changes])

    def _former(self, change: Change) -> dict[OutputKey, Output]:
        """Return what a changed item has been, which may be stored as its outputs."""
        found = dict(change.touched)
        for image in change.images:
            found |= self._direction.outputs(change.source, image).items
        return found

    def _read_stored(self, outputs: Iterable[Output]) -> None:
        wanted = {output_key(output.table, output.key): output for output in outputs}
        found = read_items(
            self._direction.destination, [(output.table, output.key) for output in wanted.values()]
        )
        self._stored = dict(zip(wanted, found, strict=True))

    def _write(self, change: Change, outputs: Outputs, former: dict[OutputKey, Output]) -> None:
        dead = list(outputs.dead)
        for key, output in outputs.items.items():
            match output.kind:
                case "put":
                    dead += self._put(change, key, output)
                case "part":
                    self._put_part(change, key, output)
                case "gather":
                    dead += self._gather(change, key, output)
        for key, output in former.items():
            if output.kind == "gather" and key not in outputs.items:
                dead += self._gather(change, key, output)
        self._decisions.dead += dead
        if not dead:
            self._decisions.healthy.append((change.source, change.key))

    def _put(self, change: Change, key: OutputKey, output: Output) -> list[DeadLetter]:
        stored = self._stored.get(key)
        owner = change.owner
        if stored is None:
            self._decide_put(change, key, output, stored)
            return []
        if not self._direction.marks:
            if not self._direction.takes_part(output.table, stored):
                return [_dead(change, _FOREIGN.format(output.table, output.key))]
            if not self._is_equivalent(output, stored):
                self._decide_put(change, key, output, stored)
            return []
        stored_owner = owner_of(stored)
        if stored_owner is None and not self._has_served:
            return [_dead(change, f"the target has an item under {output.key} that no migration wrote")]
        if stored_owner not in (None, owner) and self._still_produces(str(stored_owner), key):
            return [_dead(change, f"the source item {stored_owner} has the same output {output.key}")]
        generation = stored.get(GENERATION, {}).get("N")
        is_same = stored_owner == owner and generation == str(self._generation)
        if not is_same or not self._is_equal(strip_markers(stored), output.item):
            self._decide_put(change, key, output, stored)
        return []

    def _is_equal(self, stored: Item, wanted: Item) -> bool:
        # An encrypted field has another ciphertext each time.
        comparable = self._direction.comparable
        return stored == wanted or comparable(stored) == comparable(wanted)

    def _still_produces(self, owner: str, key: OutputKey) -> bool:
        """Return whether another source item has an output now."""
        source, _, text = owner.partition("|")
        declared = self._direction.mapping.sources.get(source)
        if declared is None:
            return False
        own_key = key_of_text(text, declared.key_names)
        (item,) = read_items(self._direction.origin, [(source, own_key)])
        return key in self._direction.outputs(source, item).items

    def _decide_put(self, change: Change, key: OutputKey, output: Output, stored: Item | None) -> None:
        item = output.item
        if self._direction.marks:
            item = mark(item, change.owner, self._generation)
        size = item_size(item)
        action = PutItem(
            table=self._direction.destination.names[output.table],
            item=item,
            condition=self._unchanged(output, stored),
            size=size,
        )
        self._decide(change, key, action, size)
        self._stored[key] = item

    def _put_part(self, change: Change, key: OutputKey, output: Output) -> None:
        stored = self._stored.get(key)
        item = {**output.item, part_marker(change.source): self._part_value(change)}
        absent = [name for name in output.owned if name not in item and name in (stored or {})]
        if stored is not None and not absent and all(stored.get(name) == item[name] for name in item):
            return
        decision = part_update(
            self._direction.destination.names[output.table], output, item, remove=output.owned - item.keys()
        )
        self._decide(change, key, decision, item_size(item))
        kept = {name: value for name, value in (stored or {}).items() if name not in output.owned}
        self._stored[key] = {**kept, **item}

    def _part_value(self, change: Change) -> dict[str, str]:
        return {"S": part_value(change.owner, self._generation)}

    def _gather(self, change: Change, key: OutputKey, output: Output) -> list[DeadLetter]:
        try:
            item = self._direction.gather(output)
        except Exception as error:  # noqa: BLE001 - whatever an inverse raises is a dead letter
            cause = str(error) if isinstance(error, SolotableError) else f"{type(error).__name__}: {error}"
            return [_dead(change, cause)]
        stored = self._stored.get(key)
        if item is None:
            if stored is not None and self._direction.takes_part(output.table, stored):
                self._delete(change, key, output, stored)
            return []
        if stored is not None and not self._direction.takes_part(output.table, stored):
            return [_dead(change, _FOREIGN.format(output.table, output.key))]
        built = Output(output.table, output.key, item, output.entity)
        if stored is None or not self._is_equivalent(built, stored):
            self._decide_put(change, key, built, stored)
        return []

    def _is_equivalent(self, output: Output, stored: Item) -> bool:
        """Return whether a stored source item becomes the same items as one that an inverse built.

        An inverse does not know attributes that no entity has. They stay while the entities do not change.
        """
        if stored == output.item or self._direction.other is None:
            return stored == output.item
        mapped = [self._direction.other.outputs(output.table, item) for item in (stored, output.item)]
        return not mapped[0].dead and mapped[0].items == mapped[1].items

    def _remove(self, change: Change, key: OutputKey, output: Output) -> None:
        """Remove an output that a source item had, if it is still that item's."""
        stored = self._stored.get(key)
        if stored is None or output.kind == "gather":
            return
        if output.kind == "part":
            self._remove_part(change, key, output, stored)
        elif self._owns(change, key, stored):
            self._delete(change, key, output, stored)

    def _owns(self, change: Change, key: OutputKey, stored: Item) -> bool:
        if self._direction.marks:
            owner = owner_of(stored)
            return owner == change.owner or (owner is None and self._has_served)
        if self._direction.other is None:
            return True
        # An item of a source belongs to the item of the target that it becomes.
        origin = self._direction.other.outputs(key[0], stored)
        return bool(origin.dead) or output_key(change.source, change.key) in origin.items

    def _remove_part(self, change: Change, key: OutputKey, output: Output, stored: Item) -> None:
        mine = part_marker(change.source)
        owners = part_owners(stored)
        if mine in owners and owners[mine][1] != change.owner:
            return
        if not owners.keys() - {mine} and (mine in owners or self._has_served):
            self._delete(change, key, output, stored)
            return
        names = (output.owned | {mine}) & stored.keys()
        if names:
            table = self._direction.destination.names[output.table]
            self._decide(change, key, part_update(table, output, {}, remove=names), 0)
            self._stored[key] = {name: value for name, value in stored.items() if name not in names}

    def _delete(self, change: Change, key: OutputKey, output: Output, stored: Item | None) -> None:
        action = DeleteItem(
            table=self._direction.destination.names[output.table],
            key=output.key,
            condition=self._unchanged(output, stored),
        )
        self._decide(change, key, action, 0)
        self._stored[key] = None

    def _unchanged(self, output: Output, stored: Item | None) -> Condition | None:
        """Return the condition that an item still has the owner which the decision is based on."""
        if not self._direction.marks:
            return None
        if stored is None:
            return Not(Exists((next(iter(output.key)),)))
        owner = owner_of(stored)
        if owner is None:
            return Not(Exists((MARKER,)))
        return Compare("=", Attr((MARKER,)), Const({"S": owner}))

    def _decide(self, change: Change, key: OutputKey, action: WriteAction, size: int) -> None:
        self._decisions.writes.append(
            Decision(output=key, action=action, size=size, source=change.source, key=change.key)
        )


def read_items(side: Side, keys: Sequence[tuple[str, Item]]) -> list[Item | None]:
    """Read items consistently, by the name of their table in the mapping and their key."""
    found: list[Item | None] = [None] * len(keys)
    for name in dict.fromkeys(name for name, _ in keys):
        places = [at for at, (table, _) in enumerate(keys) if table == name]
        wanted = [keys[at][1] for at in places]
        items = side.run(get_items(side.scope, side.tables[name], wanted, consistent=True))
        for at, item in zip(places, items, strict=True):
            found[at] = item
    return found


def part_update(table: str, output: Output, item: Item, *, remove: Iterable[str]) -> UpdateItem:
    """Return the update of a part: its attributes, and the owned ones that it no longer has."""
    actions = [Assign((name,), Const(value)) for name, value in item.items() if name not in output.key]
    removed = [Remove((name,)) for name in sorted(remove)]
    # DynamoDB: an update that only removes does not create an item.
    update = Update((*actions, *removed), creates=bool(actions))
    return UpdateItem(table=table, key=output.key, update=update)


def _dead(change: Change, cause: str) -> DeadLetter:
    return DeadLetter(change.source, change.key, cause)
