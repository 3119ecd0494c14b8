"""The changes of an update: check a caller's changes and translate them to actions. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ValidationError

from solotable._entities.codecs.model_rules import fields_to_read
from solotable._entities.codecs.validator_functions import adapter_of
from solotable._entities.declare.fields import truncate
from solotable._entities.declare.plan import Plan, depth_error
from solotable._entities.patterns.paths import FieldPath, resolve
from solotable._expressions.ast import (
    Action,
    Add,
    Assign,
    Const,
    Delete,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
)
from solotable._expressions.path_overlap import find_clash
from solotable._values import levels
from solotable._values.limits import DEEPEST_VALUE
from solotable.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes that a caller requests, by the names of the model's fields."""

    set: Mapping[str, Any] = field(default_factory=dict)
    remove: Iterable[str] = ()
    add: Mapping[str, Any] = field(default_factory=dict)
    append: Mapping[str, Any] = field(default_factory=dict)
    delete: Mapping[str, Any] = field(default_factory=dict)
    set_if_missing: Mapping[str, Any] = field(default_factory=dict)
    prepend: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *, remove: Iterable[str] = (), **changes: Mapping[str, Any] | None) -> Changes:
        """Return the changes of a caller's arguments; None is the same as no changes."""
        found = {name: given for name, given in changes.items() if given}
        for name, given in found.items():
            if not isinstance(given, Mapping):
                raise DataError(
                    f"{name}= takes a dict of fields and values, got {type(given).__name__}; "
                    f'write {name}={{"field": value}}.'
                )
        return cls(remove=remove or (), **found)

    @property
    def copies(self) -> dict[str, Any]:
        """The changes by argument, in dicts and lists that a hook may change."""
        kinds = ("set", "add", "append", "delete", "set_if_missing", "prepend")
        return {"remove": list(self.remove)} | {kind: deepcopy(dict(getattr(self, kind))) for kind in kinds}

    @property
    def arguments(self) -> dict[str, Any]:
        """The changes as arguments, to compare repeated transactions."""
        # The first release had five kinds of change; a token that it stored must still match.
        return {
            name: each
            for name, each in asdict(self).items()
            if each or name not in ("set_if_missing", "prepend")
        }

    def __post_init__(self) -> None:
        # An update is planned again after a conflict, and an iterator is empty by then.
        if self.remove != ():
            object.__setattr__(self, "remove", _names(self.remove))
        if self.append or self.prepend or self.delete:
            for kind in ("append", "prepend", "delete"):
                given = getattr(self, kind).items()
                lists = {name: list(each) if isinstance(each, Iterator) else each for name, each in given}
                object.__setattr__(self, kind, lists)


def _names(remove: Any) -> tuple[str, ...]:
    if isinstance(remove, str) or not isinstance(remove, Iterable):
        got = "a string" if isinstance(remove, str) else type(remove).__name__
        raise DataError(f"remove= takes a list of fields, got {got}; write remove=[{remove!r}].")
    return tuple(remove)


@dataclass(frozen=True, slots=True)
class ResolvedChanges:
    """The validated changes: actions, and the new values of whole fields (None: removed)."""

    actions: tuple[Action, ...]
    #: Fields whose new value is known before sending.
    known: Mapping[str, Any]
    #: The amounts that are added to numbers.
    added: Mapping[str, Any]
    #: The values that fields get if they have no stored value.
    if_missing: Mapping[str, Any]
    changed: frozenset[str]
    field_paths: Mapping[Path, FieldPath]
    #: Fields whose stored values are needed to validate the result.
    checked: frozenset[str]


