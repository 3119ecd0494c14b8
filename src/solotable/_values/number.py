"""DynamoDB's numbers: decimal text of up to 38 significant digits, from 1E-130 to 9.99...E+125.

A number is its canonical text (plain notation, no leading or trailing zeros), so equal numbers are equal
strings. Nothing here rounds: a number that does not fit raises DynamoDB's error.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache

from solotable.errors import ServiceError, invalid

DIGITS = 38
LARGEST_EXPONENT = 125
SMALLEST_EXPONENT = -130
_LONGEST_CACHED = 48
#: Numbers of so many characters repeat often enough to cache their sizes.
_SHORT = 6

_OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
#: Matches whole numbers, the most frequent spelling, which are canonical.
is_plain_number = re.compile(r"(?:0|-?[1-9][0-9]{0,37})\Z").match
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?\Z").match
# Wide enough for the exact sum of the largest and the smallest number.
_EXACT = Context(prec=LARGEST_EXPONENT - SMALLEST_EXPONENT + 2 * DIGITS, Emin=-9999, Emax=9999, traps=[])


def canonical_number(text: str) -> str:
    """Return the canonical text of a number, or raise DynamoDB's error for it.

    >>> canonical_number("+001.50e3")
    '1500'
    """
    if is_plain_number(text):
        # DynamoDB: trailing zeros are not significant, so any plain integer of 38 digits fits.
        return text
    # Programs repeat the same numbers; the cache holds short texts only.
    return _cached(text) if len(text) <= _LONGEST_CACHED else _canonical(text)


def _canonical(text: str) -> str:
    negative, digits, exponent = _parts(text)
    if not digits:
        return "0"
    return ("-" if negative else "") + _plain(digits, exponent)


_cached = lru_cache(maxsize=4096)(_canonical)


def _parts(text: str) -> tuple[bool, str, int]:
    """Split into sign, significant digits, and the power of ten of the first digit."""
    found = _NUMBER(text)
    if found is None or not (found[2] or found[3]):
        raise _not_a_number(text)
    sign, whole, fraction, exponent_sign, exponent_text = found.groups("")
    # DynamoDB: checks zero by its written exponent, as if its last digit were significant.
    leading = (whole + fraction).lstrip("0") or "0"
    digits = leading.rstrip("0")
    # A million is beyond any range, and int() does not have to convert megabytes of digits.
    exponent_digits = exponent_text.lstrip("0")
    exponent = int(exponent_digits or "0") if len(exponent_digits) <= 6 else 10**6
    if len(exponent_digits) > 18 and _outgrows(exponent_digits):
        raise _not_a_number(text)
    if exponent_sign == "-":
        exponent = -exponent
    exponent += len(leading) - len(fraction) - 1
    if exponent > LARGEST_EXPONENT:
        raise invalid(_OVERFLOW)
    if exponent < SMALLEST_EXPONENT:
        raise invalid(
            "Number underflow. Attempting to store a number with magnitude smaller than supported range"
        )
    if len(digits) > DIGITS:
        raise invalid("Attempting to store more than 38 significant digits in a Number")
    return sign == "-", digits, exponent


def _outgrows(exponent: str) -> bool:
    # DynamoDB: a text whose exponent exceeds 64 bits is not a number.
    return len(exponent) > 19 or int(exponent) >= 2**63


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def _not_a_number(text: str) -> ServiceError:
    # DynamoDB: the older validator shows nothing for an empty string.
    fault = "The parameter cannot be converted to a numeric value"
    return invalid(f"{fault}: {text}" if text else fault, newer=f"{fault}: {text}")


def add(left: str, right: str) -> str:
    """Return the exact sum of two canonical numbers, or raise DynamoDB's error if it does not fit."""
    if _are_short_and_whole(left, right):
        return str(int(left) + int(right))
    return _result(_EXACT.add(Decimal(left), Decimal(right)))


