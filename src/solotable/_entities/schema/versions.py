"""Shapes: how the stored items of an entity changed over its releases, and the way from each to the next.

An item says in an attribute of its own which shape it has; without one it has the first. Upgraders
are pure: they take the stored attributes and return those of the next shape, and nothing is handed to
them that could read or write. What an upgrade replaces can be written along for code that is a release
behind, until nobody needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from solotable._values import AttributeValue, Item, dump, load
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError, NewerShape, StoredDataError

from .upgrades import Downgrade, Newer, Record, Upgrade

#: Values that cannot have been changed in place.
_FIXED: Final = (str, int, bytes, bool, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The shapes of one entity."""

    entity: str
    current: int
    #: Whether the entity says which shape it has; only then are writes guarded by it.
    declared: bool
    newer: Newer
    upgrades: tuple[Upgrade, ...]
    #: From the newest to the oldest that is served.
    downgrades: tuple[Downgrade, ...]
    #: The attributes that hold the shape and, where older code is served, the oldest one.
    attribute: str
    since: str
    #: Attributes of stored items that no record shows: keys and tag, and those above.
    hidden: frozenset[str]
    #: What is left out of the unknown attributes of an item.
    dropped: frozenset[str]
    #: The key attributes of the table, and all that follows from other attributes or never changes.
    key_names: tuple[str, ...]
    implied: frozenset[str]
    _mark: Mapping[str, AttributeValue] = field(init=False)

    def __post_init__(self) -> None:
        mark: dict[str, AttributeValue] = {}
        if self.current > 1:
            mark[self.attribute] = {"N": str(self.current)}
        if self.downgrades:
            mark[self.since] = {"N": str(self.oldest)}
        object.__setattr__(self, "_mark", mark)

    @property
    def oldest(self) -> int:
        """The oldest shape whose code can read what is written."""
        return self.downgrades[-1].to if self.downgrades else self.current

    @property
    def mark(self) -> Mapping[str, AttributeValue]:
        """The attributes that say the shape, as they are written; none for the first one."""
        return self._mark

    def of(self, item: Item) -> int:
        """Return the shape of a stored item."""
        return self._number(item, self.attribute, 1)

    def differs(self, item: Item) -> bool:
        """Whether an item is stored otherwise than the entity would store it today."""
        return any(item.get(name) != self._mark.get(name) for name in (self.attribute, self.since))

    def is_newer(self, item: Item) -> bool:
        """Whether an item can only be read by code that is newer than this."""
        stored = self.of(item)
        return stored > self.current and self._number(item, self.since, stored) > self.current

    def refusal(self, item: Item) -> NewerShape:
        """Return the error for an item that is newer than this code."""
        stored = self.of(item)
        return NewerShape(
            f"A stored {self.entity} has shape {stored} and this code knows shapes up to {self.current}; "
            f"deploy the code that reads shape {stored} everywhere before any that writes it.",
            shape=stored,
            known=self.current,
        )

    def raised(self, item: Item) -> Item:
        """Return a stored item in the current shape; it is the same one if it has that already."""
        stored = self.of(item)
        if stored >= self.current:
            if self.newer == "refuse" and self.is_newer(item):
                raise self.refusal(item)
            return item
        record = self._record(item)
        before = dict(record)
        for step in self.upgrades[stored - 1 :]:
            record = step.applied(record, self.entity)
            for name in step.replaces:
                record.pop(name, None)
        made = {name: value for name, value in item.items() if name in self.hidden}
        for name, value in record.items():
            if name in self.hidden:
                raise StoredDataError(
                    f"{self.entity}: an upgrade returned {name!r}, which the store keeps itself."
                )
            same = name in before and value is before[name] and isinstance(value, _FIXED)
            made[name] = item[name] if same else dump(value)
        return made

    def finish(self, item: Item) -> None:
        """Say the shape in an item that is about to be written, and fill what older code needs."""
        item.update(self._mark)
        if not self.downgrades:
            return
        record = self._record(item)
        for step in self.downgrades:
            record = step.applied(record, self.entity)
            for name in self.upgrades[step.to - 1].replaces:
                if name in record:
                    item[name] = dump(record[name])
                else:
                    item.pop(name, None)

    def _record(self, item: Item) -> Record:
        return {name: load(value) for name, value in item.items() if name not in self.hidden}

    def _number(self, item: Item, name: str, absent: int) -> int:
        value = item.get(name)
        if value is None:
            return absent
        try:
            return int(value["N"])
        except (KeyError, ValueError) as fault:
            raise StoredDataError(
                f"A stored {self.entity} has {name} = {value}, which is no shape; if the attribute is your "
                f"own, name another one: Table(..., shape='...')."
            ) from fault