def resolve_changes(plan: Plan, changes: Changes) -> ResolvedChanges:
    """Validate the changes of an update and return its actions; raise DataError for an invalid one."""
    actions: list[Action] = []
    known: dict[str, Any] = {}
    added: dict[str, Any] = {}
    if_missing: dict[str, Any] = {}
    field_paths: dict[Path, FieldPath] = {}
    paths: list[Path] = []

    def at(text: str, *, in_place: bool = False) -> FieldPath:
        if not isinstance(text, str):
            raise DataError(f"The update of {plan.name} takes the names of fields, got {text!r}.")
        field_path = resolve(plan, text)
        if in_place:
            field_path.check_inside("its members")
        _check_field(plan, field_path.path, text)
        paths.append(field_path.path)
        field_paths[field_path.path] = field_path
        return field_path

    for text, value in changes.set.items():
        field_path = at(text)
        checked = _validate(field_path, value)
        whole = text in plan.attributes
        # put() stores None as NULL if the field's default is another value; an update does the same.
        removes = checked is None and not field_path.attribute.optional
        encoded = None if removes else field_path.attribute.encode(checked)
        if encoded is not None and len(field_path.path) - 1 + levels(encoded) >= DEEPEST_VALUE:
            raise depth_error(field_path.owner)
        actions.append(
            Remove(field_path.path) if encoded is None else Assign(field_path.path, Const(encoded))
        )
        if whole:
            known[text] = checked
    for text, value in changes.set_if_missing.items():
        field_path = at(text)
        checked = _validate(field_path, value)
        default = field_path.attribute.encode(checked)
        if default is None or "NULL" in default:
            raise DataError(
                f"set_if_missing= takes values, got None for {field_path.owner}; a missing field has none."
            )
        if len(field_path.path) - 1 + levels(default) >= DEEPEST_VALUE:
            raise depth_error(field_path.owner)
        actions.append(Assign(field_path.path, IfNotExists(field_path.path, Const(default))))
        if plan.retention is not None and text == plan.retention.since:
            raise DataError(
                f"set_if_missing= cannot set {field_path.owner}, which starts the retention period; "
                f"use set= with a where= condition."
            )
        if text in plan.attributes:
            if_missing[text] = checked
    for text in changes.remove:
        field_path = at(text)
        if text in plan.attributes:
            _check_removable(plan, text)
            known[text] = _when_absent(plan, text)
        actions.append(Remove(field_path.path))
    for text, value in changes.add.items():
        field_path = at(text, in_place=True)
        if field_path.attribute.kind not in ("N", "SS", "NS", "BS"):
            raise DataError(
                f"add= takes numbers and sets, but {field_path.owner} is neither; use append= for a list."
            )
        actions.append(Add(field_path.path, field_path.encode(value)))
        if text in plan.attributes:
            added[text] = value
    for argument, given in (("append", changes.append), ("prepend", changes.prepend)):
        for text, value in given.items():
            field_path = at(text, in_place=True)
            if field_path.attribute.kind != "L":
                raise DataError(
                    f"{argument}= takes lists, but {field_path.owner} is not a list; use add= or set=."
                )
            stored = IfNotExists(field_path.path, Const({"L": []}))
            new = Const(field_path.encode(list(_members(argument, field_path, value))))
            joined = ListAppend(stored, new) if argument == "append" else ListAppend(new, stored)
            actions.append(Assign(field_path.path, joined))
    for text, value in changes.delete.items():
        field_path = at(text, in_place=True)
        if field_path.attribute.kind not in ("SS", "NS", "BS"):
            raise DataError(
                f"delete= takes members of sets, but {field_path.owner} is not a set; "
                f"use remove= for a field."
            )
        actions.append(Delete(field_path.path, field_path.encode(set(_members("delete", field_path, value)))))
    if not actions:
        raise DataError(
            f"The update of {plan.name} has no changes; pass set=, set_if_missing=, remove=, add=, "
            f"append=, prepend= or delete=.",
            public_message="The update has no changes.",
        )
    _check_overlap(plan, paths, field_paths)
    changed = frozenset(plan.by_wire[str(path[0])].field for path in paths)
    checked = fields_to_read(plan, changes)
    return ResolvedChanges(tuple(actions), known, added, if_missing, changed, field_paths, checked)


def _members(argument: str, field_path: FieldPath, value: Any) -> Iterable[Any]:
    """Return the members that append=, prepend= or delete= got; a string is a value, not its characters."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise DataError(
            f"{argument}= takes a list of members for {field_path.owner}, got {type(value).__name__}; "
            f'write {argument}={{"{field_path.attribute.field}": [value]}}.'
        )
    return value


_adapters: dict[tuple[int, str], tuple[Any, Any]] = {}


def _validate(field_path: FieldPath, value: Any) -> Any:
    """Validate a value against the field's type; raise DataError if it is invalid.

    The model validates the result of the update with the functions that read other fields.
    """
    annotation = field_path.annotation
    key = (id(annotation), field_path.owner)
    found = _adapters.get(key)
    if found is None or found[0] is not annotation:
        found = _adapters[key] = (annotation, adapter_of(field_path.validated))
    try:
        return truncate(found[1].validate_python(value), field_path.attribute.step)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        public = f"{field_path.owner}: {problem}."
        if field_path.attribute.encrypted is not None:
            raise DataError(public, public_message=public) from None
        raise DataError(f"{field_path.owner} = {value!r}: {problem}.", public_message=public) from error


def _check_field(plan: Plan, path: Path, text: str) -> None:
    name = plan.by_wire[str(path[0])].field
    if name in plan.primary.fields:
        raise DataError(
            f"{plan.name}.{name} is part of the primary key and cannot change; create another entity."
        )
    if name in (plan.version, plan.updated, plan.created, *plan.counters):
        raise DataError(f"{plan.name}.{text} is maintained by the store; leave it out of the update.")


def _check_removable(plan: Plan, name: str) -> None:
    info = plan.entity.model_fields[name]
    if info.is_required() and plan.attributes[name].missing is None:
        raise DataError(f"{plan.name}.{name} is required by its model and cannot be removed; set it instead.")


def _when_absent(plan: Plan, name: str) -> Any:
    """Return the value of a field whose attribute is absent."""
    attribute, info = plan.attributes[name], plan.entity.model_fields[name]
    if attribute.missing is not None:
        return attribute.missing()
    if info.default_factory is None:
        return info.default
    if any(name in path.sources for path in plan.indexes):
        raise DataError(
            f"{plan.name}.{name} cannot be removed: it is part of an index key, and its default_factory "
            f"returns a new value at every read; set it instead."
        )
    return None


def _check_overlap(plan: Plan, paths: list[Path], field_paths: Mapping[Path, FieldPath]) -> None:
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise DataError(f"{field_paths[twice].owner} is changed twice in one update; change it once.")
    found = find_clash(tuple(paths))
    if found is not None:
        _, one, other = found
        raise DataError(
            f"{field_paths[one].owner} and {field_paths[other].owner} overlap: one contains the other; "
            f"change only one of them."
        )
