"""Find the fields that an update must read, because the model has rules for the result.

A SET of a whole field is validated without a read. The result of an addition, an append or a change inside
a field is known only after a read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel

from solotable._entities.declare.annotations import bare, parts
from solotable._entities.patterns.paths import FieldPath, is_fixed, resolve

from .field_codecs import MARKERS
from .validator_functions import relates_fields

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

_NUMBERS = (int, float, Decimal)


class RequestedChanges(Protocol):
    """The changes of an update, by dotted names."""

    @property
    def set(self) -> Mapping[str, Any]:
        """Values to set."""
        ...

    @property
    def remove(self) -> Iterable[str]:
        """Fields to remove."""
        ...

    @property
    def add(self) -> Mapping[str, Any]:
        """Numbers and set members to add."""
        ...

    @property
    def append(self) -> Mapping[str, Any]:
        """Elements to append to lists."""
        ...

    @property
    def delete(self) -> Mapping[str, Any]:
        """Members to delete from sets."""
        ...

    @property
    def set_if_missing(self) -> Mapping[str, Any]:
        """Values to set where none is stored."""
        ...

    @property
    def prepend(self) -> Mapping[str, Any]:
        """Elements to put at the start of lists."""
        ...


def fields_to_read(plan: Plan, changes: RequestedChanges) -> frozenset[str]:
    """Return the fields whose stored values decide whether the result of an update is valid."""
    if relates_fields(plan.entity):
        # Its validators may read every field. The version changes with every field.
        others = plan.attributes.keys() - plan.primary.fields
        return frozenset(others if plan.version is None else (plan.version,))
    members = (*changes.append, *changes.prepend, *changes.delete)
    texts = (*changes.set, *changes.set_if_missing, *changes.remove, *changes.add, *members)
    texts_to_read = {text for text in texts if _has_rule_around(plan, text)}
    texts_to_read |= {text for text in changes.remove if _is_required(plan, text)}
    texts_to_read |= {
        text for text, value in changes.add.items() if not _adds_freely(resolve(plan, text), value)
    }
    texts_to_read |= {text for text in members if _has_rule(resolve(plan, text))}
    return frozenset(_steps(text)[0] for text in texts_to_read)


def _steps(text: str) -> list[str]:
    """Return all prefixes of a path, and the path: `a`, `a.b`, `a.b[0]`."""
    ends = [at for at, character in enumerate(text) if at and character in ".["]
    return [*(text[:end] for end in ends), text]


def _has_rule_around(plan: Plan, text: str) -> bool:
    """Return whether a container around a change has a rule, or its field has a validator."""
    steps = _steps(text)
    if _has_function(plan.entity, steps[0]):
        return True
    return any(_container_has_rule(resolve(plan, step)) for step in steps[:-1])


def _container_has_rule(path: FieldPath) -> bool:
    if _rules(path.constraints):
        return True
    for part in parts(path.annotation):
        kind, metadata = bare(part, ())
        if _rules(metadata) or is_fixed(kind):
            return True
        if _is_model(kind) and (_has_function(kind) or relates_fields(kind)):
            return True
        if get_origin(kind) is dict and any(_inner_rules(get_args(kind)[0])):
            return True  # The last step of a path is a key, which the codec stores as it is.
    return False


def _is_required(plan: Plan, text: str) -> bool:
    """Return whether a change removes a required field of a nested model."""
    *around, _ = _steps(text)
    if not around:
        return False
    name = text[len(around[-1]) :].lstrip(".")
    kinds = [bare(part, ())[0] for part in parts(resolve(plan, around[-1]).annotation)]
    return any(_is_model(kind) and kind.model_fields[name].is_required() for kind in kinds)


def _adds_freely(path: FieldPath, value: Any) -> bool:
    """Return whether an addition breaks no rule: the field has none, or the value moves away from all "
    "bounds."""
    if path.attribute.kind != "N":
        return not _has_rule(path)
    arms = [bare(arm, path.constraints) for arm in parts(path.annotation) if arm is not type(None)]
    if len(arms) != 1 or arms[0][0] not in _NUMBERS:
        return False
    rules = [rule for rule in arms[0][1] if not isinstance(rule, MARKERS)]
    # DynamoDB adds to 0 if the number is absent, so the value itself must be within the bounds.
    return all(_moves_away(rule, value) for rule in rules)


def _moves_away(rule: Any, value: Any) -> bool:
    match rule:
        case Ge(ge=bound):
            return bool(value >= 0 and value >= bound)
        case Gt(gt=bound):
            return bool(value >= 0 and value > bound)
        case Le(le=bound):
            return bool(value <= 0 and value <= bound)
        case Lt(lt=bound):
            return bool(value <= 0 and value < bound)
    return False


def _has_rule(path: FieldPath) -> bool:
    """Return whether a list or set, or its members, have a rule."""
    return _rules(path.constraints) or any(_inner_rules(path.annotation))


def _inner_rules(annotation: Any) -> Iterator[bool]:
    for part in parts(annotation):
        kind, metadata = bare(part, ())
        yield _rules(metadata) or is_fixed(kind)
        if get_origin(kind) in (list, set, frozenset, tuple, dict):
            for each in get_args(kind):
                yield from _inner_rules(each)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _has_function(model: type[BaseModel], field: str | None = None) -> bool:
    """Return whether a model has validators for a field; without a field, whether it has any."""
    decorators = model.__pydantic_decorators__
    if field is None:
        return bool(decorators.model_validators or decorators.field_validators or decorators.validators)
    named = [
        *(each.info.fields for each in decorators.field_validators.values()),
        *(each.info.fields for each in decorators.validators.values()),
    ]
    return any(field in fields or "*" in fields for fields in named)


def _rules(metadata: Iterable[Any]) -> bool:
    return any(not isinstance(each, MARKERS) for each in metadata)
