"""Every type goes to a canonical DynamoDB value and comes back the same, or is refused by name."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, NewType
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, SecretBytes, SecretStr
from typing_extensions import TypedDict

from solotable._entities.codecs.field_codecs import Attribute, attribute_of
from solotable._entities.codecs.scalars import utc_text
from solotable._entities.declare.fields import FROM_SCOPE, TTL, Attr, Created, Json, Updated, Version
from solotable._values import AttributeValue, canonical
from solotable.errors import DataError, DeclarationError


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    TEXT = "a"
    NUMBER = 1


class Rights(IntFlag):
    READ = 1
    WRITE = 2


class Street(BaseModel):
    name: str
    number: Annotated[int, Attr("n")] = 0
    tags: set[str]
    note: str | None = None


class Tree(BaseModel):
    label: str
    children: list[Tree] = []
    parent: Tree | None = None


class Aliased(BaseModel):
    street: str = Field(alias="Street")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Attr("n")]


class Root(pydantic.RootModel[list[int]]):
    pass


class Point(TypedDict):
    x: Decimal
    at: datetime
    note: str | None


@dataclass
class Size:
    width: float
    labels: frozenset[str]


UserId = NewType("UserId", str)
NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, UTC)
WIDE = "12345678901234567890.123456789012345678"
ONE = UUID("12345678-1234-5678-1234-567812345678")


def compile_field(
    annotation: Any, default: Any = ..., *, flat: bool = False
) -> tuple[Attribute, type[BaseModel]]:
    model = pydantic.create_model("Section", value=(annotation, default))
    return attribute_of("Section", "value", model.model_fields["value"], flat=flat), model


def encode(annotation: Any, value: Any, *, flat: bool = False) -> AttributeValue | None:
    return compile_field(annotation, flat=flat)[0].encode(value)


def round_trip(annotation: Any, value: Any, *, flat: bool = False) -> AttributeValue | None:
    """Encode what the model holds, require it canonical, and decode it back through the model."""
    attribute, model = compile_field(annotation, flat=flat)
    held = model.model_validate({"value": value}).value  # type: ignore[attr-defined]  # made above
    encoded = attribute.encode(held)
    if encoded is None:
        assert attribute.missing is not None
        loaded = attribute.missing()
    else:
        assert list(canonical(encoded).items()) == list(encoded.items())
        assert attribute.kind in (None, next(iter(encoded))) or "NULL" in encoded
        loaded = attribute.decode(encoded)
    again = model.model_validate({"value": loaded}).value  # type: ignore[attr-defined]  # made above
    assert again == held
    assert type(again) is type(held)
    return encoded


CASES: list[tuple[Any, Any, AttributeValue | None]] = [
    (str, "a", {"S": "a"}),
    (str, "", {"S": ""}),
    (UserId, "a", {"S": "a"}),
    (bool, True, {"BOOL": True}),
    (int, -5, {"N": "-5"}),
    (int, 10**125, {"N": "1" + "0" * 125}),
    (float, 0.1, {"N": "0.1"}),
    (float, 1e22, {"N": "1" + "0" * 22}),
    (float, -0.0, {"N": "0"}),
    (Decimal, Decimal("1.50"), {"N": "1.5"}),
    (
        Decimal,
        Decimal("12345678901234567890.123456789012345678"),
        {"N": "12345678901234567890.123456789012345678"},
    ),
    (bytes, b"\x00\xff", {"B": "AP8="}),
    (datetime, NOON, {"S": "2026-11-15T12:00:00.123456Z"}),
    (AwareDatetime, NOON.replace(microsecond=0), {"S": "2026-11-15T12:00:00.000000Z"}),
    (datetime, datetime(1, 1, 1, tzinfo=UTC), {"S": "0001-01-01T00:00:00.000000Z"}),
    (date, date(2026, 1, 2), {"S": "2026-01-02"}),
    (time, time(9, 30), {"S": "09:30:00.000000"}),
    (timedelta, timedelta(days=1), {"N": "86400"}),
    (timedelta, timedelta(microseconds=-1), {"N": "-0.000001"}),
    (timedelta, timedelta.max, {"N": "86399999999999.999999"}),
    (timedelta, timedelta.min, {"N": "-86399999913600"}),
    (Color, Color.RED, {"S": "red"}),
    (Level, Level.HIGH, {"N": "2"}),
    (Mixed, Mixed.NUMBER, {"N": "1"}),
    (Rights, Rights.READ | Rights.WRITE, {"N": "3"}),
    (Literal["a", "b"], "b", {"S": "b"}),
    (Literal[1, 2], 2, {"N": "2"}),
    (Literal[Color.RED], Color.RED, {"S": "red"}),
    (Literal["a", 1], 1, {"N": "1"}),
    (UUID, ONE, {"S": "12345678-1234-5678-1234-567812345678"}),
    (SecretStr, "hush", {"S": "hush"}),
    (SecretBytes, b"hush", {"B": "aHVzaA=="}),
    (str | None, "a", {"S": "a"}),
    (str | None, None, None),
    (Literal["a", None], "a", {"S": "a"}),
    (set[str], {"b", "a"}, {"SS": ["a", "b"]}),
    (set[str], set(), None),
    (set[int] | None, {1}, {"NS": ["1"]}),
    (frozenset[int], {10, 9, -1}, {"NS": ["-1", "9", "10"]}),
    (set[Decimal], {Decimal("1.50"), Decimal(-2)}, {"NS": ["-2", "1.5"]}),
    (set[bytes], {b"\xff", b"\x00"}, {"BS": ["AA==", "/w=="]}),
    (set[Color], {Color.RED, Color.BLUE}, {"SS": ["blue", "red"]}),
    (set[Level], {Level.HIGH, Level.LOW}, {"NS": ["1", "2"]}),
    (set[UUID], {ONE}, {"SS": [str(ONE)]}),
    (list[int], [2, 1], {"L": [{"N": "2"}, {"N": "1"}]}),
    (list[str | None], ["a", None], {"L": [{"S": "a"}, {"NULL": True}]}),
    (list[set[str]], [{"a"}, set()], {"L": [{"SS": ["a"]}, {"NULL": True}]}),
    (Sequence[int], [1], {"L": [{"N": "1"}]}),
    (deque[int], deque([1]), {"L": [{"N": "1"}]}),
    (tuple[int, ...], (1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
    (tuple[int, str], (1, "a"), {"L": [{"N": "1"}, {"S": "a"}]}),
    (dict[str, int | None], {"a": 1, "b": None}, {"M": {"a": {"N": "1"}, "b": {"NULL": True}}}),
    (dict[int, str], {7: "x"}, {"M": {"7": {"S": "x"}}}),
    (Mapping[UUID, str], {ONE: "x"}, {"M": {str(ONE): {"S": "x"}}}),
    (
        Street,
        {"name": "High", "number": 3, "tags": []},
        {"M": {"name": {"S": "High"}, "n": {"N": "3"}}},
    ),
    (Aliased, {"Street": "High"}, {"M": {"street": {"S": "High"}}}),
    (Open, {"name": "a", "n2": 2}, {"M": {"n": {"S": "a"}, "n2": {"N": "2"}}}),
    (Root, [1], {"L": [{"N": "1"}]}),
    (Size, Size(1.5, frozenset()), {"M": {"width": {"N": "1.5"}, "labels": {"L": []}}}),
    (
        Point,
        {"x": Decimal("0.5"), "at": NOON, "note": None},
        {"M": {"x": {"N": "0.5"}, "at": {"S": "2026-11-15T12:00:00.123456Z"}, "note": {"NULL": True}}},
    ),
    (int | str, 5, {"N": "5"}),
    (int | str, "5", {"S": "5"}),
    (timedelta | int, timedelta(seconds=-1.5), {"S": "-PT1.5S"}),
    (UUID | int | None, ONE, {"S": str(ONE)}),
    (Annotated[int, PlainSerializer(lambda value: f"{value}")] | None, 5, {"S": "5"}),
    (list[Annotated[int, Field(gt=0)]], [5], {"L": [{"N": "5"}]}),
    (Street | int, 5, {"N": "5"}),
    (Any, {"a": [1, "b", None]}, {"M": {"a": {"L": [{"N": "1"}, {"S": "b"}, {"NULL": True}]}}}),
    (IPv4Address, IPv4Address("10.0.0.1"), {"S": "10.0.0.1"}),
    (Annotated[int, PlainSerializer(lambda value: f"{value}")], 5, {"S": "5"}),
    (Annotated[dict[str, int], Json()], {"b": 1, "é": 2}, {"S": '{"b":1,"é":2}'}),
    (Annotated[list[Decimal] | None, Json()], [Decimal("1.10")], {"S": '["1.10"]'}),
    (Annotated[set[int], Json()], {2, 1}, {"S": "[1,2]"}),
    (Annotated[Size, Json()], Size(1.5, frozenset("a")), {"S": '{"width":1.5,"labels":["a"]}'}),
    (Annotated[dict[UUID, SecretStr], Json()], {ONE: "hush"}, {"S": f'{{"{ONE}":"hush"}}'}),
    (Annotated[timedelta, Json()], timedelta(microseconds=-1), {"S": '"-PT0.000001S"'}),
    (Annotated[datetime, TTL()], NOON.replace(microsecond=0), {"N": "1794744000"}),
    (Annotated[datetime | None, TTL()], NOON.replace(microsecond=0), {"N": "1794744000"}),
    (Annotated[int, TTL()], 1794744000, {"N": "1794744000"}),
    (Annotated[AwareDatetime, TTL()] | None, NOON.replace(microsecond=0), {"N": "1794744000"}),
    (Annotated[list[int], Json()] | None, [1], {"S": "[1]"}),
]


def _case_id(case: Any) -> str:
    # The order of a set is another in every process, and workers must agree on names.
    return str(sorted(map(str, case)) if isinstance(case, (set, frozenset)) else case)[:50]


@pytest.mark.parametrize("annotation, value, expected", CASES, ids=_case_id)
def test_a_value_comes_back_from_its_canonical_form(
    annotation: Any, value: Any, expected: AttributeValue | None
) -> None:
    attribute, _ = compile_field(annotation)
    if value is None:
        assert attribute.encode(None) is None
    else:
        assert round_trip(annotation, value) == expected


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    assert round_trip(str, text) == {"S": text}


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e125, max_value=1e125))
def test_any_float_in_range_comes_back_exactly(number: float) -> None:
    attribute, _ = compile_field(float)
    if number and abs(number) < 1e-130:
        with pytest.raises(DataError, match="underflow"):
            attribute.encode(number)
    else:
        encoded = attribute.encode(number)
        assert encoded is not None
        assert encoded == canonical(encoded)
        assert attribute.decode(encoded) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28), max_value=10**28))
def test_any_decimal_of_38_digits_comes_back_exactly(number: Decimal) -> None:
    attribute, _ = compile_field(Decimal)
    encoded = attribute.encode(number)
    assert encoded is not None
    assert encoded == canonical(encoded)
    assert attribute.decode(encoded) == number


@given(st.timedeltas())
def test_any_timedelta_comes_back(length: timedelta) -> None:
    attribute, _ = compile_field(timedelta)
    encoded = attribute.encode(length)
    assert encoded is not None
    assert encoded == canonical(encoded)
    assert attribute.decode(encoded) == length


@given(
    st.frozensets(st.binary(max_size=4))
    | st.frozensets(st.integers(-(10**37), 10**37))
    | st.frozensets(st.text(max_size=4))
)
def test_any_set_is_canonical(members: frozenset[Any]) -> None:
    kind = type(next(iter(members), ""))
    attribute, _ = compile_field(frozenset[kind])  # type: ignore[valid-type]  # chosen at run time
    encoded = attribute.encode(members)
    if encoded is None:
        assert not members
    else:
        assert encoded == canonical(encoded)
        assert attribute.decode(encoded) == members


_ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_MOMENTS = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 1, 1),
    timezones=_ZONES,
)


@given(_MOMENTS, _MOMENTS)
def test_the_order_of_datetime_texts_is_the_order_of_time(left: datetime, right: datetime) -> None:
    texts = utc_text(left), utc_text(right)
    assert (texts[0] < texts[1]) == (left < right)
    assert (texts[0] == texts[1]) == (left == right)
    assert {len(text) for text in texts} == {27}


def test_a_datetime_of_another_zone_is_stored_in_utc() -> None:
    berlin = datetime(2026, 7, 1, 14, tzinfo=ZoneInfo("Europe/Berlin"))
    assert encode(datetime, berlin) == {"S": "2026-07-01T12:00:00.000000Z"}


def test_a_ttl_is_cut_to_the_second_also_before_1970() -> None:
    ttl = Annotated[datetime, TTL()]
    assert encode(ttl, NOON) == {"N": "1794744000"}
    assert encode(ttl, datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)) == {"N": "-1"}


REFUSED_VALUES: list[tuple[Any, Any, str]] = [
    (datetime, datetime(2026, 1, 1), "no time zone"),
    (Annotated[datetime, TTL()], datetime(2026, 1, 1), "no time zone"),
    (datetime, datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "range"),
    (float, math.nan, "DynamoDB has no"),
    (float, -math.inf, "DynamoDB has no"),
    (float, 1e126, "overflow"),
    (Decimal, Decimal("NaN"), "DynamoDB has no"),
    (Decimal, Decimal("1." + "1" * 38), "38 significant digits"),
    (int, 10**38 + 1, "38 significant digits"),
    (int, True, "it is a bool"),
    (int, "5", "it is str"),
    (str, 5, "it is int"),
    (str, None, "it is NoneType"),
    (str, FROM_SCOPE, "no tenant is set"),
    (bool, 1, "it is int"),
    (bytes, "a", "it is str"),
    (date, NOON, "it is a datetime"),
    (Color, "green", "not a valid Color"),
    (Literal["a"], "b", "not one of 'a'"),
    (set[str], "abc", "it is str"),
    (set[int], {"a"}, "it is str"),
    (list[int], "abc", "it is str"),
    (list[int], ["a"], "it is str"),
    (tuple[int, str], (1,), "not a tuple of 2"),
    (dict[str, int], {"": 1}, "rejects empty names"),
    (dict[str, int], [1], "no attribute 'items'"),
    (Street, {"name": "a"}, "it is dict"),
    (Open, Open.model_validate({"name": "a", "b": math.nan}), "DynamoDB has no"),
    (int | str, 1.5, "Expected"),
    (bytes | SecretBytes, SecretBytes(b"a"), "it would be decoded as b'a'"),
    (Any, {"a": math.nan}, "DynamoDB has no"),
    (Any, {"": 1}, "not empty"),
    (Annotated[dict[str, float], Json()], {"a": math.nan}, "DynamoDB has no"),
    (Annotated[list[datetime], Json()], [datetime(2026, 1, 1)], "no time zone"),
    (Annotated[list[bytes], Json()], [b"\xff"], "utf-8"),
]


@pytest.mark.parametrize("annotation, value, reason", REFUSED_VALUES, ids=lambda case: str(case)[:40])
def test_a_value_that_cannot_be_stored_is_refused_by_field_value_and_reason(
    annotation: Any, value: Any, reason: str
) -> None:
    attribute, _ = compile_field(annotation)
    with pytest.raises(DataError) as refused:
        attribute.encode(value)
    text = str(refused.value)
    assert text.startswith("Section.value cannot store ")
    assert reason in text
    assert text.endswith(".")
    assert "\n" not in text


def test_an_error_does_not_contain_a_secret() -> None:
    with pytest.raises(DataError) as refused:
        encode(int, SecretStr("hush"))
    assert "hush" not in str(refused.value)


REFUSED_STORED: list[tuple[Any, AttributeValue, str]] = [
    (int, {"S": "1"}, "Section.value is stored as S, but the model expects N; change"),
    (str, {"N": "1"}, "Section.value is stored as N, but the model expects S; change"),
    (
        str,
        {"NULL": True},
        "Section.value is stored as NULL, but the model expects S; declare the field optional",
    ),
    (bool, {"N": "1"}, "is stored as N, but the model expects BOOL"),
    (set[str], {"L": []}, "is stored as L, but the model expects SS"),
    (list[int], {"M": {}}, "is stored as M, but the model expects L"),
    (list[int], {"L": [{"S": "1"}]}, "is stored as S, but the model expects N"),
    (tuple[int, str], {"L": []}, "not a list of 2"),
    (dict[str, int], {"L": []}, "is stored as L, but the model expects M"),
    (Street, {"S": "a"}, "is stored as S, but the model expects M"),
    (Street, {"M": {"name": {"N": "1"}}}, "Section.value.name is stored as N, but the model expects S"),
    (Street, {"M": {}}, "name: Field required"),
    (Annotated[list[int], Json()], {"L": []}, "is stored as L, but the model expects S"),
    (Annotated[list[int], Json()], {"S": "{"}, "Invalid JSON"),
    (int, {"N": "1.5"}, "not a whole number"),
    (datetime, {"S": "yesterday"}, "cannot decode the stored 'yesterday'"),
    (datetime, {"S": "2026-01-01T00:00:00"}, "no time zone"),
    (Annotated[datetime, TTL()], {"N": "9" * 30}, "cannot decode the stored"),
    (timedelta, {"N": "0.0000001"}, "finer than a microsecond"),
    (timedelta, {"N": "9" * 38}, "cannot decode the stored"),
    (Color, {"S": "green"}, "not a valid Color"),
    (Literal["a"], {"S": "b"}, "not one of 'a'"),
    (UUID, {"S": "x"}, "cannot decode the stored 'x'"),
    (int | bool, {"S": "x"}, "cannot decode the stored"),
]


@pytest.mark.parametrize("annotation, stored, reason", REFUSED_STORED, ids=lambda case: str(case)[:40])
def test_a_stored_value_that_the_field_cannot_hold_is_refused_by_name(
    annotation: Any, stored: AttributeValue, reason: str
) -> None:
    attribute, _ = compile_field(annotation)
    with pytest.raises(DataError) as refused:
        attribute.decode(stored)
    assert reason in str(refused.value)
    assert str(refused.value).startswith("Section.value")


class _Odd:
    pass


class _Twice(BaseModel):
    a: str
    b: Annotated[str, Attr("a")]


class _Stamped(BaseModel):
    version: Annotated[int, Version()] = 0


REFUSED_TYPES: list[tuple[Any, str]] = [
    (_Odd, "no DynamoDB form"),
    (Callable[[], int], "no DynamoDB form"),
    (list[_Odd], "no DynamoDB form"),
    (pydantic.NaiveDatetime, "time zone"),
    (set, "use a set of"),
    (set[bool], "use a set of"),
    (set[tuple[int, int]], "use a set of"),
    (set[str | None], "use a set of"),
    (dict[bytes, int], "use str for a map's names"),
    (dict[bool, int], "use str for a map's names"),
    (pydantic.Json[list[int]], "solotable's"),
    (Annotated[str, Version()], "declare it as int"),
    (Annotated[int | None, Version()], "declare it as int"),
    (Annotated[bool, Version()], "declare it as int"),
    (Annotated[str, TTL()], "declare it as datetime or int"),
    (Annotated[float, TTL()], "declare it as datetime or int"),
    (Annotated[int | datetime, TTL()], "declare it as datetime or int"),
    (Annotated[date, Created()], "declare it as datetime"),
    (Annotated[int, Updated()], "declare it as datetime"),
    (Annotated[datetime, Created(), Updated()], "a field for each"),
    (Annotated[int, Version(), TTL()], "a field for each"),
    (Annotated[str, Attr("a"), Attr("b")], "remove one"),
    (Annotated[int, Version], "write Version(...)"),
    (UUID | str, "cannot be distinguished when stored"),
    (datetime | str | None, "cannot be distinguished when stored"),
    (list[Annotated[str, Attr("a")]], "mark the field itself"),
    (dict[str, Annotated[list[int], Json()] | None], "mark the field itself"),
    (Annotated[str, TTL()] | None, "declare it as datetime or int"),
    (_Twice, "stores a and b as 'a'"),
    (_Stamped, "Section.value.version has a marker for fields that the store writes"),
]


@pytest.mark.parametrize("annotation, reason", REFUSED_TYPES, ids=lambda case: str(case)[:40])
def test_a_type_without_a_form_is_refused_when_it_is_declared(annotation: Any, reason: str) -> None:
    holder = pydantic.create_model(
        "Section", __config__=ConfigDict(arbitrary_types_allowed=True), value=(annotation, ...)
    )
    with pytest.raises(DeclarationError) as refused:
        attribute_of("Section", "value", holder.model_fields["value"], flat=False)
    assert str(refused.value).startswith("Section.value")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


NESTED = [
    list[str],
    dict[str, str],
    tuple[int, ...],
    Street,
    Point,
    Size,
    Root,
    list[int] | None,
    Street | int,
]


@pytest.mark.parametrize("annotation", NESTED, ids=str)
def test_flat_mode_refuses_nested_types_unless_they_are_json(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match=r"^Section\.value is .*flat mode.*Json\(\)"):
        compile_field(annotation, flat=True)
    attribute, _ = compile_field(Annotated[annotation, Json()], flat=True)
    assert attribute.kind == "S"
    assert attribute.json


@pytest.mark.parametrize(
    "annotation, value", [(str, "a"), (set[str], {"a"}), (int | str, 5), (bytes, b"a"), (Any, "a")], ids=str
)
def test_flat_mode_keeps_scalars_and_sets(annotation: Any, value: Any) -> None:
    round_trip(annotation, value, flat=True)


@pytest.mark.parametrize(
    "annotation", [str, int, set[str], bool, Any, int | str, Annotated[dict[str, int], Json()]]
)
@pytest.mark.parametrize("stored", [{"M": {"a": {"S": "b"}}}, {"L": []}], ids=["map", "list"])
def test_flat_mode_reads_no_map_and_no_list(annotation: Any, stored: AttributeValue) -> None:
    attribute, _ = compile_field(annotation, flat=True)
    with pytest.raises(DataError, match="flat mode stores no lists and no maps"):
        attribute.decode(stored)


@pytest.mark.parametrize("value", [{"a": 1}, [1]], ids=str)
def test_flat_mode_writes_no_map_and_no_list_from_any(value: Any) -> None:
    with pytest.raises(DataError, match="flat mode stores no lists and no maps"):
        encode(Any, value, flat=True)


def test_none_is_absent_where_absence_reads_as_none() -> None:
    required, _ = compile_field(str | None)
    assert required.optional
    assert required.encode(None) is None
    assert required.missing is not None
    assert required.missing() is None
    defaulted, _ = compile_field(str | None, None)
    assert defaulted.encode(None) is None
    assert defaulted.missing is None
    assert defaulted.decode({"NULL": True}) is None


def test_none_is_null_where_absence_would_read_as_another_default() -> None:
    attribute, _ = compile_field(str | None, "draft")
    assert attribute.encode(None) == {"NULL": True}
    assert attribute.decode({"NULL": True}) is None
    made, _ = compile_field(list[int] | None, Field(default_factory=list))
    assert made.encode(None) == {"NULL": True}


def test_an_absent_set_is_empty_whatever_its_default() -> None:
    attribute, _ = compile_field(set[str], {"a"})
    assert attribute.encode(set()) is None
    assert attribute.missing is not None
    assert attribute.missing() == set()
    assert attribute.missing() is not attribute.missing()


def test_errors_name_markers_and_fields() -> None:
    class Section(BaseModel):
        version: Annotated[int, Version()] = 0
        expires: Annotated[datetime | None, TTL(), Attr("ttl")] = None
        made: Annotated[datetime, Created()]
        changed: Annotated[AwareDatetime | None, Updated(), Field(description="when")] = None
        title: Annotated[str, Attr("t"), Field(min_length=1)]

    told = {
        name: attribute_of("Section", name, info, flat=True) for name, info in Section.model_fields.items()
    }
    assert [name for name, a in told.items() if a.version] == ["version"]
    assert [name for name, a in told.items() if a.ttl] == ["expires"]
    assert [name for name, a in told.items() if a.created] == ["made"]
    assert [name for name, a in told.items() if a.updated] == ["changed"]
    assert {name: a.wire for name, a in told.items() if a.wire != name} == {"expires": "ttl", "title": "t"}
    assert [a.kind for a in told.values()] == ["N", "N", "S", "S", "S"]
    assert told["expires"].optional
    assert not told["title"].optional


def test_a_model_inside_itself_comes_back() -> None:
    leaf = Tree(label="leaf", parent=Tree(label="other"))
    encoded = round_trip(Tree, Tree(label="root", children=[leaf, Tree(label="b")]))
    assert encoded is not None
    assert encoded["M"]["children"]["L"][0]["M"]["parent"]["M"]["label"] == {"S": "other"}


def test_numbers_load_exactly_as_the_field_says() -> None:
    wide = "1234567890123456789012345678.9012345678"
    assert compile_field(Decimal)[0].decode({"N": wide}) == Decimal(wide)
    whole = compile_field(int)[0].decode({"N": "100000000000000000000000000000000000001"[:38]})
    assert whole == 10**37
    loaded = compile_field(float)[0].decode({"N": "3"})
    assert (loaded, type(loaded)) == (3.0, float)
    assert compile_field(int)[0].decode({"N": "1E+3"}) == 1000


def test_bare_enum_values_are_taken_as_models_with_use_enum_values_hold_them() -> None:
    assert encode(Color, "red") == {"S": "red"}
    assert encode(Level, 2) == {"N": "2"}


def test_a_str_enum_beside_str_comes_back_as_an_equal_text() -> None:
    attribute, _ = compile_field(Color | str)
    assert attribute.encode(Color.RED) == {"S": "red"}
    assert attribute.decode({"S": "red"}) == Color.RED


@pytest.mark.parametrize("model", [Street.model_construct(), Street.model_construct(name=5)], ids=str)
def test_a_nested_model_made_without_validation_is_refused_by_its_field(model: Street) -> None:
    with pytest.raises(DataError, match=r"^Section\.value\.name cannot store"):
        encode(Street, model)


def test_a_subclass_of_str_is_stored_as_plain_text() -> None:
    encoded = encode(str, Color.RED)
    assert encoded == {"S": "red"}
    assert type(encoded["S"]) is str


@pytest.mark.parametrize(
    "annotation, value",
    [
        (Color, Color.RED),
        (datetime, NOON),
        (UUID, ONE),
        (Decimal, Decimal(1)),
        (bytes, b"a"),
        (Street | None, None),
    ],
    ids=str,
)
def test_strict_models_take_what_load_gives(annotation: Any, value: Any) -> None:
    strict: type[Any] = pydantic.create_model(
        "Section", __config__=ConfigDict(strict=True), value=(annotation, ...)
    )
    attribute = attribute_of("Section", "value", strict.model_fields["value"], flat=False)
    loaded = attribute.decode(attribute.encode(value) or {"NULL": True})
    assert strict.model_validate({"value": loaded}).value == value


def test_json_that_could_not_be_read_back_is_not_written() -> None:
    class Holder(BaseModel):
        data: Annotated[Any, Json()]

    attribute = attribute_of("Holder", "data", Holder.model_fields["data"], flat=False)
    deep: Any = 1
    for _ in range(90):
        deep = [deep]
    kept = attribute.encode(deep)
    assert kept is not None
    assert attribute.decode(kept) == deep
    wide = [[number] for number in range(500)]
    kept = attribute.encode(wide)
    assert kept is not None
    assert attribute.decode(kept) == wide
    for _ in range(300):
        deep = [deep]
    with pytest.raises(DataError, match=r"Holder\.data"):
        attribute.encode(deep)
