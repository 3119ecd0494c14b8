"""Each type's text in a key: what it looks like, what is refused, and how the refusal reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, EmailStr, Field, NaiveDatetime, PastDate, PositiveInt

from solotable._entities.keys.parts.choose_codec import choose_codec
from solotable._entities.keys.parts.codecs import PartCodec, escape, unescape
from solotable.errors import DataError, DeclarationError

SurveyId = NewType("SurveyId", str)


class Status(Enum):
    DRAFT = "draft"
    DONE = "100% done"


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Numbered(Enum):
    ONE = 1


class Rights(Flag):
    READ = 1


class Address(BaseModel):
    street: str


def codec(annotation: Any, spec: str = "") -> PartCodec:
    return choose_codec(annotation, spec, where="Section.by_order", field="x")


def declaration_refusal(annotation: Any, spec: str = "") -> str:
    with pytest.raises(DeclarationError) as refused:
        codec(annotation, spec)
    return str(refused.value)


def data_refusal(of: PartCodec, value: object) -> str:
    with pytest.raises(DataError) as refused:
        of.encode(value)
    return str(refused.value)


def test_ordinary_ids_look_as_they_are() -> None:
    assert escape("01J9ZK_a-b.c:d@e/ñ😀") == "01J9ZK_a-b.c:d@e/ñ😀"


def test_every_character_through_the_percent_sign_is_escaped() -> None:
    assert escape("\x00 !\"#$%&'") == "%00%20%21%22%23%24%25&'"


def test_unescaping_reverses_escaping() -> None:
    assert unescape(escape("100%25 #1 \x1f\t$")) == "100%25 #1 \x1f\t$"


@pytest.mark.parametrize("text", ["a b", "#", "$", "%", "%2", "%26", "%1f", "%zz", "%4A", "a\ud800"])
def test_text_that_escaping_never_gives_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not escaped text"):
        unescape(text)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(DataError) as refused:
        escape("a\ud800")
    assert "lone surrogate U+D800" in str(refused.value)
    assert data_refusal(codec(str), "a\udfff").startswith(r"Section.x = 'a\udfff' has a lone surrogate")


CASES: list[tuple[Any, str, Any, str]] = [
    (str, "", "a#b", "a%23b"),
    (str, "", "", ""),
    (Annotated[str, Field(min_length=1)], "", "a", "a"),
    (SurveyId, "", "a", "a"),
    (EmailStr, "", "a@b.c", "a@b.c"),
    (Literal["draft", "in progress"], "", "in progress", "in%20progress"),
    (Status, "", Status.DONE, "100%25%20done"),
    (Colour, "", Colour.RED, "red"),
    (UUID, "", UUID(int=10), "00000000-0000-0000-0000-00000000000a"),
    (int, "06d", 0, "000000"),
    (int, "06d", 999_999, "999999"),
    (PositiveInt, "03d", 7, "007"),
    (int, "+06d", 0, "000000"),
    (int, "+06d", 999_999, "999999"),
    (int, "+06d", -1, "-99998"),
    (int, "+06d", -99_999, "-00000"),
    (int, "01d", 9, "9"),
    (Level, "02d", Level.HIGH, "10"),
    (Decimal, "010.2f", Decimal("12.5"), "0000012.50"),
    (Decimal, "010.2f", Decimal("9999999.99"), "9999999.99"),
    (Decimal, "010.2f", Decimal("1E+3"), "0001000.00"),
    (Decimal, "010.2f", Decimal("-0.000"), "0000000.00"),
    (Decimal, "04.0f", Decimal("12.00"), "0012"),
    (Decimal, "+08.2f", Decimal("-0.01"), "-9999.98"),
    (Decimal, "+08.2f", Decimal("-9999.99"), "-0000.00"),
    (Decimal, "+08.2f", Decimal("99999.99"), "99999.99"),
    (datetime, "", datetime(2026, 11, 15, 13, 11, 10, 123456, UTC), "2026-11-15T13:11:10.123456Z"),
    (datetime, "us", datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
    (datetime, "ms", datetime(2026, 11, 15, 13, 11, 10, 123000, UTC), "2026-11-15T13:11:10.123Z"),
    (AwareDatetime, "s", datetime(9999, 12, 31, 23, 59, 59, 0, UTC), "9999-12-31T23:59:59Z"),
    (date, "", date(2026, 11, 15), "2026-11-15"),
    (PastDate, "", date(1, 1, 1), "0001-01-01"),
    (bytes, "", b"\x00\xff", "00ff"),
]


@pytest.mark.parametrize("annotation, spec, value, text", CASES, ids=str)
def test_a_value_has_this_text_and_reads_back(annotation: Any, spec: str, value: Any, text: str) -> None:
    part = codec(annotation, spec)
    assert part.encode(value) == text
    assert type(part.encode(value)) is str
    assert part.decode(text) == value
    assert type(part.decode(text)) is type(value)
    assert part.width in (None, len(text))


def test_a_zoned_time_is_stored_in_utc() -> None:
    local = datetime(2026, 11, 15, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert codec(datetime, "s").encode(local) == "2026-11-14T23:00:00Z"


def test_the_plain_value_of_an_enum_is_taken_for_its_member() -> None:
    assert codec(Status).encode("draft") == "draft"


def test_an_int_is_taken_for_a_decimal() -> None:
    assert codec(Decimal, "06.2f").encode(5) == "005.00"


@pytest.mark.parametrize(
    "annotation, spec, kind, width",
    [
        (str, "", "text", None),
        (Literal["a", "b"], "", "choice", None),
        (int, "06d", "digits", 6),
        (int, "+06d", "digits", 6),
        (Decimal, "+010.2f", "decimal", 10),
        (datetime, "", "timestamp", 27),
        (datetime, "ms", "timestamp", 24),
        (datetime, "s", "timestamp", 20),
        (date, "", "date", 10),
        (UUID, "", "uuid", 36),
        (bytes, "", "hex", None),
    ],
    ids=str,
)
def test_a_codec_says_what_it_is(annotation: Any, spec: str, kind: str, width: int | None) -> None:
    part = codec(annotation, spec)
    assert (part.kind, part.width) == (kind, width)


def test_a_finite_set_is_reported_as_encoded() -> None:
    assert codec(Literal["a b", "c"]).choices == ("a%20b", "c")
    assert codec(Status).choices == ("draft", "100%25%20done")
    assert codec(Level, "03d").choices == ("001", "010")
    assert codec(str).choices is None


@pytest.mark.parametrize(
    "annotation",
    [
        str | None,
        Optional[str],  # noqa: UP045 - the old spelling is what is tested
        Annotated[str | None, Field(max_length=3)],
        Annotated[str, Field(max_length=3)] | None,
        Literal["a", None],
    ],
    ids=str,
)
def test_none_makes_a_part_optional(annotation: Any) -> None:
    assert codec(annotation).optional
    assert codec(annotation).encode("a") == "a"


def test_a_part_is_not_optional_without_none() -> None:
    assert not codec(str).optional


@pytest.mark.parametrize(
    "annotation, spec, way_out",
    [
        (float, "", "use a Decimal with a width"),
        (float, "06d", "use a Decimal with a width"),
        (bool, "", "use a Literal of two words"),
        (int, "", "write {x:06d}"),
        (int, "6d", "write {x:06d}"),
        (int, "00d", "write {x:06d}"),
        (int, "+01d", "write {x:06d}"),
        (int, "06x", "write {x:06d}"),
        (int, "0100d", "write {x:06d}"),
        (Level, "", "write {x:06d}"),
        (Level, "01d", "is too narrow for a member of Level"),
        (Decimal, "", "write {x:010.2f}"),
        (Decimal, "010f", "write {x:010.2f}"),
        (Decimal, "03.2f", "declare a greater width"),
        (Decimal, "+04.2f", "declare a greater width"),
        (datetime, "d", "use x:s, x:ms or x:us"),
        (NaiveDatetime, "", "cannot be part of a key"),
        (str, "06d", "write {x}"),
        (Status, ">6", "write {x}"),
        (list[str], "", "is a list[str], which cannot be part of a key"),
        (dict[str, str], "", "cannot be part of a key"),
        (Address, "", "is a Address, which cannot be part of a key"),
        (str | int, "", "cannot be part of a key"),
        (str | int | None, "", "cannot be part of a key"),
        (Any, "", "cannot be part of a key"),
        (None, "", "cannot be part of a key"),
        (Rights, "", "cannot be part of a key"),
        (Numbered, "", "not all strings"),
        (Literal[1, 2], "", "not all strings"),
        (Literal["a", 1], "", "not all strings"),
        (Literal["\ud800"], "", "cannot be stored"),
    ],
    ids=repr,
)
def test_a_type_without_an_order_is_refused_with_a_way_out(annotation: Any, spec: str, way_out: str) -> None:
    message = declaration_refusal(annotation, spec)
    assert message.startswith("Section.by_order: {x" + (f":{spec}" if spec else "") + "} ")
    assert way_out in message


NEW_YEAR = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    "annotation, spec, value, reason",
    [
        (str, "", 1, "needs str"),
        (str, "", b"a", "needs str"),
        (Literal["a", "b"], "", "c", "is not one of 'a', 'b'"),
        (Literal["a", "b"], "", ["a"], "is not one of 'a', 'b'"),
        (Status, "", "gone", "is not one of 'draft', '100% done'"),
        (Status, "", Numbered.ONE, "is not one of"),
        (UUID, "", "00000000-0000-0000-0000-00000000000a", "needs UUID"),
        (int, "06d", -1, "add a + before the width for negative numbers"),
        (int, "+06d", -100_000, "does not fit {x:+06d}, which holds -99999 to 999999"),
        (int, "06d", True, "needs int"),
        (int, "06d", "1", "needs int"),
        (int, "06d", 1.0, "needs int"),
        (int, "06d", 10**5000, "int of too many digits does not fit"),
        (Level, "02d", 2, "is not a member of Level"),
        (Decimal, "06.2f", Decimal("1.001"), "has more than the 2 decimals"),
        (Decimal, "06.2f", Decimal("1E-2000"), "has more than the 2 decimals"),
        (Decimal, "06.2f", Decimal(1000), "does not fit {x:06.2f}"),
        (Decimal, "06.2f", Decimal("1E+999999"), "does not fit {x:06.2f}"),
        (Decimal, "06.2f", Decimal(-1), "a + before the width"),
        (Decimal, "+06.2f", Decimal(-100), "does not fit {x:+06.2f}"),
        (Decimal, "06.2f", Decimal("NaN"), "is not finite"),
        (Decimal, "06.2f", Decimal("sNaN"), "is not finite"),
        (Decimal, "06.2f", Decimal("-Infinity"), "is not finite"),
        (Decimal, "06.2f", 1.5, "needs Decimal"),
        (Decimal, "06.2f", True, "needs Decimal"),
        (datetime, "", datetime(2026, 1, 1), "has no time zone"),
        (datetime, "", date(2026, 1, 1), "needs datetime"),
        (datetime, "", NEW_YEAR, "is outside the years 0001 to 9999"),
        (datetime, "s", datetime(2026, 1, 1, 0, 0, 0, 1, UTC), "is finer than the seconds of {x:s}"),
        (datetime, "ms", datetime(2026, 1, 1, 0, 0, 0, 1, UTC), "is finer than the milliseconds"),
        (date, "", datetime(2026, 1, 1, tzinfo=UTC), "needs date"),
        (bytes, "", "00", "needs bytes"),
    ],
    ids=lambda each: str(each)[:40] if not isinstance(each, int) else "",
)
def test_a_value_that_does_not_fit_is_refused(annotation: Any, spec: str, value: Any, reason: str) -> None:
    message = data_refusal(codec(annotation, spec), value)
    assert message.startswith("Section.x = ")
    assert reason in message


def test_an_overflow_names_the_field_the_value_and_the_template() -> None:
    order = choose_codec(int, "06d", where="Section.by_order", field="order")
    assert data_refusal(order, 1_000_000) == (
        "Section.order = 1000000 does not fit {order:06d}, which holds 0 to 999999; "
        "use a smaller value or declare a greater width"
    )


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(data_refusal(codec(Literal["a"]), "b" * 10_000)) < 200


@pytest.mark.parametrize(
    "annotation, spec, text",
    [
        (Literal["a", "b"], "", "c"),
        (Status, "", "100% done"),
        (UUID, "", "00000000-0000-0000-0000-00000000000A"),
        (UUID, "", "0000000000000000000000000000000a"),
        (int, "06d", "7"),
        (int, "06d", "0000007"),
        (int, "06d", "+00007"),
        (int, "06d", "-99998"),
        (int, "06d", "00_007"),
        (int, "06d", " 00007"),
        (int, "06d", "00000٧"),
        (int, "+06d", "-99999"),
        (int, "+06d", "-"),
        (Level, "02d", "02"),
        (Decimal, "06.2f", "1.00"),
        (Decimal, "06.2f", "001.0a"),
        (Decimal, "06.2f", "001000"),
        (Decimal, "+06.2f", "-99.99"),
        (Decimal, "06.2f", "   NaN"),
        (datetime, "", "2026-11-15T13:11:10Z"),
        (datetime, "s", "2026-11-15 13:11:10Z"),
        (datetime, "s", "2026-11-15T13:11:10+"),
        (datetime, "s", "2026-02-30T13:11:10Z"),
        (date, "", "20261115"),
        (date, "", "2026-W46-7"),
        (bytes, "", "0"),
        (bytes, "", "FF"),
        (bytes, "", "00 ff"),
    ],
    ids=str,
)
def test_text_that_encoding_never_gives_does_not_decode(annotation: Any, spec: str, text: str) -> None:
    with pytest.raises(ValueError, match="is not an encoded"):
        codec(annotation, spec).decode(text)


def test_codecs_of_the_same_place_are_equal_and_hashable() -> None:
    assert codec(Status) == codec(Status)
    assert hash(codec(Status)) == hash(codec(Status))
    assert codec(int, "06d") != codec(int, "07d")
