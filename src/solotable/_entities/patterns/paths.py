"""Paths to values in an item, by the model's field names: `address.city`, `lines[2].sku`.

A path has the type of its value, so the field's codec encodes values for it.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from solotable._entities.codecs.containers import or_none
from solotable._entities.codecs.field_codecs import Attribute, attribute_of
from solotable._entities.declare.table import suggestion
from solotable._expressions.ast import Path
from solotable._values import AttributeValue
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path in an entity: its document path in the item, and the codec of its value."""

    owner: str
    path: Path
    annotation: Any
    attribute: Attribute
    #: Pydantic's constraints from Annotated.
    constraints: tuple[Any, ...] = ()

    @property
    def validated(self) -> Any:
        """The type with its constraints, for Pydantic."""
        return Annotated[(self.annotation, *self.constraints)] if self.constraints else self.annotation

    def member(self, name: str) -> FieldPath:
        """Return the path of a nested model's field, or of a map's member."""
        self.check_inside(name)
        kind = _plain(self.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            info = kind.model_fields.get(name)
            if info is None:
                raise DeclarationError(
                    f"{self.owner} has no field {name!r}; {suggestion(name, kind.model_fields)}"
                )
            return self._at(name, info, None)
        if get_origin(kind) in (dict, Mapping):
            return self._at(name, FieldInfo.from_annotation(get_args(kind)[1]), name)
        raise DeclarationError(f"{self.owner} is {_shown(kind)} and has no member {name!r}.")

    def element(self, position: int) -> FieldPath:
        """Return the path of a list's element."""
        self.check_inside(f"[{position}]")
        kind = _plain(self.annotation)
        if get_origin(kind) not in (list, tuple):
            raise DeclarationError(f"{self.owner} is {_shown(kind)} and has no element [{position}].")
        if position < 0:
            raise DeclarationError(
                f"{self.owner}[{position}]: DynamoDB counts elements from 0 and has no negative positions."
            )
        arguments = get_args(kind)
        if not is_fixed(kind):
            return self._at(f"[{position}]", FieldInfo.from_annotation(arguments[0]), position)
        if position >= len(arguments):
            raise DeclarationError(
                f"{self.owner} has {len(arguments)} elements; [{position}] is out of range."
            )
        return self._at(f"[{position}]", FieldInfo.from_annotation(arguments[position]), position)

    def contents(self) -> FieldPath:
        """Return a path for the members of a list or set; its document path is the container's."""
        kind = _plain(self.annotation)
        arguments = get_args(kind)
        if get_origin(kind) not in (list, tuple, set, frozenset) or not arguments:
            return self
        info = FieldInfo.from_annotation(arguments[0])
        attribute = attribute_of(self.owner, "element", info, flat=False, by_alias=self.attribute.by_alias)
        return FieldPath(self.owner, self.path, info.annotation, attribute)

    def check_inside(self, name: str) -> None:
        """Raise DeclarationError for a part of a value that DynamoDB cannot look into."""
        if self.attribute.opaque is not None:
            raise DeclarationError(
                f"{self.owner} is {self.attribute.opaque}, so DynamoDB cannot change or compare {name} "
                f"in it; set the whole field, or use modify()."
            )

    def check_stored(self) -> None:
        """Raise DeclarationError for a field that only the primary key contains."""
        if not self.attribute.stored:
            raise DeclarationError(
                f"{self.owner} has stored=False: only the key contains it, so a condition cannot name it; "
                f"use an argument or a range of the key."
            )

    def check_comparable(self) -> None:
        """Raise DeclarationError for a value that DynamoDB cannot compare."""
        if self.attribute.opaque is not None:
            raise DeclarationError(
                f"{self.owner} is {self.attribute.opaque}, so a condition cannot compare it; "
                f"use exists(...) or missing(...), or store what you compare in another field."
            )

    def encode(self, value: Any) -> AttributeValue:
        """Encode a value for this path."""
        try:
            encoded = self.attribute.encode(value)
        except DataError as error:
            # A field's error starts with the field; the error of a list's element starts with the list.
            text = str(error)
            message = text if text.startswith(f"{self.owner} ") else f"{self.owner} = {value!r}: {text}"
            raise DataError(message, public_message=error.public_message) from error
        except (AttributeError, TypeError, ValueError) as error:
            wanted = f"{self.owner} is {_shown(self.annotation)}"
            raise DataError(f"{wanted}, got {value!r}.", public_message=f"{wanted}.") from error
        if encoded is None:
            raise DataError(
                f"{self.owner} = {value!r} is stored as an absent attribute; use exists() or missing().",
                public_message=f"{self.owner} cannot store the given value.",
            )
        return encoded

    def _at(self, name: str, info: FieldInfo, step: str | int | None) -> FieldPath:
        attribute = attribute_of(self.owner, name, info, flat=False, by_alias=self.attribute.by_alias)
        if step is not None and attribute.optional:
            # None in a list or map is stored as NULL: leaving it out would change the length.
            attribute = replace(attribute, encode=or_none(attribute.encode, null=True))
        owner = f"{self.owner}{name}" if name.startswith("[") else f"{self.owner}.{name}"
        path = (*self.path, attribute.wire if step is None else step)
        return FieldPath(owner, path, info.annotation, attribute, tuple(info.metadata))


def field_path(plan: Plan, name: str) -> FieldPath:
    """Return the path of a field of an entity."""
    attribute = plan.attributes.get(name)
    if attribute is None:
        if name in plan.entity.model_computed_fields:
            raise DeclarationError(
                f"{plan.name}.{name} is a computed field, which is not stored; use the fields that it reads."
            )
        raise DeclarationError(f"{plan.name} has no field {name!r}; {suggestion(name, plan.attributes)}")
    info = plan.entity.model_fields[name]
    return FieldPath(
        f"{plan.name}.{name}", (attribute.wire,), info.annotation, attribute, tuple(info.metadata)
    )


def resolve(plan: Plan, text: str) -> FieldPath:
    """Parse a path: `notes`, `address.city`, `lines[2].sku`."""
    steps, at = [], 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (at == 0 and found[1] is None):
            raise DeclarationError(f"{plan.name}: {text!r} is not a path; write it like a.b[0].c.")
        steps.append(found[1] if found[1] is not None else int(found[2]))
        at = found.end()
    if not steps:
        raise DeclarationError(f"{plan.name}: the path is empty; name a field.")
    path = field_path(plan, str(steps[0]))
    for step in steps[1:]:
        path = path.element(step) if isinstance(step, int) else path.member(step)
    return path


def is_fixed(kind: Any) -> bool:
    """Return whether a type is a tuple with a type for each element."""
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


def _plain(annotation: Any) -> Any:
    """Return a type without Annotated and without `| None`."""
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [each for each in get_args(annotation) if each is not type(None)]
        if len(rest) == 1:
            return _plain(rest[0])
    return annotation


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
