"""Compare the ranges that a pattern's queries read with the keys of other entities.

Queries with the same key, the same given parts and the same verb form one range. A part that is equal in
all of them is a constant of the pattern; any other part can have every value of its codec. A range by
since, until or a similar verb counts as the whole prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from solotable._entities.keys.bounds import cover, ends_of, highest_with_prefix
from solotable._entities.keys.layout import TemplateLayout, is_empty
from solotable._entities.keys.templates import Template
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import KeyTerm
from solotable._values.lazy_dataclass import dataclass

from .key_overlap import (
    EntityPath,
    Overlap,
    SegmentPair,
    is_comparable,
    layouts_overlap,
    partitions_overlap,
    solve,
    starts_apart,
)
from .segments import Segment, overlap

#: The verbs that a query over time buckets may use; `since` and `after` end at the current time.
_VERBS_WITH_START = ("since", "after", "between")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRange:
    """The range that similar queries of a pattern read: a partition, or a part of one."""

    key: EntityPath
    #: The given fields of the sort key, and the verb of the range over the next one, if any.
    given: frozenset[str]
    verb: str | None
    #: Values that are the same in every call.
    constants: Mapping[str, Any]
    #: The constant text of a `starts_with`.
    start: str = ""
    queries: Sequence[Query[Any]] = field(default=(), compare=False)

    @property
    def described(self) -> str:
        """The description of the range in messages."""
        layout = self.key.path.sort
        if layout is None or not isinstance(layout, TemplateLayout):
            return "its whole partition" if layout is None else "its range"
        if self._is_exact(layout):
            return f"the sort key {layout.template.text!r}"
        prefix = _text_before(layout.template, self.given) + self.start
        return f"items that start with {prefix!r}" if prefix else "its whole partition"

    def overlap_with(self, other: EntityPath) -> Overlap | None:
        """Return how items of another entity can be in the range; None when they cannot."""
        pairs = layouts_overlap(self.key, other, "partition")
        more = None if pairs is None else self._sort_pairs(other)
        if pairs is None or more is None:
            return None
        if self.constants:
            more = [SegmentPair(self._fixed(pair.mine), pair.theirs, pair.starts) for pair in more]
            pairs = [SegmentPair(self._fixed(pair.mine), pair.theirs) for pair in pairs]
        return solve([*pairs, *more])

    def _sort_pairs(self, other: EntityPath) -> list[SegmentPair] | None:
        my = self.key.path.sort
        if not isinstance(my, TemplateLayout) or not isinstance(other.path.sort, TemplateLayout):
            return []  # no sort key, or plain attributes, which can have any value
        if not is_comparable(my, other.path.sort):
            return None if starts_apart(my, other.path.sort) else []
        own, others = self.key.sort, other.sort
        if self._is_exact(my):
            return (
                [SegmentPair(*both) for both in zip(own, others, strict=True)]
                if len(own) == len(others)
                else None
            )
        last = next(n for n, each in enumerate(own) if each.part and each.part.field not in self.given)
        if last >= len(others):
            return None
        pairs = [SegmentPair(*both) for both in zip(own[:last], others[:last], strict=True)]
        pairs.append(SegmentPair(Segment(own[last].literal + self.start), others[last], starts=True))
        return pairs + [SegmentPair(Segment(""), each, starts=True) for each in others[last + 1 :]]

    def _is_exact(self, layout: TemplateLayout) -> bool:
        return self.verb is None and self.given >= set(layout.fields)

    def _fixed(self, segment: Segment) -> Segment:
        part = segment.part
        if part is None or part.field not in self.constants:
            return segment
        return Segment(segment.literal + part.codec.encode(self.constants[part.field]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedRange:
    """The one range of sort keys that a mixed query reads, and whose items sort between its parts."""

    parts: Sequence[EntityPath]
    low: str
    #: None for no limit.
    high: str | None

    def may_contain(self, other: EntityPath) -> bool:
        """Return whether items of another entity can be in the range."""
        layout, own = other.path.sort, self.parts[0].path.sort
        if not isinstance(layout, TemplateLayout) or partitions_overlap(self.parts[0], other) is None:
            return False
        assert isinstance(own, TemplateLayout)
        starts = [layout.template.first_literal]
        if is_comparable(own, layout):
            starts = self._starts_of(other.sort, layout.template.key_format.delimiter)
        return any(self._reaches(each, is_key=not layout.fields) for each in starts)

    def _reaches(self, start: str, *, is_key: bool) -> bool:
        highest = start if is_key else highest_with_prefix(start)
        return (self.high is None or start <= self.high) and (highest is None or highest >= self.low)

    def _starts_of(self, segments: Sequence[Segment], delimiter: str) -> list[str]:
        """Return the texts before the first free field of a key that has what all keys of the range have."""
        texts: list[str] = []
        lows, highs = self.low.split(delimiter), (self.high or "").split(delimiter)
        for low, high in zip(lows[:-1], highs[:-1], strict=False):
            if low != high:
                break
            texts.append(low)
        shared = len(texts)
        if shared >= len(segments):
            return []
        if any(overlap(Segment(text), each) is None for text, each in zip(texts, segments, strict=False)):
            return []
        for each in segments[shared:]:
            if each.codec is not None:
                choices = [""] if each.codec.choices is None else each.codec.choices
                return [delimiter.join([*texts, each.literal + choice]) for choice in choices]
            texts.append(each.literal)
        return [delimiter.join(texts)]


def mixed_range(query: Query[Any]) -> MixedRange | None:
    """Return the range of a mixed query of templates; None if one of its parts has the same range."""
    ranges: list[tuple[KeyTerm, ...]] = []
    for part in query.parts:
        layout, tenant = part.path.sort, part.plan.tenant
        if not isinstance(layout, TemplateLayout):
            return None
        arguments = part.path.complete({**({tenant: "tenant"} if tenant else {}), **part.arguments})
        ranges.append(layout.within(arguments, part.sort_range))
    ranges = [terms for terms in ranges if not is_empty(terms)]
    if len(ranges) < 2 or (terms := cover(ranges)) in ranges:
        return None
    low, high = ends_of(terms[0]) if terms else (None, None)
    return MixedRange(
        parts=[EntityPath(part.plan, part.path) for part in query.parts],
        low="" if low is None else low["S"],
        high=None if high is None else high["S"],
    )


def ranges_of(queries: Sequence[Query[Any]]) -> list[PatternRange]:
    """Return the ranges of a pattern's queries; similar queries share one range."""
    groups: dict[Any, list[Query[Any]]] = {}
    for query in queries:
        bound = query.sort_range
        key = (query.plan.table.name, query.plan.tag, query.path.name)
        form = (key, frozenset(query.arguments), bound and (bound.verb, bound.field))
        groups.setdefault(form, []).append(query)
    return [_range_of(similar) for similar in groups.values()]


