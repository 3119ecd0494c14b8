"""Ranges of sort keys: times rounded to the precision of the key, and exact bounds of templates.

A range that the keys of a format cannot answer exactly is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any, Literal

from solotable._entities.declare.fields import truncate
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

from .bounds import above, after_prefix, below, ceiling, highest_with_prefix
from .parts.codecs import EpochCodec, PartCodec
from .templates import Template

#: `span` includes its first value and excludes its second; only the store uses it.
Verb = Literal["since", "after", "until", "before", "between", "starts_with", "span"]


@dataclass(frozen=True, slots=True)
class SortRange:
    """A range of the first part of the sort key that the arguments do not give."""

    verb: Verb
    field: str
    values: tuple[Any, ...]


def rounded(sort_range: SortRange, step: int) -> SortRange | None:
    """Return the same range with bounds of the key's precision, in microseconds; None when it is empty.

    Keys are whole multiples of `step`: those since 01.5 are those after 01, those before 01.5 are those
    until 01.
    """
    if step <= 1 or not any(_is_finer(value, step) for value in sort_range.values):
        return sort_range
    low, *more = (_floor(value, step) for value in sort_range.values)
    first = _is_finer(sort_range.values[0], step)
    match sort_range.verb:
        case "since":
            return SortRange("after", sort_range.field, (low,))
        case "before":
            return SortRange("until", sort_range.field, (low,))
        case "between":
            try:
                low = low + timedelta(microseconds=step) if first else low
            except OverflowError:
                return None
            return SortRange("between", sort_range.field, (low, *more))
        case _:
            return SortRange(sort_range.verb, sort_range.field, (low, *more))


def clamped(sort_range: SortRange, codec: PartCodec) -> SortRange | None:
    """Return the same range with bounds that the key can contain; None when it is empty.

    An epoch has a fixed number of digits, and no key is outside of them.
    """
    if not isinstance(codec, EpochCodec):
        return sort_range
    values = sort_range.values
    nearest = tuple(map(codec.nearest, values))
    if all(near == value for near, value in zip(nearest, values, strict=True)):
        return sort_range
    is_lower = sort_range.verb in ("since", "after")
    if (nearest[0] < values[0]) if is_lower or len(values) > 1 else (nearest[0] > values[0]):
        return None
    if len(values) == 1:
        return SortRange("since" if is_lower else "until", sort_range.field, nearest)
    if nearest[1] > values[1]:
        return None
    # A `span` excludes its end, unless the end is after the last key.
    verb = "between" if nearest[1] < values[1] else sort_range.verb
    return SortRange(verb, sort_range.field, nearest)


def _is_finer(value: Any, step: int) -> bool:
    return isinstance(value, datetime) and bool(value.microsecond % step) and value.utcoffset() is not None


def _floor(value: Any, step: int) -> Any:
    return truncate(value.astimezone(UTC), step) if _is_finer(value, step) else value


def bounds_of(template: Template, prefix: str, sort_range: SortRange) -> tuple[str | None, str | None] | None:
    """Return the inclusive bounds of a range, None for an open one; return None when the range is empty."""
    field, verb = sort_range.field, sort_range.verb
    _check_number(template, sort_range)
    ends = [prefix + template.encode(field, value) for value in sort_range.values]
    if template.key_format.escape:
        # An upper end includes all keys that continue it after a `#`.
        ahead: str | None = ceiling(ends[0])
        upper = ceiling(ends[-1])
    else:
        _check_order(template, sort_range, [end[len(prefix) :] for end in ends])
        tail = None if template.is_last(field) else template.text_after(field)
        ahead, upper = _unescaped_bounds(ends, tail)
    low = prefix or None
    high = highest_with_prefix(prefix, escaped=template.key_format.escape)
    match verb:
        case "since":
            return ends[0], high
        case "after":
            return None if ahead is None else (ahead, high)
        case "until":
            return low, upper
        case "before":
            return low, below(ends[0])
        case "span":
            return ends[0], below(ends[1])
        case _:
            return ends[0], upper


def _unescaped_bounds(ends: Sequence[str], tail: str | None) -> tuple[str | None, str]:
    """Return the least key after the first end and the greatest of the last; None if none exists.

    The keys of an end continue with `tail`; None if they end there.
    """
    if tail is None:
        return above(ends[0]), ends[-1]
    return after_prefix(ends[0] + tail), highest_with_prefix(ends[-1] + tail, escaped=False) or ""


def _check_number(template: Template, sort_range: SortRange) -> None:
    if template.codec(sort_range.field).kind == "number":
        raise DataError(
            f"{sort_range.verb}({sort_range.field}=...): {template.codec(sort_range.field).slot} in "
            f"{template.text!r} has no width, so its keys sort as text (10 before 9); pass the number, or "
            f"declare a width, such as {{{sort_range.field}:06d}}."
        )


def _check_order(template: Template, sort_range: SortRange, texts: Sequence[str]) -> None:
    """Reject a range whose keys are not next to each other, because values are not escaped."""
    codec, tail = template.codec(sort_range.field), template.text_after(sort_range.field)
    if template.is_last(sort_range.field) or codec.width is not None or _is_ordered(codec, tail):
        return
    if sort_range.verb in ("since", "before"):
        # Keys of a value that is the start of the bound must sort before the bound.
        if all(tail < text[at:] for text in texts for at in range(len(text))):
            return
        reason = f"a character of {sort_range.values[0]!r} sorts before {tail!r}"
    else:
        reason = f"a value that continues with a character before {tail!r} would be at the wrong place"
    raise DataError(
        f"{sort_range.verb}({sort_range.field}=...) on {template.text!r}: values are not escaped, and "
        f"{reason}, so the range is not exact; pass {sort_range.field} itself, or filter the rows."
    )


def _is_ordered(codec: PartCodec, tail: str) -> bool:
    """Return whether the keys of all values sort like the values, though `tail` follows."""
    if codec.kind == "hex":
        return tail < "0"
    if codec.choices is None:
        return False
    pairs = permutations(codec.choices, 2)
    return all(tail < other[len(one) :] for one, other in pairs if other.startswith(one))
