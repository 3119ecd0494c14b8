"""Values for fields by their types and Pydantic's constraints. Everything comes from a given Random."""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any, Final, Literal, get_args, get_origin
from uuid import UUID

import pydantic
from pydantic.fields import FieldInfo

from solotable._entities.codecs.opaque.blob import Blob
from solotable._entities.declare.annotations import bare, is_email_str, parts
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .regex_texts import text_matching
from .texts import email, text_for, url, words

_START: Final = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS: Final = 2 * 365 * 86_400
_DAY: Final = 86_400
#: Optional fields that are None, of ten.
_NONE_OF_TEN: Final = 2
_DEEPEST: Final = 3
_LISTS: Final = (list, tuple, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet)
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping)
#: Numbers without bounds are below this, so that they fit into keys with six digits.
_LARGEST: Final = 10_000


class NoValue(Exception):
    """The type has no generated value; the text says why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Pydantic's constraints of one field."""

    low: Any = None
    high: Any = None
    above: Any = None
    below: Any = None
    multiple_of: Any = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    places: int | None = None

    @classmethod
    def of(cls, metadata: Sequence[Any]) -> Bounds:
        """Read the constraints from the metadata of Annotated and Field."""
        found: dict[str, Any] = {}
        for meta in metadata:
            for each in (meta, *getattr(meta, "metadata", ())):
                for name, attribute in _CONSTRAINTS.items():
                    value = getattr(each, attribute, None)
                    if value is not None and not callable(value):
                        found[name] = value
        return cls(**found)


