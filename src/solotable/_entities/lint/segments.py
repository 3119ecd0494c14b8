"""Find a text that two segments of keys can both have, or that starts with a given text.

A template splits at its delimiter into segments: a literal, or a literal and one field's value. Values do not
contain the delimiter, so two keys are equal exactly when their segments are. Functions return one example,
exact for most codecs of `keys.parts.codecs`; others count as any text. An unknown codec raises
NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from solotable._entities.keys.parts.codecs import (
    DecimalCodec,
    DigitsCodec,
    FoldedTextCodec,
    PartCodec,
    RawTextCodec,
    TimestampCodec,
)
from solotable._entities.keys.templates import Template, TemplateField
from solotable._values.lazy_dataclass import dataclass

_DIGIT = "0123456789"
_HEX = "0123456789abcdef"
_UUID = "00000000-0000-0000-0000-000000000000"
_TIMES = ("date", "timestamp", "bucket")
_MIDNIGHT = {13: "T00", 20: "T00:00:00Z", 24: "T00:00:00.000Z", 27: "T00:00:00.000000Z"}
#: An example of a str.
_TEXT = "x"
#: The characters other than letters and digits in the texts of a codec.
_PUNCTUATION = {
    "number": "-",
    "digits": "-",
    "decimal": "-.",
    "timestamp": "-:.+",
    "date": "-",
    "bucket": "-",
    "uuid": "-",
    "folded": "-:.+",
}
#: The longest number that is tried as an example.
_LONGEST_NUMBER = 40


@dataclass(frozen=True, slots=True)
class Segment:
    """A literal, followed by the value of a field or by nothing."""

    literal: str
    part: TemplateField | None = None

    @property
    def codec(self) -> PartCodec | None:
        """The codec of the value, if there is one."""
        return None if self.part is None else self.part.codec


def is_segmented(template: Template) -> bool:
    """Return whether only the delimiter ends a value, and no value contains it."""
    delimiter = template.key_format.delimiter
    fields = [part for part in template.parts if isinstance(part, TemplateField)]
    ends = [template.text_after(part.field) for part in fields if not template.is_last(part.field)]
    contained = any(set(delimiter) <= set(_PUNCTUATION.get(part.codec.kind, "")) for part in fields)
    return not contained and all(end.startswith(delimiter) for end in ends)


def segments(template: Template) -> tuple[Segment, ...]:
    """Split a template at its delimiter."""
    found: list[Segment] = []
    delimiter = template.key_format.delimiter
    literal, value = "", None
    for part in template.parts:
        if isinstance(part, TemplateField):
            value = _known(part, delimiter)
            continue
        first, *rest = part.split(delimiter)
        literal += first
        for piece in rest:
            found.append(Segment(literal, value))
            literal, value = piece, None
    return (*found, Segment(literal, value))


def _known(part: TemplateField, delimiter: str) -> TemplateField:
    """Return the part, or any text for a codec whose texts the linter does not build."""
    codec = part.codec
    other_offset = isinstance(codec, TimestampCodec) and codec.offset != "Z"
    if codec.kind not in ("folded", "epoch") and not other_offset:
        return part
    text = RawTextCodec(delimiter=delimiter, name=codec.name, slot=codec.slot)
    # Another name, because the value of the text is not the value of the field.
    return TemplateField(field=f"#{part.field}", spec="", codec=text)


def contains(codec: PartCodec, text: str) -> bool:
    """Return whether the codec encodes some value to this text."""
    if codec.choices is not None:
        return text in codec.choices
    try:
        codec.decode(text)
    except ValueError:
        return False
    return True


def overlap(one: Segment, other: Segment) -> str | None:
    """Return a text that both segments can have; None when none exists."""
    if len(one.literal) > len(other.literal):
        one, other = other, one
    if not other.literal.startswith(one.literal):
        return None
    value = _value(one.codec, other.literal[len(one.literal) :], other.codec)
    return None if value is None else one.literal + value


def starting_with(segment: Segment, start: str) -> str | None:
    """Return a text of the segment that starts with `start`; None when none exists."""
    if segment.literal.startswith(start):
        return example(segment)
    if segment.codec is None or not start.startswith(segment.literal):
        return None
    value = complete(segment.codec, start[len(segment.literal) :])
    return None if value is None else segment.literal + value


def example(segment: Segment) -> str:
    """Return one possible text of the segment."""
    if segment.codec is None:
        return segment.literal
    return segment.literal + (complete(segment.codec, "") or "")


def complete(codec: PartCodec, start: str) -> str | None:
    """Return a text of the codec that starts with `start`; None when none exists."""
    if codec.choices is not None:
        return next((text for text in codec.choices if text.startswith(start)), None)
    candidates: Iterator[str] = iter((start + _filler(codec, start)[len(start) :],))
    if codec.kind in _TIMES:
        candidates = _moments(codec, start)
    return next((text for text in candidates if contains(codec, text)), None)


def _filler(codec: PartCodec, start: str) -> str:
    """Return a text of the right length; its end completes any start."""
    match codec.kind:
        case "text":
            return start or _folded(codec, _TEXT)
        case "hex":
            return start + "0" * (len(start) % 2)
        case "number":
            return start if contains(codec, start) else start + "1"
        case "uuid":
            return _UUID
        case _:
            return "".join(each[0] for each in _classes(codec)[0])


def _folded(codec: PartCodec, text: str) -> str:
    """Return a text in the case of the codec's texts."""
    fold = codec.fold if isinstance(codec, FoldedTextCodec | RawTextCodec) else None
    return text if fold is None else fold(text)


