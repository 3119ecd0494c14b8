"""Query: a typed, immutable description of a read. A store runs it; its methods return new queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from pydantic import BaseModel

from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.ranges import SortRange, Verb
from solotable._expressions.ast import And, Condition
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

from .conditions import record
from .paths import field_path

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.plan import Plan

RowT_co = TypeVar("RowT_co", bound=BaseModel, covariant=True)
ViewT = TypeVar("ViewT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Query(Generic[RowT_co]):
    """A read of one entity's items along one of its keys; rows are entities, or views of them."""

    plan: Plan
    path: AccessPath
    arguments: Mapping[str, Any]
    sort_range: SortRange | None = None
    forward: bool = True
    filter: Condition | None = None
    view: type[BaseModel] | None = None
    consistently: bool = False
    #: The name of the pattern that returned the query, for reports.
    pattern: str | None = field(default=None, compare=False)

    @classmethod
    def over(cls, entity: type[Entity], path: AccessPath, arguments: Mapping[str, Any]) -> Query[Any]:
        """Return the query of a key with these arguments."""
        path.check_arguments(arguments)
        return cls(entity.plan(), path, dict(path.complete(arguments)))

    def since(self, **part: Any) -> Query[RowT_co]:
        """Keep rows at or above this value of the first part of the sort key that is not given."""
        return self._with_range("since", part)

    def after(self, **part: Any) -> Query[RowT_co]:
        """Keep rows above this value of the first part of the sort key that is not given."""
        return self._with_range("after", part)

    def until(self, **part: Any) -> Query[RowT_co]:
        """Keep rows at or below this value of the first part of the sort key that is not given."""
        return self._with_range("until", part)

    def before(self, **part: Any) -> Query[RowT_co]:
        """Keep rows below this value of the first part of the sort key that is not given."""
        return self._with_range("before", part)

    def between(self, **part: tuple[Any, Any]) -> Query[RowT_co]:
        """Keep rows between the two values, both included: `between(order=(1, 5))`."""
        return self._with_range("between", part)

    def starts_with(self, **part: str) -> Query[RowT_co]:
        """Keep rows whose part starts with this text, which may be an incomplete value."""
        return self._with_range("starts_with", part)

    def descending(self) -> Query[RowT_co]:
        """Sort descending by the sort key."""
        return replace(self, forward=False)

    def consistent(self) -> Query[RowT_co]:
        """Read with strong consistency, at twice the cost; not possible on a global index."""
        if self.path.index is not None and not self.path.index.local:
            raise DeclarationError(f"{self.described}: DynamoDB has no consistent reads on a global index.")
        return replace(self, consistently=True)

    def where(self, condition: Callable[[RowT_co], int]) -> Query[RowT_co]:
        """Keep rows that meet the condition; you also pay for the rows that it drops."""
        return self.filtered(record(self.plan, cast(Callable[[Any], Any], condition)))

    def filtered(self, condition: Condition) -> Query[RowT_co]:
        """Keep rows that meet a condition tree."""
        both = condition if self.filter is None else And((self.filter, condition))
        return replace(self, filter=both)

    def select(self, view: type[ViewT]) -> Query[ViewT]:
        """Read only the fields of `view`, a model with some of the entity's fields."""
        for name in view.model_fields:
            field_path(self.plan, name)
        if self.plan.loads_keys:
            from solotable._entities.codecs.opaque.subjects import check_view

            check_view(self.plan, view)
        return cast("Query[ViewT]", replace(self, view=view))

    def __or__(self, other: Query[ViewT]) -> Query[RowT_co | ViewT]:
        """Return one query for the rows of both, in the order of the key, each as an entity of its class.

        Both read the same partition of the same table or index.
        """
        given: object = other
        return mixed((*self.parts, *other.parts)) if isinstance(given, Query) else NotImplemented

    def with_arguments(self, more: Mapping[str, Any]) -> Query[RowT_co]:
        """Return the query with more parts of its key, such as the tenant."""
        return replace(self, arguments=self.path.complete({**self.arguments, **more}))

    @property
    def parts(self) -> tuple[Query[Any], ...]:
        """The queries of a mixed query; of any other query, itself."""
        return (self,)

    @property
    def is_exact(self) -> bool:
        """Whether every part of the sort key is given, so that the query has no direction."""
        sort = self.path.sort
        return sort is None or (self.sort_range is None and set(sort.fields) <= set(self.arguments))

    @property
    def described(self) -> str:
        """The name of the query in messages and reports."""
        return self.pattern or f"{self.plan.name}.{self.path.name}"

    def _with_range(self, verb: Verb, part: Mapping[str, Any]) -> Query[RowT_co]:
        if self.sort_range is not None:
            raise DataError(
                f"{self.described} already has a range ({self.sort_range.verb}); use between() for two ends."
            )
        if len(part) != 1:
            raise DataError(f"{verb}() takes one part of the sort key: {verb}(name=value).")
        ((name, value),) = part.items()
        values = tuple(value) if verb == "between" else (value,)
        if verb == "between" and len(values) != 2:
            raise DataError(f"between({name}=...) takes two values: between({name}=(low, high)).")
        if self.path.sort is None or name not in self.path.sort.fields:
            raise DataError(f"{self.described}: a range needs a part of the sort key; {name!r} is not one.")
        return replace(self, sort_range=SortRange(verb, name, values))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        more = ""
        if self.sort_range is not None:
            verb, field_name, values = self.sort_range.verb, self.sort_range.field, self.sort_range.values
            more = f".{verb}({field_name}={values[0] if len(values) == 1 else values!r})"
        return f"<Query {self.described}({given}){more}>"