_CONSTRAINTS: Final = {
    "low": "ge",
    "high": "le",
    "above": "gt",
    "below": "lt",
    "multiple_of": "multiple_of",
    "shortest": "min_length",
    "longest": "max_length",
    "pattern": "pattern",
    "places": "decimal_places",
}


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Makes values; `largest` limits numbers that have no upper bound."""

    random: Random
    largest: int = _LARGEST

    def of_field(self, name: str, info: FieldInfo, *, depth: int = 0) -> Any:
        """Return a value for a field of a model."""
        return self.of_type(info.annotation, tuple(info.metadata), name, depth=depth)

    def of_type(self, annotation: Any, metadata: Sequence[Any], name: str, *, depth: int = 0) -> Any:
        """Return a value of a type, or raise NoValue."""
        annotation, metadata = bare(annotation, metadata)
        arms = parts(annotation)
        present = [arm for arm in arms if bare(arm, ())[0] is not type(None)]
        if len(present) < len(arms) and (
            not present or depth >= _DEEPEST or self.random.randrange(10) < _NONE_OF_TEN
        ):
            return None
        if len(arms) > 1:
            return self.of_type(self.random.choice(present), metadata, name, depth=depth)
        return self._plain(annotation, metadata, name, depth)

    def _plain(self, kind: Any, metadata: Sequence[Any], name: str, depth: int) -> Any:
        origin, bounds = get_origin(kind) or kind, Bounds.of(metadata)
        if origin is Literal:
            return self.random.choice(get_args(kind))
        if isinstance(origin, type) and issubclass(origin, Enum):
            return self.random.choice(list(origin))
        if origin in _LISTS:
            return self._members(kind, origin, bounds, name, depth)
        if origin in _MAPS:
            return self._map(kind, bounds, name, depth)
        if isinstance(origin, type) and issubclass(origin, pydantic.BaseModel):
            return self.model(origin, depth=depth + 1)
        if is_email_str(kind):
            return email(self.random)
        make = _SCALARS.get(kind) if isinstance(kind, abc.Hashable) else None
        if make is not None:
            return make(self, bounds, name)
        if getattr(kind, "__name__", "").endswith("Url"):
            return url(self.random)
        raise NoValue(f"the type {kind!r} has no generated value")

    def model(self, model: type[pydantic.BaseModel], *, depth: int) -> Any:
        """Return an instance of a nested model."""
        values = {
            name: self.of_field(name, info, depth=depth)
            for name, info in model.model_fields.items()
            if info.is_required() or depth < _DEEPEST
        }
        try:
            return model.model_validate(values, by_name=True, by_alias=True)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise NoValue(f"{model.__name__}.{where}: {first['msg']}") from None

    def _members(self, kind: Any, origin: Any, bounds: Bounds, name: str, depth: int) -> Any:
        args = get_args(kind)
        if origin is tuple and args and args[-1] is not Ellipsis:
            return tuple(self.of_type(arg, (), name, depth=depth + 1) for arg in args if arg != ())
        shortest = bounds.shortest or 0
        count = shortest if depth >= _DEEPEST else self._count(shortest, bounds.longest, 3)
        inner = args[0] if args else str
        found = [self.of_type(inner, (), name, depth=depth + 1) for _ in range(count)]
        if origin in (list, tuple, abc.Sequence, abc.MutableSequence):
            return tuple(found) if origin is tuple else found
        members = set(found)
        for _ in range(100 * shortest):
            if len(members) >= shortest:
                break
            members.add(self.of_type(inner, (), name, depth=depth + 1))
        return frozenset(members) if origin is frozenset else members

    def _map(self, kind: Any, bounds: Bounds, name: str, depth: int) -> Any:
        key, value = get_args(kind) or (str, str)
        count = self._count(bounds.shortest or 0, bounds.longest, 3) if depth < _DEEPEST else 0
        names = {self._key(key, name) for _ in range(count)}
        return {each: self.of_type(value, (), name, depth=depth + 1) for each in sorted(names, key=repr)}

    def _key(self, kind: Any, name: str) -> Any:
        return self.random.choice(WORD_KEYS) if bare(kind, ())[0] is str else self.of_type(kind, (), name)

    def _count(self, shortest: int, longest: int | None, usual: int) -> int:
        high = max(shortest, usual)
        return self.random.randint(shortest, high if longest is None else min(high, longest))

    def integer(self, bounds: Bounds, _: str = "") -> int:
        """Return an int within its bounds."""
        low = _first(bounds.low, None if bounds.above is None else math.floor(bounds.above) + 1, default=None)
        high = _first(
            bounds.high, None if bounds.below is None else math.ceil(bounds.below) - 1, default=None
        )
        bottom = math.ceil(low) if low is not None else min(0, high if high is not None else 0)
        top = math.floor(high) if high is not None else max(bottom, 0) + self.largest
        step = int(bounds.multiple_of or 1)
        smallest, biggest = -(-int(bottom) // step), int(top) // step
        if biggest < smallest:
            raise NoValue(f"no whole number is within its bounds, {bottom} to {top}")
        return self.random.randint(smallest, biggest) * step

    def decimal(self, bounds: Bounds, _: str = "") -> Decimal:
        """Return a Decimal within its bounds, with at most two places."""
        scale: int = 10 ** min(bounds.places if bounds.places is not None else 2, 2)
        step = bounds.multiple_of
        if step is not None:
            scaled = {name: _over(getattr(bounds, name), step) for name in ("low", "high", "above", "below")}
            return Decimal(self.integer(Bounds(**scaled))) * Decimal(str(step))
        scaled = {name: _times(getattr(bounds, name), scale) for name in ("low", "high", "above", "below")}
        return Decimal(self.integer(Bounds(**scaled))) / Decimal(scale)

    def text(self, bounds: Bounds, name: str) -> str:
        """Return a text within its lengths that matches its pattern."""
        if bounds.pattern is not None:
            pattern = getattr(bounds.pattern, "pattern", bounds.pattern)
            found = text_matching(pattern, self.random)
            if found is None:
                raise NoValue(f"no text can be generated for the pattern {pattern!r}")
        else:
            found = text_for(name, self.random)
        while bounds.shortest is not None and len(found) < bounds.shortest:
            found += " " + words(self.random).lower() if bounds.pattern is None else "x"
        if bounds.longest is not None and len(found) > bounds.longest:
            found = found[: bounds.longest].strip().ljust(bounds.shortest or 0, "x")
        return found

    def moment(self, _: Bounds, __: str = "") -> datetime:
        """Return a time in 2024 or 2025, in whole seconds, so that it fits into keys of any precision."""
        return _START + timedelta(seconds=self.random.randrange(_SECONDS))


#: Keys of generated maps.
WORD_KEYS: Final = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


def _first(*values: Any, default: Any) -> Any:
    return next((value for value in values if value is not None), default)


def _times(value: Any, factor: Any) -> Any:
    return None if value is None else Decimal(str(value)) * factor


def _over(value: Any, divisor: Any) -> Any:
    return None if value is None else Decimal(str(value)) / Decimal(str(divisor))


def _bytes(source: ValueSource, bounds: Bounds, _: str) -> bytes:
    shortest = bounds.shortest or 0
    return source.random.randbytes(min(max(shortest, 16), bounds.longest or max(shortest, 16)))


Make = Callable[[ValueSource, Bounds, str], Any]
_SCALARS: Final[Mapping[Any, Make]] = {
    str: ValueSource.text,
    Any: ValueSource.text,
    int: ValueSource.integer,
    float: lambda source, bounds, name: float(source.decimal(bounds, name)),
    Decimal: ValueSource.decimal,
    bool: lambda source, _, __: source.random.random() < 0.5,
    bytes: _bytes,
    datetime: ValueSource.moment,
    pydantic.AwareDatetime: ValueSource.moment,
    pydantic.PastDatetime: ValueSource.moment,
    pydantic.FutureDatetime: lambda source, bounds, name: source.moment(bounds, name).replace(year=2099),
    date: lambda source, bounds, name: source.moment(bounds, name).date(),
    pydantic.PastDate: lambda source, bounds, name: source.moment(bounds, name).date(),
    pydantic.FutureDate: lambda source, bounds, name: source.moment(bounds, name).date().replace(year=2099),
    time: lambda source, bounds, name: source.moment(bounds, name).time(),
    timedelta: lambda source, _, __: timedelta(seconds=source.random.randrange(_DAY)),
    UUID: lambda source, _, __: UUID(int=source.random.getrandbits(128), version=4),
    Blob: lambda source, bounds, name: Blob.of(source.text(bounds, name)),
    pydantic.SecretStr: lambda source, bounds, name: pydantic.SecretStr(source.text(bounds, name)),
    pydantic.SecretBytes: lambda source, bounds, name: pydantic.SecretBytes(_bytes(source, bounds, name)),
}


def no_value(where: str, reason: str) -> DataError:
    """Return the error for a field without a generated value."""
    name = where.rpartition(".")[2]
    return DataError(f"Cannot generate {where}: {reason}; pass {name}=..., a value or a function of the row.")
