"""Decide, segment by segment, whether two keys can be equal or one can be in the range of another.

A result of None is a proof that they cannot. An overlap has an example if one was found. If a key uses a
field more than once and no example was found, the keys count as overlapping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import AttributeLayout, KeyLayout, TemplateLayout
from solotable._entities.keys.parts.choose_codec import choose_codec
from solotable._entities.keys.parts.codecs import ChoiceCodec
from solotable._entities.keys.parts.time_buckets import BucketCodec
from solotable._entities.keys.templates import TemplateField
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

from .segments import Segment, is_segmented, overlap, segments, starting_with


@dataclass(frozen=True, slots=True)
class SegmentPair:
    """Two segments that must be equal; with `starts`, the second must start with the first's literal."""

    mine: Segment
    theirs: Segment
    starts: bool = False

    def text(self) -> str | None:
        """Return a text that both segments can have; None when none exists."""
        return (
            starting_with(self.theirs, self.mine.literal) if self.starts else overlap(self.mine, self.theirs)
        )


@dataclass(frozen=True, slots=True)
class EntityPath:
    """A key of an entity, split into segments."""

    plan: Plan
    path: AccessPath
    #: Whether the entity declares no such key, but has the index's key attributes.
    implied: bool = False
    #: The segments of the templates; empty for a key of plain attributes.
    partition: tuple[Segment, ...] = field(init=False, compare=False, repr=False)
    sort: tuple[Segment, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition", _split(self.path.partition))
        object.__setattr__(self, "sort", _split(self.path.sort))

    @property
    def index(self) -> str | None:
        """The name of its index; None for the primary key."""
        return None if self.path.index is None else self.path.index.name


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two keys that can overlap; `texts` are the segments of an example, if one was found."""

    texts: tuple[str, ...] | None


def layouts_overlap(
    mine: EntityPath, theirs: EntityPath, role: Literal["partition", "sort"]
) -> list[SegmentPair] | None:
    """Return the pairs of segments that must match for two keys to be equal; None when they never are."""
    my, their = getattr(mine.path, role), getattr(theirs.path, role)
    if isinstance(my, TemplateLayout) and isinstance(their, TemplateLayout):
        if not is_comparable(my, their):
            return None if starts_apart(my, their) else []
        one, other = getattr(mine, role), getattr(theirs, role)
        return (
            [SegmentPair(*both) for both in zip(one, other, strict=True)] if len(one) == len(other) else None
        )
    if my is None or their is None:
        return []
    if isinstance(my, AttributeLayout) and isinstance(their, AttributeLayout):
        choices = zip(_choices(mine, my), _choices(theirs, their), strict=True)
        apart = any(one is not None and other is not None and not one & other for one, other in choices)
        return None if apart else []
    owner, native, composed = (mine, my, their) if isinstance(my, AttributeLayout) else (theirs, their, my)
    texts = _choices(owner, native)[0]
    # A plain attribute is not escaped, so it can be any string.
    never = texts is not None and all(composed.parse(text) is None for text in texts)
    return None if never else []


def is_comparable(one: TemplateLayout, other: TemplateLayout) -> bool:
    """Return whether two keys are equal exactly when their segments are: they have the same delimiter."""
    mine, theirs = one.template, other.template
    return (
        mine.key_format.delimiter == theirs.key_format.delimiter
        and is_segmented(mine)
        and is_segmented(theirs)
    )


def starts_apart(one: TemplateLayout, other: TemplateLayout) -> bool:
    """Return whether two templates begin with literals that no key can both begin with."""
    mine, theirs = one.template.first_literal, other.template.first_literal
    return not mine.startswith(theirs) and not theirs.startswith(mine)


def keys_overlap(mine: EntityPath, theirs: EntityPath) -> Overlap | None:
    """Return how two keys can be equal; None when they cannot."""
    pairs = layouts_overlap(mine, theirs, "partition")
    more = None if pairs is None else layouts_overlap(mine, theirs, "sort")
    return None if pairs is None or more is None else solve([*pairs, *more])


def partitions_overlap(mine: EntityPath, theirs: EntityPath) -> Overlap | None:
    """Return how the partition keys of two keys can be equal; None when they cannot."""
    pairs = layouts_overlap(mine, theirs, "partition")
    return None if pairs is None else solve(pairs)


def solve(pairs: Sequence[SegmentPair]) -> Overlap | None:
    """Find a text for every pair; None when a pair has none."""
    # Compare literals first, the sort key's before the partition key's: they decide most cases.
    for pair in reversed(pairs):
        if pair.mine.part is None and pair.theirs.part is None and pair.text() is None:
            return None
    texts = [pair.text() for pair in pairs]
    if None in texts:
        return None
    if not _repeats(pair.mine for pair in pairs) and not _repeats(pair.theirs for pair in pairs):
        return Overlap(tuple(text for text in texts if text is not None))
    return _solve_together(pairs)


def _solve_together(pairs: Sequence[SegmentPair]) -> Overlap | None:
    """Solve pairs that depend on each other, because a field occurs in several segments."""
    known: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    left = dict(enumerate(pairs))
    done: dict[int, str] = {}
    forced = True
    while left:
        settled = {number: _with_values(pair, known) for number, pair in left.items()}
        at = next((number for number, pair in settled.items() if _is_forced(pair)), None)
        if at is None:
            # Choose a time before its bucket: the bucket follows from the time.
            forced, at = False, min(left, key=lambda number: _is_bucket(left[number]))
        text = settled[at].text()
        if text is None:
            # A contradiction is a proof only if it follows from literals, without a guess.
            return None if forced else Overlap(None)
        pair, done[at] = left.pop(at), text
        for segment, values in ((pair.mine, known[0]), (pair.theirs, known[1])):
            if segment.part is not None and not isinstance(segment.part.codec, BucketCodec):
                try:
                    values[segment.part.field] = segment.part.codec.decode(text[len(segment.literal) :])
                except ValueError:  # the example has another case than the codec's texts
                    return Overlap(None)
    return Overlap(tuple(done[number] for number in range(len(pairs))))


#: The shard at the end of a partition key; no field can have the name `#shard`.
_SHARD = TemplateField(
    field="#shard", spec="02d", codec=choose_codec(int, "02d", where="a key", field="shard")
)


def _split(layout: KeyLayout | None) -> tuple[Segment, ...]:
    if not isinstance(layout, TemplateLayout) or not is_segmented(layout.template):
        return ()
    return (
        segments(layout.template)
        if layout.sharding is None
        else (*segments(layout.template), Segment("", _SHARD))
    )


def _is_bucket(pair: SegmentPair) -> bool:
    return any(isinstance(each.codec, BucketCodec) for each in (pair.mine, pair.theirs))


def _with_values(pair: SegmentPair, known: tuple[dict[str, Any], dict[str, Any]]) -> SegmentPair:
    return SegmentPair(_with_value(pair.mine, known[0]), _with_value(pair.theirs, known[1]), pair.starts)


def _with_value(segment: Segment, values: dict[str, Any]) -> Segment:
    part = segment.part
    if part is None or part.field not in values:
        return segment
    try:
        return Segment(segment.literal + part.codec.encode(values[part.field]))
    except DataError:  # the value exceeds this width of the field, so no text matches
        return Segment("\x00")


def _is_forced(pair: SegmentPair) -> bool:
    """Return whether one segment is a literal, so that the other's value follows from it."""
    return not pair.starts and (pair.mine.part is None or pair.theirs.part is None)


def _repeats(parts: Any) -> bool:
    fields = Counter(segment.part.field for segment in parts if segment.part is not None)
    return any(count > 1 for count in fields.values())


def _choices(key: EntityPath, layout: AttributeLayout) -> list[set[str] | None]:
    """Return the texts that each attribute can have; None for an attribute without declared choices."""
    found: list[set[str] | None] = []
    for attribute in layout.attributes:
        annotation = key.plan.entity.model_fields[attribute.field].annotation
        try:
            codec = choose_codec(annotation, where=key.plan.name, field=attribute.field)
        except DeclarationError:  # a type that templates reject but attributes accept
            found.append(None)
            continue
        found.append(set(codec.texts) if isinstance(codec, ChoiceCodec) else None)
    return found


def format_key(key: EntityPath, texts: tuple[str, ...] | None) -> str:
    """Format an example as key attributes; return an empty text without an example."""
    layouts = [layout for layout in (key.path.partition, key.path.sort) if layout is not None]
    if texts is None or not all(isinstance(layout, TemplateLayout) for layout in layouts):
        return ""
    if len(texts) != len(key.partition) + len(key.sort):
        return ""
    lines, at = [], 0
    for layout in layouts:
        assert isinstance(layout, TemplateLayout)
        size = len(key.partition if layout is key.path.partition else key.sort)
        lines.append(f"{layout.attribute}={layout.template.key_format.delimiter.join(texts[at : at + size])}")
        at += size
    return ", ".join(lines)