@dataclass(frozen=True, slots=True)
class MixedQuery(Query[RowT_co]):
    """Queries of one partition as one; `plan`, `path` and `arguments` are those of the first."""

    members: tuple[Query[Any], ...] = ()

    @property
    def parts(self) -> tuple[Query[Any], ...]:
        """The queries of a mixed query."""
        return self.members

    def descending(self) -> Query[RowT_co]:
        """Sort descending by the sort key."""
        return self._each(lambda part: part.descending(), forward=False)

    def consistent(self) -> Query[RowT_co]:
        """Read with strong consistency, at twice the cost; not possible on a global index."""
        return self._each(lambda part: part.consistent(), consistently=True)

    def where(self, condition: Callable[[RowT_co], int]) -> Query[RowT_co]:
        """Keep rows that meet the condition, which may use the fields that all of the entities have."""
        return self._each(lambda part: part.where(condition))

    def filtered(self, condition: Condition) -> Query[RowT_co]:
        """Keep rows that meet a condition tree."""
        return self._each(lambda part: part.filtered(condition))

    def with_arguments(self, more: Mapping[str, Any]) -> Query[RowT_co]:
        """Return the query with more parts of its key, such as the tenant."""
        return self._each(lambda part: part.with_arguments(more), arguments={**self.arguments, **more})

    def select(self, view: type[ViewT]) -> Query[ViewT]:
        """Raise DataError: the rows of a mixed query are whole entities."""
        raise _no_view(self, view)

    @property
    def described(self) -> str:
        """The name of the query in messages and reports."""
        return self.pattern or " | ".join(part.described for part in self.members)

    def _with_range(self, verb: Verb, part: Mapping[str, Any]) -> Query[RowT_co]:
        return self._each(lambda each: each._with_range(verb, part))

    def _each(self, change: Callable[[Query[Any]], Query[Any]], **more: Any) -> Query[RowT_co]:
        return replace(self, members=tuple(map(change, self.members)), **more)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def mixed(parts: Sequence[Query[Any]]) -> MixedQuery[Any]:
    """Return one query for the rows of all parts, or raise an error if one Query request cannot read them."""
    first = parts[0]
    places = {
        f"{part.plan.table.name}/{part.path.index.name}" if part.path.index else part.plan.table.name: None
        for part in parts
    }
    if len(places) > 1:
        raise DeclarationError(
            f"A mixed query or collection reads one table or one index, got {' and '.join(places)}; "
            f"use keys of the same index."
        )
    for part in parts:
        if part.view is not None:
            raise _no_view(part, part.view)
    directions = {part.forward: part.described for part in parts if not part.is_exact}
    if len(directions) > 1:
        raise DataError(
            f"{directions[True]} is ascending and {directions[False]} is descending; "
            f"call descending() on both, or on none."
        )
    forward = next(iter(directions), first.forward)
    consistently = any(part.consistently for part in parts)
    if consistently:
        parts = [part.consistent() for part in parts]
    return MixedQuery(
        plan=first.plan,
        path=first.path,
        arguments=first.arguments,
        forward=forward,
        consistently=consistently,
        members=tuple(replace(part, forward=forward) for part in parts),
    )


def _no_view(query: Query[Any], view: type[BaseModel]) -> DataError:
    return DataError(
        f"{query.described}: the rows of a mixed query are whole entities, so it takes no view; "
        f"remove select({view.__name__})."
    )