def _range_of(similar: Sequence[Query[Any]]) -> PatternRange:
    first = similar[0]
    constants = {
        name: value
        for name, value in first.arguments.items()
        if all(other.arguments[name] == value for other in similar[1:])
    }
    bound, start = first.sort_range, ""
    if (
        bound is not None
        and bound.verb == "starts_with"
        and all(other.sort_range == bound for other in similar)
    ):
        sort = first.path.sort
        start = sort.template.encode(bound.field, bound.values[0]) if isinstance(sort, TemplateLayout) else ""
    return PatternRange(
        key=EntityPath(first.plan, first.path),
        given=_given(first),
        verb=None if bound is None else bound.verb,
        constants=constants,
        start=start,
        queries=similar,
    )


def unserved(query: Query[Any]) -> str | None:
    """Return why a key cannot serve a query; None when it can."""
    path, given = query.path, _given(query)
    missing = [name for name in path.partition.fields if name not in given]
    bucket = path.partition.bucket if isinstance(path.partition, TemplateLayout) else None
    if bucket in missing:
        if (
            query.sort_range is None
            or query.sort_range.field != bucket
            or query.sort_range.verb not in _VERBS_WITH_START
        ):
            return f"{path.owner}.{path.name} is stored in time buckets of {bucket} and needs a range over it"
        missing.remove(bucket)
    if missing:
        return f"{path.owner}.{path.name} needs {' and '.join(missing)} for its partition key"
    fields = () if path.sort is None else path.sort.fields
    opened = next((name for name in fields if name not in given), None)
    late = [name for name in fields[fields.index(opened) :] if name in given] if opened else []
    if late:
        return f"{late[0]} is given without {opened}, which comes before it in {path.owner}.{path.name}"
    if query.sort_range is not None and opened != query.sort_range.field:
        expected = (
            f"the first part that is not given is {opened!r}"
            if opened
            else "every part of the sort key is given"
        )
        verb, field_name = query.sort_range.verb, query.sort_range.field
        return f"{verb}({field_name}=...) is a range over the wrong part: {expected}"
    return None


def _given(query: Query[Any]) -> frozenset[str]:
    """Return the parts that have a value: the arguments, and the tenant of the scoped store."""
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