def subtract(left: str, right: str) -> str:
    """Return the exact difference of two canonical numbers, or raise DynamoDB's error if it does not fit."""
    if _are_short_and_whole(left, right):
        return str(int(left) - int(right))
    return _result(_EXACT.subtract(Decimal(left), Decimal(right)))


def _are_short_and_whole(left: str, right: str) -> bool:
    """Return whether both are whole, and so short that their sum has its canonical text from `str`."""
    return len(left) < DIGITS and len(right) < DIGITS and "." not in left and "." not in right


def _result(exact: Decimal) -> str:
    if not exact:
        return "0"
    if len(exact.normalize(_EXACT).as_tuple().digits) > DIGITS:
        # DynamoDB: reports a result with too many digits as an overflow.
        raise invalid(_OVERFLOW)
    return canonical_number(str(exact))


def number_size(text: str) -> int:
    """Return the bytes that DynamoDB counts for a canonical number (at most 133 characters)."""
    length = len(text)
    if length <= _SHORT or "." in text or text[0] == "-":
        return _cached_size(text)
    # Long whole numbers are counters and timestamps, which rarely repeat: no cache.
    count = len(text.rstrip("0"))
    # As in `_cached_size`: the half-filled pair is the last one, or else the first.
    return 1 + (count >> 1) + ((count | length) & 1)


@lru_cache(maxsize=4096)
def _cached_size(text: str) -> int:
    digits = text.lstrip("-").replace(".", "")
    significant = digits.strip("0")
    count = len(significant)
    if not count:
        return 1
    # DynamoDB: two digits a byte, paired from the decimal point, plus one for the exponent and one
    # for a sign; an even run of digits that straddles the pairs needs a byte more.
    pairs = (count + 1) // 2
    straddles = count % 2 == 0 and _first_power(text) % 2 == 0
    return 1 + pairs + straddles + text.startswith("-")


def _first_power(text: str) -> int:
    whole, _, fraction = text.lstrip("-").partition(".")
    if whole != "0":
        return len(whole) - 1
    return -(len(fraction) - len(fraction.lstrip("0"))) - 1


def measure_number(text: str) -> tuple[str, int]:
    """Return the canonical text of a number and its size, or raise DynamoDB's error for it."""
    if len(text) <= _SHORT or (len(text) <= _LONGEST_CACHED and not is_plain_number(text)):
        return _cached_measure(text)
    return _measure(text)


def _measure(text: str) -> tuple[str, int]:
    found = canonical_number(text)
    return found, number_size(found)


_cached_measure = lru_cache(maxsize=4096)(_measure)


def ordered_number(text: str) -> bytes:
    """Return bytes that sort as the canonical number does; no other number's bytes start with them.

    >>> sorted(["10", "-2", "0", "9.5", "-10"], key=ordered_number)
    ['-10', '-2', '0', '9.5', '10']
    """
    digits = text.lstrip("-").replace(".", "").strip("0")
    if not digits:
        return b"\x01"
    if len(digits) % 2:
        digits += "0"
    pairs = bytes(int(digits[i : i + 2]) + 1 for i in range(0, len(digits), 2))
    magnitude = bytes((_first_power(text) - SMALLEST_EXPONENT,)) + pairs + b"\x00"
    if text.startswith("-"):
        return b"\x00" + bytes(255 - byte for byte in magnitude)
    return b"\x02" + magnitude


def read_ordered_number(raw: bytes, start: int) -> tuple[str, int]:
    """Return the canonical number whose ordered bytes start at an offset, and the offset after them."""
    if raw[start] == 1:
        return "0", start + 1
    is_negative = raw[start] == 0
    # The byte of the exponent may be equal to the end mark, those of the digits are not.
    end = raw.index(b"\xff" if is_negative else b"\x00", start + 2)
    magnitude = raw[start + 1 : end]
    if is_negative:
        magnitude = bytes(255 - byte for byte in magnitude)
    digits = "".join(f"{byte - 1:02d}" for byte in magnitude[1:]).rstrip("0")
    return ("-" if is_negative else "") + _plain(digits, magnitude[0] + SMALLEST_EXPONENT), end + 1
