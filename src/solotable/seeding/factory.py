"""Factory: builds valid entities from a model, the same for the same seed. Stores nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.declare.annotations import bare, parts
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import is_from_scope
from solotable._entities.declare.table import suggestion
from solotable._entities.traits.history import History
from solotable._entities.traits.unique import UniqueRule
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .values import Bounds, NoValue, ValueSource, no_value

E = TypeVar("E", bound=Entity)
_ATTEMPTS: Final = 60
_ID_LENGTH: Final = 12
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The entity that is being built, for functions that return the value of a field."""

    #: The number of the entity, from 0.
    number: int
    random: Random
    #: The parent of this entity; None without parents.
    parent: Any
    #: The values of the fields before this one.
    values: Mapping[str, Any]


class Factory(Generic[E]):
    """Builds entities: `Factory(User, seed=7, country="GB").build()`.

    - `seed` decides all values: the same seed builds the same entities.
    - `parents` are entities whose key fields the built entities take over, in turn.
    - Other arguments set fields: each is a value, or a function that takes the `Row` and returns one.

    Fields that the store maintains keep their defaults, and keys and unique fields are distinct.
    """

    def __init__(
        self, entity: type[E], /, *, seed: int = 0, parents: Entity | Iterable[Entity] = (), **fields: Any
    ) -> None:
        self._plan = entity.plan()
        self._entity = entity
        self._seed = seed
        self._parents: Sequence[Entity] = (parents,) if isinstance(parents, Entity) else tuple(parents)
        self._fields = self._checked(fields)
        self._number = 0
        self._taken: set[str] = set()
        self._unique = [trait for trait in self._plan.traits if isinstance(trait, UniqueRule)]
        self._kept = {name for name, each in self._plan.attributes.items() if _is_maintained(each)}
        for trait in self._plan.traits:
            if isinstance(trait, History) and trait.restored_from is not None:
                self._kept.add(trait.restored_from)

    def build(self, **fields: Any) -> E:
        """Return the next entity; arguments set its fields."""
        number, self._number = self._number, self._number + 1
        given = self._fields | self._checked(fields)
        problem: DataError | None = None
        for attempt in range(_ATTEMPTS):
            try:
                built = self._attempt(number, attempt, given)
            except DataError as error:
                problem = problem or error
                continue
            places = self._places(built)
            if self._taken.isdisjoint(places):
                self._taken.update(places)
                return built
        if problem is not None:
            raise problem
        raise DataError(
            f"Cannot build {self._plan.name} number {number + 1}: its key or a unique field repeats after "
            f"{_ATTEMPTS} attempts; pass more different values for {', '.join(self._plan.primary.parts)}."
        )

    def build_many(self, count: int) -> list[E]:
        """Return the next entities."""
        return [self.build() for _ in range(count)]

    def _attempt(self, number: int, attempt: int, given: Mapping[str, Any]) -> E:
        plan = self._plan
        # Independent of the count: the first ten of a hundred are the ten of ten.
        random = Random(f"{self._seed}/{plan.tag}/{number}/{attempt}")  # noqa: S311 - sample data
        # Later attempts use smaller numbers, because a key such as {order:02d} has room for few digits.
        source = ValueSource(random, largest=10 ** (4 - attempt % 4))
        parent = self._parents[number % len(self._parents)] if self._parents else None
        inherited = {} if parent is None else _inherited(parent)
        values: dict[str, Any] = {}
        for name, info in self._entity.model_fields.items():
            if name in given:
                value = given[name]
                row = Row(number=number, random=random, parent=parent, values=dict(values))
                values[name] = value(row) if callable(value) else value
            elif name in inherited:
                values[name] = inherited[name]
            elif not self._keeps_default(name, info):
                values[name] = self._generated(source, name, info, number, attempt)
        try:
            built = self._entity.model_validate(values, by_name=True, by_alias=True)
            if plan.tenant is None or not is_from_scope(getattr(built, plan.tenant)):
                plan.encode(built.__dict__)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, (plan.name, *first["loc"])))
            raise no_value(where, f"its model rejects the generated value: {first['msg']}") from None
        return built

    def _generated(self, source: ValueSource, name: str, info: FieldInfo, number: int, attempt: int) -> Any:
        try:
            if self._is_id(name):
                found = _identifier(info, f"{self._seed}/{self._plan.tag}/{name}/{number}/{attempt}")
                if found is not None:
                    return found
            return source.of_field(name, info)
        except NoValue as reason:
            if not info.is_required():
                return info.get_default(call_default_factory=True, validated_data={})
            raise no_value(f"{self._plan.name}.{name}", str(reason)) from None

    def _is_id(self, name: str) -> bool:
        return name in self._plan.primary.fields or any(name == each.field for each in self._unique)

    def _keeps_default(self, name: str, info: FieldInfo) -> bool:
        if info.is_required():
            return False
        return name in self._kept or name == self._plan.tenant

    def _places(self, built: E) -> list[str]:
        """Return texts that no two entities may share: the key and the unique fields."""
        values = built.__dict__
        key = repr([values[part] for part in self._plan.primary.parts])
        locks = [(each.field, each.key_of(values)) for each in self._unique]
        return [key, *(repr((self._tenant(values), lock)) for lock in locks if lock[1] is not None)]

    def _tenant(self, values: Mapping[str, Any]) -> Any:
        return None if self._plan.tenant is None else values[self._plan.tenant]

    def _checked(self, fields: dict[str, Any]) -> dict[str, Any]:
        for name in fields:
            if name not in self._entity.model_fields:
                raise DataError(
                    f"{self._plan.name} has no field {name!r}; {suggestion(name, self._entity.model_fields)}"
                )
        return fields


def _is_maintained(attribute: Attribute) -> bool:
    """Return whether the store maintains a field, or a random value would remove the item."""
    return attribute.version or attribute.created or attribute.updated or attribute.counter or attribute.ttl


def _inherited(parent: Entity) -> dict[str, Any]:
    """Return the key fields of a parent, which its children have too."""
    return {name: getattr(parent, name) for name in parent.plan().primary.parts}


def _identifier(info: FieldInfo, place: str) -> str | None:
    """Return a short text that is different for each place; None for a field that is not a plain str."""
    present = [part for part in parts(info.annotation) if bare(part, ())[0] is not type(None)]
    kind, metadata = bare(present[0], tuple(info.metadata)) if len(present) == 1 else (None, ())
    bounds = Bounds.of(metadata)
    if kind is not str or bounds.pattern is not None:
        return None
    length = max(bounds.shortest or 0, min(_ID_LENGTH, bounds.longest or _ID_LENGTH))
    digest = int.from_bytes(blake2b(place.encode(), digest_size=32).digest(), "big")
    letters = []
    for _ in range(length):
        digest, letter = divmod(digest, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)