def build_shapes(  # noqa: PLR0913 - what the steps are checked against, each by name
    owner: type,
    *,
    shape: int | None,
    newer: Newer,
    attribute: str,
    derived: frozenset[str],
    wires: Iterable[str],
    key_names: tuple[str, ...],
    key_fields: Iterable[str],
) -> Shapes:
    """Collect the steps that a class declares, or raise the DeclarationError that says what is missing."""
    name = owner.__name__
    current = 1 if shape is None else shape
    if current < 1:
        raise DeclarationError(f"{name}: the first shape is 1; shape={shape} was given.")
    upgrades = _steps(owner, Upgrade)
    downgrades = _steps(owner, Downgrade)
    _judge_upgrades(name, current, upgrades)
    _judge_downgrades(name, current, upgrades, downgrades)
    fields = frozenset(wires)
    since = f"{attribute}_from"
    own = {attribute, since}
    if taken := sorted(own & (fields | derived)):
        raise DeclarationError(
            f"{name} keeps {taken[0]!r}, in which its table keeps the shapes of items; "
            f"name another attribute for these: Table(..., shape='...')."
        )
    for step in upgrades.values():
        for each in step.replaces:
            if each in fields or each in derived:
                raise DeclarationError(
                    f"{name}.{step.name} replaces {each!r}, which is an attribute of the entity today; "
                    f"keep the new value under another name."
                )
    replaced = {each for step in upgrades.values() for each in step.replaces}
    return Shapes(
        entity=name,
        current=current,
        declared=shape is not None,
        newer=newer,
        upgrades=tuple(upgrades[to] for to in sorted(upgrades)),
        downgrades=tuple(downgrades[to] for to in sorted(downgrades, reverse=True)),
        attribute=attribute,
        since=since,
        hidden=derived | own,
        dropped=derived | own | replaced,
        key_names=key_names,
        implied=derived | {since, *key_names, *key_fields},
    )


def _steps(owner: type, kind: type[Any]) -> dict[int, Any]:
    declared: dict[str, Any] = {}
    for each in reversed(owner.__mro__):
        # What a subclass calls by the same name stands in its place.
        declared = {name: step for name, step in declared.items() if name not in vars(each)}
        declared |= {name: step for name, step in vars(each).items() if isinstance(step, kind)}
    found: dict[int, Any] = {}
    for name, step in declared.items():
        if step.to in found:
            raise DeclarationError(
                f"{owner.__name__} has two {kind.kind}s to shape {step.to}: {found[step.to].name} and "
                f"{name}; one step leads to each shape."
            )
        found[step.to] = step
    return found


def _judge_upgrades(name: str, current: int, upgrades: Mapping[int, Upgrade]) -> None:
    missing = [to for to in range(2, current + 1) if to not in upgrades]
    if missing:
        raise DeclarationError(
            f"{name} has shape {current} and no upgrade to {' and '.join(map(str, missing))}; write "
            f"@upgrade(to={missing[0]}) over a function from the attributes of shape {missing[0] - 1}."
        )
    extra = [step for to, step in upgrades.items() if not 2 <= to <= current]
    if extra:
        raise DeclarationError(
            f"{name}.{extra[0].name} leads to shape {extra[0].to}, but {name} has shape {current}; "
            f"write shape={max(upgrades)} in the class."
        )


def _judge_downgrades(
    name: str, current: int, upgrades: Mapping[int, Upgrade], downgrades: Mapping[int, Downgrade]
) -> None:
    for to, step in downgrades.items():
        if not 1 <= to < current:
            raise DeclarationError(
                f"{name}.{step.name} leads to shape {to}, but the shapes before {current} are 1 to "
                f"{current - 1}."
                if current > 1
                else f"{name}.{step.name} leads to shape {to}, but {name} has only had one; write shape=2."
            )
        if not upgrades[to + 1].replaces:
            raise DeclarationError(
                f"{name}.{step.name} fills what the upgrade to shape {to + 1} replaces, and that names "
                f"nothing; write @upgrade(to={to + 1}, replaces=(...))."
            )
        if to + 1 < current and to + 1 not in downgrades:
            raise DeclarationError(
                f"{name}.{step.name} starts from shape {to + 1}, and nothing leads there from {current}; "
                f"add @downgrade(to={to + 1})."
            )
