"""Whether two templates can give one key: exact on a table made by hand, sound on random templates."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._entities.keys.key import KeyFormat
from solotable._entities.keys.templates import Template
from solotable._entities.lint.key_overlap import SegmentPair, solve
from solotable._entities.lint.segments import Segment, segments, starting_with
from solotable.errors import DataError


class Colour(Enum):
    RED = "red"
    BLUE = "v2"


class Level(IntEnum):
    LOW = 1
    HIGH = 42


FIELDS: dict[str, Any] = {
    "text": str,
    "other": str,
    "n": int,
    "m": int,
    "price": Decimal,
    "at": datetime,
    "day": date,
    "id": UUID,
    "raw": bytes,
    "word": Literal["red", "green", "000001"],
    "colour": Colour,
    "level": Level,
}


FOLDS: tuple[Literal["lower", "upper"] | None, ...] = (None, "lower", "upper")
SAMPLES: dict[str, Any] = {
    "text": "7",
    "other": "7",
    "n": 7,
    "price": Decimal("7.25"),
    "at": datetime(2026, 11, 16, tzinfo=UTC),
    "day": date(2026, 11, 16),
    "id": UUID(int=7),
    "raw": b"\x07",
    "word": "000001",
    "colour": Colour.RED,
    "level": Level.LOW,
}


def template(text: str) -> Template:
    return Template.compile(text, FIELDS, where="Thing.key")


def overlap(one: str, other: str) -> str | None:
    """The example that both templates can give, or None."""
    mine, theirs = segments(template(one)), segments(template(other))
    if len(mine) != len(theirs):
        return None
    found = solve([SegmentPair(*both) for both in zip(mine, theirs, strict=True)])
    if found is None:
        return None
    assert found.texts is not None
    return "#".join(found.texts)


MEET = [
    ("A#{text}", "A#{other}"),
    ("A#{text}", "A#B"),
    ("A#{text}", "{other}#{n:02d}"),
    ("{word}", "{colour}"),
    ("v{n:06d}", "{text}"),
    ("v{n:01d}", "{colour}"),
    ("{n:06d}", "{word}"),
    ("{n:06d}", "0{m:05d}"),
    ("{n:+04d}", "-{m:03d}"),
    ("{n:+04d}", "-99{m:01d}"),
    ("{n:02d}", "{level:02d}"),
    ("{n:04d}", "{raw}"),
    ("ab{raw}", "{raw}"),
    ("{text}", "A"),
    ("{text}", "ä€"),
    ("A#{raw}", "A#"),
    ("{day}", "2026-01-{n:02d}"),
    ("{day}", "2024-02-2{n:01d}"),
    ("{day}", "202{text}"),
    ("{day}", "0{text}"),
    ("{at:s}", "2026-02-{text}"),
    ("{at}", "2026-02-28T2{text}"),
    ("{price:06.2f}", "0{text}"),
    ("{price:06.2f}", "0{price:05.2f}"),
    ("{price:+06.2f}", "-{price:05.2f}"),
    ("{id}", "a{text}"),
    ("{at:ms}", "{at:ms}"),
]
APART = [
    ("A#{text}", "B#{text}"),
    ("A#{text}", "A#{text}#B"),
    ("A", "AB"),
    ("v{n:06d}", "w{text}"),
    ("v{n:06d}", "{n:06d}"),
    ("{n:06d}", "{n:05d}"),
    ("{n:03d}", "-{m:02d}"),
    ("{n:06d}", "{colour}"),
    ("{n:02d}", "{colour}"),
    ("{level:02d}", "02"),
    ("{level:02d}", "0{word}"),
    ("{word}", "blue"),
    ("{word}", "r{colour}"),
    ("{n:03d}", "{raw}"),
    ("a{raw}", "{raw}"),
    ("g{raw}", "{raw}"),
    ("{day}", "{n:010d}"),
    ("{day}", "{at}"),
    ("{day}", "2026-02-3{n:01d}"),
    ("{day}", "2025-02-29"),
    ("{day}", "0000{text}"),
    ("{at:s}", "{at:ms}"),
    ("{at:s}", "2026-02-30{text}"),
    ("{at:s}", "2026-02-28T3{text}"),
    ("{id}", "{raw}"),
    ("{id}", "A{text}"),
    ("{price:06.2f}", "{n:06d}"),
    ("{price:06.2f}", "0{n:05d}"),
    ("{n:+04d}", "-999"),
    ("{n:02d}", "A"),
    ("{n:02d}#", "{n:02d}"),
]


@pytest.mark.parametrize(("one", "other"), MEET)
def test_templates_that_can_give_one_key(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        key = overlap(first, second)
        assert key is not None
        assert template(first).parse(key) is not None
        assert template(second).parse(key) is not None


FORMATS = [KeyFormat(escape=escape, case=case) for escape in (True, False) for case in FOLDS]
PARTS = [
    "text",
    "n:d",
    "n:04d",
    "price:06.2f",
    "at",
    "at:s",
    "day",
    "id",
    "raw",
    "word",
    "colour",
    "level:02d",
]


@pytest.mark.parametrize("one", FORMATS, ids=str)
@pytest.mark.parametrize("slot", PARTS)
def test_a_template_can_give_the_key_of_the_same_template(one: KeyFormat, slot: str) -> None:
    text = f"0#{{{slot}}}#{{other}}"
    mine = Template.compile(text, FIELDS, where="Thing.key", key_format=one)
    for other in FORMATS:
        theirs = Template.compile(text, FIELDS, where="Thing.key", key_format=other)
        if mine.format(SAMPLES) == theirs.format(SAMPLES):
            pairs = zip(segments(mine), segments(theirs), strict=True)
            assert solve([SegmentPair(*both) for both in pairs]) is not None


@pytest.mark.parametrize(("one", "other"), APART)
def test_templates_that_never_give_one_key(one: str, other: str) -> None:
    assert overlap(one, other) is None
    assert overlap(other, one) is None


@pytest.mark.parametrize(
    ("text", "start", "can"),
    [
        ("SECTION", "SEC", True),
        ("SECTION", "", True),
        ("SEC", "SECTION", False),
        ("v{n:03d}", "v01", True),
        ("v{n:03d}", "v0123", False),
        ("{colour}", "re", True),
        ("{colour}", "g", False),
        ("{day}", "2026-1", True),
        ("{day}", "2026-13", False),
        ("{text}", "anything", True),
    ],
)
def test_what_a_segment_can_start_with(text: str, start: str, can: bool) -> None:
    (segment,) = segments(template(text))
    found = starting_with(segment, start)
    assert (found is not None) == can
    if found is not None:
        assert found.startswith(start)
        assert template(text).parse(found) is not None


def test_a_template_is_cut_at_its_delimiters() -> None:
    cut = segments(template("A#x{text}#B#{n:02d}#"))
    assert [(each.literal, each.part and each.part.field) for each in cut] == [
        ("A", None),
        ("x", "text"),
        ("B", None),
        ("", "n"),
        ("", None),
    ]
    assert segments(template("A")) == (Segment("A"),)


LITERALS = st.sampled_from(["", "", "A", "v", "0", "00", "-", "r", "2026-", "2026-01-0", "a", "ab", "9"])
SLOTS = [
    None,
    "{text}",
    "{n:01d}",
    "{n:02d}",
    "{n:03d}",
    "{n:+03d}",
    "{n:d}",
    "{price:04.1f}",
    "{price:+05.1f}",
    "{at:s}",
    "{day}",
    "{id}",
    "{raw}",
    "{word}",
    "{colour}",
    "{level:02d}",
]
VALUES = st.fixed_dictionaries(
    {
        "text": st.text("Av0-9ar# ", max_size=4),
        "n": st.integers(-99, 999),
        "price": st.decimals(-99, 99, places=1),
        "at": st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC)).map(
            lambda at: at.replace(microsecond=0)
        ),
        "day": st.dates(date(2026, 1, 1), date(2026, 3, 1)),
        "id": st.uuids(),
        "raw": st.binary(max_size=2),
        "word": st.sampled_from(["red", "green", "000001"]),
        "colour": st.sampled_from(Colour),
        "level": st.sampled_from(Level),
    }
)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    slots = draw(st.lists(st.sampled_from(SLOTS), min_size=1, max_size=3, unique=True))
    fields = [slot and slot.strip("{}").partition(":")[0] for slot in slots]
    known = dict(zip(fields, slots, strict=True))
    text = "#".join(draw(LITERALS) + (slot or "") for slot in known.values())
    return template(text or "A")


@given(templates(), templates(), VALUES)
def test_keys_that_are_equal_are_said_to_meet_and_examples_are_keys_of_both(
    one: Template, other: Template, values: dict[str, Any]
) -> None:
    example = overlap(one.text, other.text)
    try:
        key = one.format(values)
    except DataError:  # a value that does not fit the width
        key = None
    if key is not None and other.parse(key) is not None:
        assert example is not None
    if example is not None:
        assert one.parse(example) is not None
        assert other.parse(example) is not None


@given(templates(), VALUES)
def test_every_template_meets_its_own_keys_written_as_literals(one: Template, values: dict[str, Any]) -> None:
    try:
        key = one.format(values)
    except DataError:  # a value that does not fit the width
        return
    mine = segments(one)
    theirs = [Segment(text) for text in (key or "").split("#")]
    assert len(mine) == len(theirs)
    found = solve([SegmentPair(*both) for both in zip(mine, theirs, strict=True)])
    assert found is not None
    assert found.texts == tuple((key or "").split("#"))


#: A field may stand on both sides of a key, and in other widths.
WHOLE_KEYS = st.tuples(*[st.sampled_from([*SLOTS[:5], "{word}", "{other}"])] * 4, *[LITERALS] * 4)


def key_of(drawn: tuple[Any, ...]) -> tuple[Template, Template]:
    pieces = [literal + (slot or "") for slot, literal in zip(drawn[:4], drawn[4:], strict=True)]
    sides = []
    for pair, slots in ((pieces[:2], drawn[:2]), (pieces[2:], drawn[2:4])):
        fields = [slot.strip("{}").partition(":")[0] for slot in slots if slot]
        text = "#".join(pair) if len(set(fields)) == len(fields) else pair[0]
        sides.append(template(text or "A"))
    return sides[0], sides[1]


def values_of(key: tuple[Template, Template], texts: tuple[str, str]) -> dict[str, Any] | None:
    """What the key's fields are if it is these texts; None if they cannot be."""
    first, second = key[0].parse(texts[0]), key[1].parse(texts[1])
    if first is None or second is None:
        return None
    return first | second if all(second.get(name, first[name]) == first[name] for name in first) else None


@given(WHOLE_KEYS, WHOLE_KEYS, VALUES, st.text("Av0r", max_size=3))
def test_whole_keys_that_are_equal_are_said_to_meet(
    one: tuple[Any, ...], other: tuple[Any, ...], values: dict[str, Any], text: str
) -> None:
    mine, theirs = key_of(one), key_of(other)
    cuts = [(segments(left), segments(right)) for left, right in zip(mine, theirs, strict=True)]
    alike = all(len(left) == len(right) for left, right in cuts)
    pairs = [SegmentPair(*both) for left, right in cuts for both in zip(left, right, strict=False)]
    found = solve(pairs) if alike else None
    try:
        texts = (
            mine[0].format(values | {"other": text}) or "",
            mine[1].format(values | {"other": text}) or "",
        )
    except DataError:  # a value that does not fit the width
        texts = None
    if texts is not None and values_of(theirs, texts) is not None:
        assert found is not None
    if found is not None and found.texts is not None:
        size = len(cuts[0][0])
        example = ("#".join(found.texts[:size]), "#".join(found.texts[size:]))
        assert values_of(mine, example) is not None
        assert values_of(theirs, example) is not None
