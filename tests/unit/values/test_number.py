"""Numbers: one spelling, exact arithmetic, and bytes that sort as the numbers do."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from solotable._values import add, canonical_number, subtract
from solotable._values.number import number_size, ordered_number, read_ordered_number
from solotable.errors import ServiceError

OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
TOO_PRECISE = "Attempting to store more than 38 significant digits in a Number"


def fits(text: str) -> bool:
    try:
        canonical_number(text)
    except ServiceError:
        return False
    return True


numbers = st.builds(
    lambda sign, digits, power: f"{sign}{digits}E{power}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**38 - 1),
    st.integers(-130, 80),
).filter(fits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000", "1000"),
        ("1e3", "1000"),
        ("+1000", "1000"),
        ("001000", "1000"),
        ("1000.000", "1000"),
        ("-0", "0"),
        ("0e125", "0"),
        ("0.000e-127", "0"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1E-3", "0.001"),
        ("-12.50", "-12.5"),
        ("9" * 38 + "0" * 88, "9" * 38 + "0" * 88),
    ],
)
def test_every_spelling_of_a_number_becomes_one(text: str, expected: str) -> None:
    assert canonical_number(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1E126", OVERFLOW),
        ("-1E126", OVERFLOW),
        ("1E9223372036854775807", OVERFLOW),
        ("0e126", OVERFLOW),
        ("0e-131", UNDERFLOW),
        ("1E-131", UNDERFLOW),
        ("1E-9223372036854775807", UNDERFLOW),
        ("1" * 39, TOO_PRECISE),
        ("1." + "0" * 37 + "1", TOO_PRECISE),
        *(
            (text, f"The parameter cannot be converted to a numeric value: {text}")
            for text in (
                *("NaN", "Infinity", " 1", "1 ", "1_0", "0x1", "１", "--1", "1e", ".", "e5", "1\n"),
                *("1E9223372036854775808", "1E-" + "9" * 10_000),
            )
        ),
        ("", "The parameter cannot be converted to a numeric value"),
    ],
)
def test_an_invalid_dynamodb_number_is_rejected(text: str, message: str) -> None:
    with pytest.raises(ServiceError) as refused:
        canonical_number(text)
    assert refused.value.code == "ValidationException"
    assert refused.value.message == message


@given(numbers)
def test_the_canonical_text_is_the_same_number_and_its_own_canonical_text(text: str) -> None:
    canonical = canonical_number(text)
    assert Decimal(canonical) == Decimal(text)
    assert canonical_number(canonical) == canonical
    assert "E" not in canonical.upper()


@given(numbers, numbers)
def test_bytes_sort_as_numbers_do(left: str, right: str) -> None:
    left, right = canonical_number(left), canonical_number(right)
    assert (ordered_number(left) < ordered_number(right)) == (Decimal(left) < Decimal(right))
    assert (ordered_number(left) == ordered_number(right)) == (left == right)


@example("1e-130", b"")
@example("-1e-130", b"\xff")
@example("9.9e125", b"\0")
@given(numbers, st.binary(max_size=3))
def test_a_number_is_read_from_its_ordered_bytes(text: str, following: bytes) -> None:
    text = canonical_number(text)
    raw = b"x" + ordered_number(text)
    assert read_ordered_number(raw + following, 1) == (text, len(raw))


@given(numbers, numbers)
def test_no_number_is_a_prefix_of_another(left: str, right: str) -> None:
    left, right = canonical_number(left), canonical_number(right)
    if left != right:
        assert not ordered_number(left).startswith(ordered_number(right))


@given(numbers, numbers)
def test_sums_are_exact_or_refused(left: str, right: str) -> None:
    left, right = canonical_number(left), canonical_number(right)
    try:
        total = add(left, right)
    except ServiceError as refused:
        assert refused.message in (TOO_PRECISE, OVERFLOW, UNDERFLOW)
    else:
        try:
            assert subtract(total, right) == left
        except ServiceError as refused:
            assert refused.message == OVERFLOW


wholes = (
    st.integers(0, 40).flatmap(lambda digits: st.integers(-(10**digits), 10**digits)).map(str).filter(fits)
)


@given(wholes, wholes)
@example("9" * 37, "9" * 37)
@example("9" * 38, "1")
@example("9" * 38, "2")
@example("-" + "9" * 37, "-1")
@example("12345678", "-12345678")
def test_whole_sums_and_differences_are_exact_or_refused(left: str, right: str) -> None:
    left, right = canonical_number(left), canonical_number(right)
    for reckon, exact in ((add, int(left) + int(right)), (subtract, int(left) - int(right))):
        if len(str(abs(exact)).rstrip("0")) <= 38:
            assert reckon(left, right) == str(exact)
        else:
            with pytest.raises(ServiceError, match="overflow"):
                reckon(left, right)


def test_the_widest_sum_is_refused_not_rounded() -> None:
    with pytest.raises(ServiceError) as refused:
        add("1" + "0" * 125, canonical_number("1E-130"))
    assert refused.value.message == OVERFLOW


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 1), ("1", 2), ("10", 2), ("12", 2), ("123", 3), ("-1", 3), ("1234", 3), ("0.1", 2), ("100", 2)],
)
def test_size_is_two_digits_a_byte(text: str, size: int) -> None:
    assert number_size(text) == size


@given(wholes, st.integers(0, 20))
@example("1794762162877300", 0)
@example("12", 5)
@example("12", 6)
def test_size_counts_the_pairs_of_digits_up_to_the_last_that_is_not_zero(text: str, zeros: int) -> None:
    whole = int(text) * 10**zeros
    pairs, rest = 0, abs(whole)
    while rest and rest % 100 == 0:
        rest //= 100
    while rest:
        pairs, rest = pairs + 1, rest // 100
    assert number_size(str(whole)) == 1 + pairs + (whole < 0)
