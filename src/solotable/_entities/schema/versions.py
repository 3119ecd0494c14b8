"""The schema versions of an entity: upgrade stored items, and write attributes for older releases.

An attribute of a stored item holds its schema version; an item without it has version 1. A class may also
write the attributes that an upgrade replaced, for releases that do not know the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from solotable._values import AttributeValue, Item, dump, load
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError, NewerSchemaVersion, StoredDataError

from .upgrades import Downgrade, Newer, Record, Upgrade

#: Types of values that an upgrade cannot change in place.
_IMMUTABLE: Final = (str, int, bytes, bool, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersions:
    """The schema versions of one entity."""

    entity: str
    current: int
    #: Whether the class declares its schema version; only then do writes check the stored version.
    declared: bool
    newer: Newer
    upgrades: tuple[Upgrade, ...]
    #: The newest first.
    downgrades: tuple[Downgrade, ...]
    #: The attribute that holds an item's schema version.
    attribute: str
    #: The attribute that holds the oldest version that can still read the item; only with downgrades.
    oldest_attribute: str
    #: Attributes of stored items that upgrades do not get: keys, tag, and the two above.
    hidden: frozenset[str]
    #: Attributes of stored items that do not count as unknown attributes.
    dropped: frozenset[str]
    #: The key attributes of the table.
    key_names: tuple[str, ...]
    #: Attributes that follow from other attributes, or never change.
    implied: frozenset[str]
    _attributes: Mapping[str, AttributeValue] = field(init=False)

    def __post_init__(self) -> None:
        attributes: dict[str, AttributeValue] = {}
        if self.current > 1:
            attributes[self.attribute] = {"N": str(self.current)}
        if self.downgrades:
            attributes[self.oldest_attribute] = {"N": str(self.oldest)}
        object.__setattr__(self, "_attributes", attributes)

    @property
    def oldest(self) -> int:
        """The oldest schema version whose code can read the written items."""
        return self.downgrades[-1].to if self.downgrades else self.current

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """The version attributes of a written item; empty for version 1."""
        return self._attributes

    def version_of(self, item: Item) -> int:
        """Return the schema version of a stored item."""
        return self._number(item, self.attribute, 1)

    def differs(self, item: Item) -> bool:
        """Return whether a put would change the version attributes of a stored item."""
        names = (self.attribute, self.oldest_attribute)
        return any(item.get(name) != self._attributes.get(name) for name in names)

    def is_newer(self, item: Item) -> bool:
        """Return whether only newer code than this can read an item."""
        stored = self.version_of(item)
        return stored > self.current and self._number(item, self.oldest_attribute, stored) > self.current

    def newer_error(self, item: Item) -> NewerSchemaVersion:
        """Return the error for an item that is newer than this code."""
        stored = self.version_of(item)
        return NewerSchemaVersion(
            f"A stored {self.entity} has schema version {stored}, but this code knows versions up to "
            f"{self.current}; deploy code that reads version {stored} everywhere before any code writes "
            f"it.",
            schema_version=stored,
            known=self.current,
        )

    def upgrade(self, item: Item) -> Item:
        """Return a stored item in the current schema version; the same object if it already has it."""
        stored = self.version_of(item)
        if stored >= self.current:
            if self.newer == "raise" and self.is_newer(item):
                raise self.newer_error(item)
            return item
        record = self._record(item)
        before = dict(record)
        for step in self.upgrades[stored - 1 :]:
            record = step.apply(record, self.entity)
            for name in step.replaces:
                record.pop(name, None)
        upgraded = {name: value for name, value in item.items() if name in self.hidden}
        for name, value in record.items():
            if name in self.hidden:
                raise StoredDataError(
                    f"{self.entity}: an upgrade returned {name!r}, which only the store may write."
                )
            same = name in before and value is before[name] and isinstance(value, _IMMUTABLE)
            upgraded[name] = item[name] if same else dump(value)
        return upgraded

    def complete(self, item: Item) -> None:
        """Add the version attributes to an item before a write, and the attributes for older code."""
        item.update(self._attributes)
        if not self.downgrades:
            return
        record = self._record(item)
        for step in self.downgrades:
            record = step.apply(record, self.entity)
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
        except (KeyError, ValueError) as error:
            raise StoredDataError(
                f"A stored {self.entity} has {name} = {value}, which is not a schema version; if the "
                f"attribute is yours, choose another one for the version: Table(..., schema_version='...')."
            ) from error


def build_schema_versions(  # noqa: PLR0913 - each by name
    owner: type,
    *,
    schema_version: int | None,
    newer: Newer,
    attribute: str,
    derived: frozenset[str],
    wires: Iterable[str],
    key_names: tuple[str, ...],
    key_fields: Iterable[str],
) -> SchemaVersions:
    """Collect the upgrades and downgrades of a class, or raise DeclarationError if one is missing."""
    name = owner.__name__
    current = 1 if schema_version is None else schema_version
    if current < 1:
        raise DeclarationError(f"{name}: schema_version={schema_version}; the first schema version is 1.")
    upgrades = _steps(owner, Upgrade)
    downgrades = _steps(owner, Downgrade)
    _check_upgrades(name, current, upgrades)
    _check_downgrades(name, current, upgrades, downgrades)
    fields = frozenset(wires)
    oldest_attribute = f"{attribute}_from"
    reserved = {attribute, oldest_attribute}
    if taken := sorted(reserved & (fields | derived)):
        raise DeclarationError(
            f"{name} has the attribute {taken[0]!r}, in which its table stores the schema versions of items; "
            f"choose another attribute for the versions: Table(..., schema_version='...')."
        )
    for step in upgrades.values():
        for each in step.replaces:
            if each in fields or each in derived:
                raise DeclarationError(
                    f"{name}.{step.name} replaces {each!r}, which is still an attribute of the entity; "
                    f"store the new value under another name."
                )
    replaced = {each for step in upgrades.values() for each in step.replaces}
    return SchemaVersions(
        entity=name,
        current=current,
        declared=schema_version is not None,
        newer=newer,
        upgrades=tuple(upgrades[to] for to in sorted(upgrades)),
        downgrades=tuple(downgrades[to] for to in sorted(downgrades, reverse=True)),
        attribute=attribute,
        oldest_attribute=oldest_attribute,
        hidden=derived | reserved,
        dropped=derived | reserved | replaced,
        key_names=key_names,
        implied=derived | {oldest_attribute, *key_names, *key_fields},
    )


def _steps(owner: type, kind: type[Any]) -> dict[int, Any]:
    declared: dict[str, Any] = {}
    for each in reversed(owner.__mro__):
        # A subclass that uses the name for something else removes the step.
        declared = {name: step for name, step in declared.items() if name not in vars(each)}
        declared |= {name: step for name, step in vars(each).items() if isinstance(step, kind)}
    found: dict[int, Any] = {}
    for name, step in declared.items():
        if step.to in found:
            raise DeclarationError(
                f"{owner.__name__} has two {kind.kind}s to schema version {step.to}: {found[step.to].name} "
                f"and {name}; remove one."
            )
        found[step.to] = step
    return found


def _check_upgrades(name: str, current: int, upgrades: Mapping[int, Upgrade]) -> None:
    missing = [to for to in range(2, current + 1) if to not in upgrades]
    if missing:
        raise DeclarationError(
            f"{name} has schema version {current} but no upgrade to {' and '.join(map(str, missing))}; write "
            f"@upgrade(to={missing[0]}) above a function that takes the attributes of version "
            f"{missing[0] - 1}."
        )
    extra = [step for to, step in upgrades.items() if not 2 <= to <= current]
    if extra:
        raise DeclarationError(
            f"{name}.{extra[0].name} upgrades to schema version {extra[0].to}, but {name} has version "
            f"{current}; write schema_version={max(upgrades)} in the class."
        )


def _check_downgrades(
    name: str, current: int, upgrades: Mapping[int, Upgrade], downgrades: Mapping[int, Downgrade]
) -> None:
    for to, step in downgrades.items():
        where = f"{name}.{step.name}"
        if not 1 <= to < current:
            raise DeclarationError(
                f"{where} downgrades to schema version {to}; the versions before {current} are 1 to "
                f"{current - 1}."
                if current > 1
                else f"{where} downgrades to schema version {to}, but {name} has version 1 only; write "
                f"schema_version=2."
            )
        if not upgrades[to + 1].replaces:
            raise DeclarationError(
                f"{where} fills the attributes that the upgrade to version {to + 1} replaces, but it names "
                f"none; "
                f"write @upgrade(to={to + 1}, replaces=(...))."
            )
        if to + 1 < current and to + 1 not in downgrades:
            raise DeclarationError(
                f"{where} starts from schema version {to + 1}, but no downgrade leads from {current} to it; "
                f"add @downgrade(to={to + 1})."
            )
