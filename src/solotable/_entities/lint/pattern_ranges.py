"""The range of a pattern's queries, with the caller's values unknown, against the keys of other entities.

The queries of a pattern that have one shape (the same key, the same parts given, the same verb) are one
range: a part that is the same in all of them is the pattern's own constant, any other may be anything
that its codec gives. Ranges by since, until and the like are taken as the whole prefix they lie in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.templates import Template
from solotable._entities.patterns.query import Query
from solotable._values.lazy_dataclass import dataclass

from .key_overlap import Meeting, Pair, Place, sides_meet, solve
from .segments import Segment

#: The ranges over a bucket of time that have two ends; the other one of `since` and `after` is now.
_WITH_LOW_END = ("since", "after", "between")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What queries of one shape read: a partition, and a part of it."""

    place: Place
    #: The fields of the sort key that are given, and the verb of the range over the next, if any.
    given: frozenset[str]
    verb: str | None
    #: Values that are the same in every call.
    constants: Mapping[str, Any]
    #: The constant text of a `starts_with`.
    start: str = ""
    queries: Sequence[Query[Any]] = field(default=(), compare=False)

    @property
    def described(self) -> str:
        """The range as messages show it."""
        side = self.place.path.sort
        if side is None or not isinstance(side, TemplateLayout):
            return "its whole partition" if side is None else "its range"
        if self._is_exact(side):
            return f"the sort key {side.template.text!r}"
        prefix = _text_before(side.template, self.given) + self.start
        return f"what starts with {prefix!r}" if prefix else "its whole partition"

    def meets(self, other: Place) -> Meeting | None:
        """Say whether items under this key of another entity can lie in the range."""
        pairs = sides_meet(self.place, other, "partition")
        more = None if pairs is None else self._sorts(other)
        if pairs is None or more is None:
            return None
        if self.constants:
            more = [Pair(self._fixed(pair.mine), pair.theirs, pair.starts) for pair in more]
            pairs = [Pair(self._fixed(pair.mine), pair.theirs) for pair in pairs]
        return solve([*pairs, *more])

    def _sorts(self, other: Place) -> list[Pair] | None:
        my = self.place.path.sort
        if not isinstance(my, TemplateLayout) or not isinstance(other.path.sort, TemplateLayout):
            return []  # no sort key, or a native one, whose values can be anything
        own, others = self.place.sort, other.sort
        if self._is_exact(my):
            return (
                [Pair(*both) for both in zip(own, others, strict=True)] if len(own) == len(others) else None
            )
        last = next(n for n, each in enumerate(own) if each.part and each.part.field not in self.given)
        if last >= len(others):
            return None
        pairs = [Pair(*both) for both in zip(own[:last], others[:last], strict=True)]
        pairs.append(Pair(Segment(own[last].literal + self.start), others[last], starts=True))
        return pairs + [Pair(Segment(""), each, starts=True) for each in others[last + 1 :]]

    def _is_exact(self, side: TemplateLayout) -> bool:
        return self.verb is None and self.given >= set(side.fields)

    def _fixed(self, segment: Segment) -> Segment:
        part = segment.part
        if part is None or part.field not in self.constants:
            return segment
        return Segment(segment.literal + part.codec.encode(self.constants[part.field]))


def reaches(queries: Sequence[Query[Any]]) -> list[Reach]:
    """Return the ranges of a pattern's queries, one for every shape."""
    shapes: dict[Any, list[Query[Any]]] = {}
    for query in queries:
        bound = query.sort_range
        key = (query.plan.table.name, query.plan.tag, query.path.name)
        shape = (key, frozenset(query.arguments), bound and (bound.verb, bound.field))
        shapes.setdefault(shape, []).append(query)
    return [_reach(alike) for alike in shapes.values()]


def _reach(alike: Sequence[Query[Any]]) -> Reach:
    first = alike[0]
    constants = {
        name: value
        for name, value in first.arguments.items()
        if all(other.arguments[name] == value for other in alike[1:])
    }
    bound, start = first.sort_range, ""
    if (
        bound is not None
        and bound.verb == "starts_with"
        and all(other.sort_range == bound for other in alike)
    ):
        sort = first.path.sort
        start = sort.template.encode(bound.field, bound.values[0]) if isinstance(sort, TemplateLayout) else ""
    return Reach(
        place=Place(first.plan, first.path),
        given=_given(first),
        verb=None if bound is None else bound.verb,
        constants=constants,
        start=start,
        queries=alike,
    )


def unserved(query: Query[Any]) -> str | None:
    """Say why a key cannot serve a query, or None when it can."""
    path, given = query.path, _given(query)
    missing = [name for name in path.partition.fields if name not in given]
    bucket = path.partition.bucket if isinstance(path.partition, TemplateLayout) else None
    if bucket in missing:
        if (
            query.sort_range is None
            or query.sort_range.field != bucket
            or query.sort_range.verb not in _WITH_LOW_END
        ):
            return f"{path.owner}.{path.name} is kept in buckets of {bucket} and needs a range of it"
        missing.remove(bucket)
    if missing:
        return f"{path.owner}.{path.name} needs {' and '.join(missing)} for its partition"
    fields = () if path.sort is None else path.sort.fields
    opened = next((name for name in fields if name not in given), None)
    late = [name for name in fields[fields.index(opened) :] if name in given] if opened else []
    if late:
        return f"{late[0]} is given without {opened}, which comes before it in {path.owner}.{path.name}"
    if query.sort_range is not None and opened != query.sort_range.field:
        there = f"the first open part is {opened!r}" if opened else "no part of the sort key is open"
        return f"{query.sort_range.verb}({query.sort_range.field}=...) goes over another part: {there}"
    return None


def _given(query: Query[Any]) -> frozenset[str]:
    """Return the parts that have a value: the caller's, and the tenant, which a store's scope gives."""
    tenant = query.plan.tenant
    return frozenset((*query.arguments, *([tenant] if tenant else [])))


def _text_before(template: Template, given: frozenset[str]) -> str:
    text = ""
    for part in template.parts:
        if isinstance(part, str):
            text += part
        elif part.field in given:
            text += f"{{{part.field}}}"
        else:
            break
    return text
