"""Which changes of an entity have results that only its model can judge.

A value that is set is checked by itself. What is added to, appended to or changed inside is known only
once it is read; where the model has a rule about it, it has to be. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel

from solotable._entities.declare.annotations import bare, parts
from solotable._entities.patterns.paths import Place, is_fixed, resolve

from .field_codecs import MARKERS

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

_NUMBERS = (int, float, Decimal)


class RequestedChanges(Protocol):
    """What a caller wants changed, by dotted names."""

    @property
    def set(self) -> Mapping[str, Any]:
        """Values that are given."""
        ...

    @property
    def remove(self) -> Iterable[str]:
        """What is taken away."""
        ...

    @property
    def add(self) -> Mapping[str, Any]:
        """Numbers and members that are added."""
        ...

    @property
    def append(self) -> Mapping[str, Any]:
        """What is put at the end of lists."""
        ...

    @property
    def delete(self) -> Mapping[str, Any]:
        """Members that are taken out of sets."""
        ...


def fields_to_read(plan: Plan, changes: RequestedChanges) -> frozenset[str]:
    """Return the fields whose stored values must be read to know whether a change fits the model."""
    if plan.entity.__pydantic_decorators__.model_validators:
        # They may look at every field; the version stands for all of them.
        return frozenset(plan.attributes if plan.version is None else (plan.version,))
    texts = (*changes.set, *changes.remove, *changes.add, *changes.append, *changes.delete)
    ruled = {text for text in texts if _is_ruled_around(plan, text)}
    ruled |= {text for text in changes.remove if _is_required(plan, text)}
    ruled |= {text for text, value in changes.add.items() if not _adds_freely(resolve(plan, text), value)}
    ruled |= {text for text in (*changes.append, *changes.delete) if _is_ruled(resolve(plan, text))}
    return frozenset(_steps(text)[0] for text in ruled)


def _steps(text: str) -> list[str]:
    """Return a path's beginnings and itself: `a`, `a.b`, `a.b[0]`."""
    ends = [at for at, character in enumerate(text) if at and character in ".["]
    return [*(text[:end] for end in ends), text]


def _is_ruled_around(plan: Plan, text: str) -> bool:
    """Whether there is a rule about the whole in which a change is made, or a function for its field."""
    steps = _steps(text)
    if _has_function(plan.entity, steps[0]):
        return True
    return any(_is_container_ruled(resolve(plan, step)) for step in steps[:-1])


def _is_container_ruled(place: Place) -> bool:
    if _rules(place.constraints):
        return True
    for part in parts(place.annotation):
        kind, metadata = bare(part, ())
        if _rules(metadata) or is_fixed(kind) or (_is_model(kind) and _has_function(kind)):
            return True
    return False


def _is_required(plan: Plan, text: str) -> bool:
    """Whether a part of a nested model is to be removed that the model requires."""
    *around, _ = _steps(text)
    if not around:
        return False
    name = text[len(around[-1]) :].lstrip(".")
    kinds = [bare(part, ())[0] for part in parts(resolve(plan, around[-1]).annotation)]
    return any(_is_model(kind) and kind.model_fields[name].is_required() for kind in kinds)


def _adds_freely(place: Place, value: Any) -> bool:
    """Whether adding breaks no rule: there is none, or it leads away from all bounds."""
    if place.attribute.kind != "N":
        return not _is_ruled(place)
    arms = [bare(arm, place.constraints) for arm in parts(place.annotation) if arm is not type(None)]
    if len(arms) != 1 or arms[0][0] not in _NUMBERS:
        return False
    rules = [rule for rule in arms[0][1] if not isinstance(rule, MARKERS)]
    # DynamoDB: what is added to an absent number is added to 0, so the addition itself is in bounds too.
    return all(_leads_away(rule, value) for rule in rules)


def _leads_away(rule: Any, value: Any) -> bool:
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


def _is_ruled(place: Place) -> bool:
    """Whether there is a rule about a list or set, or about what it holds."""
    return _rules(place.constraints) or any(_inner_rules(place.annotation))


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
    """Whether functions of a model's own judge a field of it, or anything."""
    written = model.__pydantic_decorators__
    if field is None:
        return bool(written.model_validators or written.field_validators or written.validators)
    named = [
        *(each.info.fields for each in written.field_validators.values()),
        *(each.info.fields for each in written.validators.values()),
    ]
    return any(field in fields or "*" in fields for fields in named)


def _rules(metadata: Iterable[Any]) -> bool:
    return any(not isinstance(each, MARKERS) for each in metadata)