def _moments(codec: PartCodec, start: str) -> Iterator[str]:
    tail = _MIDNIGHT.get(codec.width or 0, "")
    if len(start) >= len("2026-01-01"):
        yield start + ("2026-01-01" + tail)[len(start) :]
        return
    year = start[:4] + "2026"[len(start[:4]) :]
    for month, day in product(range(1, 13), range(1, 32)):
        text = f"{year}-{month:02d}-{day:02d}"
        if text.startswith(start):
            yield (text + tail)[: codec.width]


def _value(one: PartCodec | None, between: str, other: PartCodec | None) -> str | None:
    """Return a text of `one` that consists of `between` and a text of `other`; None when none exists."""
    if other is None:
        fits = between == "" if one is None else contains(one, between)
        return between if fits else None
    if one is None:
        return "" if between == "" and contains(other, "") else None
    size = len(between)
    if one.choices is not None:
        texts = (each for each in one.choices if each.startswith(between))
        return next((each for each in texts if contains(other, each[size:])), None)
    if other.choices is not None:
        return next((between + each for each in other.choices if contains(one, between + each)), None)
    if other.kind == "text":
        text = complete(one, between)
        # Of two texts, the second may have another case than the first.
        folded = None if text is None else between + _folded(other, text[size:])
        return folded if folded is not None and contains(one, folded) else text
    if one.kind == "text":
        return between + (complete(other, "") or "")
    return _fixed_form(one, between, other)


def _fixed_form(one: PartCodec, between: str, other: PartCodec) -> str | None:
    """Do the work of `_value` for two codecs of fixed width, or of hexadecimal digits."""
    size = len(between)
    if one.kind == "hex" and other.kind == "hex":
        return between if contains(one, between) else None
    if one.width is not None and other.width is not None and one.width != size + other.width:
        return None
    if one.kind in _TIMES:
        # Not every text of digits is a date, so try the days of one year.
        texts = (text for text in _moments(one, between) if contains(one, text))
        return next((text for text in texts if contains(other, text[size:])), None)
    if one.kind == "number" or other.kind == "number":
        known = other.width if one.width is None else one.width - size
        widths = range(1, _LONGEST_NUMBER) if known is None else (known,)
        return next(filter(None, (_common(one, between, other, size + each) for each in widths)), None)
    return _common(one, between, other, one.width if one.width is not None else size + (other.width or 0))


def _common(one: PartCodec, between: str, other: PartCodec, width: int) -> str | None:
    """Return a text of this width that both have, character by character."""
    size = len(between)
    for mine, theirs in product(_classes(one, width), _classes(other, width - size)):
        if len(mine) != size + len(theirs):
            continue
        positions = zip(mine, (*between, *theirs), strict=True)
        common = [[each for each in left if each in right] for left, right in positions]
        if all(common):
            text = "".join(each[0] for each in common)
            if contains(one, text) and contains(other, text[size:]):
                return text
    return None


def _classes(codec: PartCodec, width: int = 0) -> list[tuple[str, ...]]:
    """Return the characters at each position of a codec's texts, once for every sign.

    `width` applies to hexadecimal digits and numbers: their codecs have no width.
    """
    if isinstance(codec, DigitsCodec):
        return _signed((_DIGIT,) * codec.digits, signed=codec.signed)
    if isinstance(codec, DecimalCodec):
        point = (".",) if codec.decimals else ()
        before = (_DIGIT,) * (codec.digits - codec.decimals)
        return _signed((*before, *point, *(_DIGIT,) * codec.decimals), signed=codec.signed)
    match codec.kind:
        case "uuid":
            return [tuple("-" if each == "-" else _HEX for each in _UUID)]
        case "hex":
            return [(_HEX,) * width]
        case "number":
            return [(_DIGIT,)] if width == 1 else _signed((_DIGIT[1:], *(_DIGIT,) * (width - 1)), signed=True)
        case "date" | "timestamp" | "bucket":
            text = ("0000-00-00" + _MIDNIGHT.get(codec.width or 0, ""))[: codec.width]
            return [tuple(_DIGIT if each == "0" else each for each in text)]
    raise NotImplementedError(f"The linter does not support {codec.slot}, a {codec.kind}.")


def _signed(classes: tuple[str, ...], *, signed: bool) -> list[tuple[str, ...]]:
    return [classes, ("-", *classes[1:])] if signed else [classes]
