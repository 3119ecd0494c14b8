"""DynamoDB's numbers: decimal text of up to 38 significant digits, from 1E-130 to 9.99...E+125.

A number is kept as its canonical text (plain notation, no leading or trailing zeros), so equal
numbers are equal strings. Nothing here rounds: what does not fit is refused.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache

from solotable.errors import ServiceError, invalid

DIGITS = 38
LARGEST_EXPONENT = 125
SMALLEST_EXPONENT = -130
_LONGEST_REMEMBERED = 48
#: Numbers of so many characters come again and again.
_SHORT = 6

_OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
#: Says of the commonest spellings, whole numbers, that they are canonical.
is_plain_number = re.compile(r"(?:0|-?[1-9][0-9]{0,37})\Z").match
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?\Z").match
# Wide enough for the exact sum of the largest and the smallest number.
_EXACT = Context(prec=LARGEST_EXPONENT - SMALLEST_EXPONENT + 2 * DIGITS, Emin=-9999, Emax=9999, traps=[])


def canonical_number(text: str) -> str:
    """Return the one spelling of a number, or refuse it as DynamoDB does.

    >>> canonical_number("+001.50e3")
    '1500'
    """
    if is_plain_number(text):
        # DynamoDB: trailing zeros are not significant, so any plain integer of 38 digits fits.
        return text
    # The same numbers come again and again; long texts are not worth their memory.
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _canonical(text)


def _canonical(text: str) -> str:
    negative, digits, exponent = _parts(text)
    if not digits:
        return "0"
    return ("-" if negative else "") + _plain(digits, exponent)


_remembered = lru_cache(maxsize=4096)(_canonical)


def _parts(text: str) -> tuple[bool, str, int]:
    """Split into sign, significant digits, and the power of ten of the first digit."""
    found = _NUMBER(text)
    if found is None or not (found[2] or found[3]):
        raise _not_a_number(text)
    sign, whole, fraction, exponent_sign, exponent_text = found.groups("")
    # DynamoDB: zero is judged by the exponent it is written with, as if its last digit counted.
    leading = (whole + fraction).lstrip("0") or "0"
    digits = leading.rstrip("0")
    # A million is beyond any range, and keeps int() from reading megabytes of digits.
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
    # DynamoDB: an exponent past 64 bits is no number at all.
    return len(exponent) > 19 or int(exponent) >= 2**63


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def _not_a_number(text: str) -> ServiceError:
    # DynamoDB: the older validator names the empty string by its absence.
    fault = "The parameter cannot be converted to a numeric value"
    return invalid(f"{fault}: {text}" if text else fault, newer=f"{fault}: {text}")


def add(left: str, right: str) -> str:
    """Return the exact sum of two canonical numbers, or refuse it when it does not fit."""
    if _are_short_and_whole(left, right):
        return str(int(left) + int(right))
    return _result(_EXACT.add(Decimal(left), Decimal(right)))


def subtract(left: str, right: str) -> str:
    """Return the exact difference of two canonical numbers, or refuse it when it does not fit."""
    if _are_short_and_whole(left, right):
        return str(int(left) - int(right))
    return _result(_EXACT.subtract(Decimal(left), Decimal(right)))


def _are_short_and_whole(left: str, right: str) -> bool:
    """Whether both are whole and their sum surely fits: its canonical text is then what `str` gives."""
    return len(left) < DIGITS and len(right) < DIGITS and "." not in left and "." not in right


def _result(exact: Decimal) -> str:
    if not exact:
        return "0"
    if len(exact.normalize(_EXACT).as_tuple().digits) > DIGITS:
        # DynamoDB: arithmetic that needs more digits than there are is told as an overflow.
        raise invalid(_OVERFLOW)
    return canonical_number(str(exact))


def number_size(text: str) -> int:
    """Return the bytes that DynamoDB counts for a canonical number, which has 133 characters at most."""
    length = len(text)
    if length <= _SHORT or "." in text or text[0] == "-":
        return _remembered_size(text)
    # Long whole numbers are counters and moments, which seldom come twice.
    count = len(text.rstrip("0"))
    # As below: the pair that is half filled is the last one, or else the first.
    return 1 + (count >> 1) + ((count | length) & 1)


@lru_cache(maxsize=4096)
def _remembered_size(text: str) -> int:
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


def ordered_number(text: str) -> bytes:
    """Return bytes that sort as the canonical number does, and that no other number's bytes prefix.

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
