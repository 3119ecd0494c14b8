"""Infer the type of an attribute from the values of a sample, such that every value can be decoded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass

Precision = Literal["s", "ms", "us"]

#: Times as text, in every form that Iso writes: the groups are the fraction and the offset.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|)(Z|\+00:00|\+0000|)")
_PRECISIONS: Final[Mapping[int, Precision]] = {0: "s", 4: "ms", 7: "us"}
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SCALARS: Final = {"S": "str", "BOOL": "bool", "B": "bytes", "SS": "set[str]", "BS": "set[bytes]"}
#: Names of numbers that are times: createdAt, updated_at, timestamp, expires ...
_TIME_NAME: Final = re.compile(
    r"(?:^|_)(created|updated|modified|deleted|born|expires|expiry|ttl|date|time|timestamp|at|on)$"
    r"|(At|On|Date|Time|Timestamp|Created|Updated|Modified|Deleted|Expires|Expiry|TTL)$"
)
#: The years 2001 to 2096 in seconds: other numbers are no times.
_EARLIEST, _LATEST = 10**9, 4 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeType:
    """The inferred type of an attribute in the items of one entity."""

    #: The attribute's name.
    name: str
    #: The annotation without markers: `str`, `int`, `datetime`, `dict[str, Any]`.
    annotation: str
    #: The marker of its time format: `Iso("ms")`, `Epoch("s")`.
    time: str | None = None
    #: In how many of the entity's sampled items it is.
    count: int
    items: int
    #: In how many it is NULL.
    nulls: int = 0
    largest_bytes: int = 0

    @property
    def optional(self) -> bool:
        """Whether some item does not have it, or has it as NULL."""
        return self.count < self.items or self.nulls > 0


def infer_type(name: str, items: Sequence[Item], *, ttl: bool = False) -> AttributeType:
    """Return the type of an attribute that all of its values fit.

    >>> infer_type("pages", [{"pages": {"N": "3"}}, {}]).annotation
    'int'
    """
    values = [item[name] for item in items if name in item]
    present = [value for value in values if "NULL" not in value]
    annotation, time = _annotation(name, present, ttl=ttl)
    return AttributeType(
        name=name,
        annotation=annotation,
        time=time,
        count=len(values),
        items=len(items),
        nulls=len(values) - len(present),
        largest_bytes=max((len(str(next(iter(value.values())))) for value in values), default=0),
    )


def _annotation(name: str, values: Sequence[AttributeValue], *, ttl: bool) -> tuple[str, str | None]:
    kinds = {next(iter(value)) for value in values}
    if len(kinds) != 1:
        return "Any", None
    (kind,) = kinds
    content = [value[kind] for value in values]
    match kind:
        case "S":
            return _text(content)
        case "N":
            return _number(name, content, ttl=ttl)
        case "NS":
            whole = all(_is_whole(each) for numbers in content for each in numbers)
            return f"set[{'int' if whole else 'Decimal'}]", None
        case "L":
            member = _annotation("", [each for members in content for each in members], ttl=False)[0]
            return f"list[{_member(member)}]", None
        case "M":
            member = _annotation("", [each for members in content for each in members.values()], ttl=False)[0]
            return f"dict[str, {_member(member)}]", None
        case _:
            return _SCALARS.get(kind, "Any"), None


def _member(annotation: str) -> str:
    # Members of several types, and times, whose format only a field can say, stay as they are stored.
    return annotation if annotation in ("str", "int", "Decimal", "bool") else "Any"


def _text(values: Sequence[str]) -> tuple[str, str | None]:
    forms = {time_form(each) for each in values}
    if len(forms) == 1 and (form := forms.pop()) is not None:
        precision, offset = form
        return "datetime", f'Iso("{precision}"' + ("" if offset == "Z" else f', offset="{offset}"') + ")"
    if all(_DATE.fullmatch(each) and _is_time(each) for each in values):
        return "date", None
    return "str", None


def time_form(text: str) -> tuple[Precision, str] | None:
    """Return the precision and the offset with which Iso writes a text; None if it writes no such text.

    >>> time_form("2026-11-15T12:00:00.123")
    ('ms', '')
    """
    found = _TIME.fullmatch(text)
    return (_PRECISIONS[len(found[1])], found[2]) if found is not None and _is_time(text) else None


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _number(name: str, values: Sequence[str], *, ttl: bool) -> tuple[str, str | None]:
    if not all(_is_whole(each) for each in values):
        return "Decimal", None
    numbers = [int(each) for each in values]
    if ttl and all(_EARLIEST <= each < _LATEST for each in numbers):
        return "datetime", "TTL()"
    if _TIME_NAME.search(name):
        for unit, factor in (("s", 1), ("ms", 1000)):
            if all(_EARLIEST * factor <= each < _LATEST * factor for each in numbers):
                return "datetime", f'Epoch("{unit}")'
    return "int", None


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdigit()
