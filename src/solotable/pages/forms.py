"""Forms: read the fields of a request, and show them again with their errors.

The fields of a form are texts. A service checks them; `Form` keeps what was typed and where it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import Request

MAX_FORM_BYTES = 256 * 1024
_TYPE = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong; `field` is the id of the input, empty for the whole form."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form as they were typed, and their errors."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    errors: tuple[FieldError, ...] = ()
    heading: str = "Some fields need a correction."

    def value(self, name: str) -> str:
        """Return the text of a field, empty without one."""
        return next(iter(self.fields.get(name, ())), "")

    def values(self, name: str) -> tuple[str, ...]:
        """Return all texts of a field: of checkboxes with one name."""
        return self.fields.get(name, ())

    def has_error(self, name: str) -> bool:
        """Return whether a field is wrong."""
        return any(error.field == name for error in self.errors)

    def with_errors(self, errors: Iterable[FieldError]) -> Form:
        """Return the form with errors to show."""
        return Form(self.fields, tuple(errors), self.heading)

    @classmethod
    def of(cls, **values: str) -> Form:
        """Return a form with values to change."""
        return cls({name: (value,) for name, value in values.items()})


async def read_form(request: Request, *, most_bytes: int = MAX_FORM_BYTES, most_fields: int = 500) -> Form:
    """Return the fields of a request; 413 and 415 for bodies that no form of ours sends."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _TYPE:
        raise HTTPException(415, "A form is sent as application/x-www-form-urlencoded.")
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most_bytes:
            raise HTTPException(413, f"A form has at most {most_bytes} bytes.")
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=most_fields, errors="strict")
    except ValueError:
        raise HTTPException(400, "The form cannot be read.") from None
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        # A browser sends line ends as CRLF.
        found[name] = (*found.get(name, ()), value.replace("\r\n", "\n"))
    return Form(found)


def errors_of(error: ValidationError, labels: Mapping[str, str]) -> list[FieldError]:
    """Return the errors of a model by field, in words, without the values; the first of each field."""
    found: dict[str, FieldError] = {}
    for each in error.errors(include_url=False, include_input=False):
        name = str(each["loc"][0]) if each["loc"] else ""
        label = labels.get(name, name)
        found.setdefault(name, FieldError(name if name in labels else "", f"{label}: {_advice(each)}"))
    return list(found.values())


def _advice(error: ErrorDetails) -> str:
    """Return what to do about an error of Pydantic."""
    context = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "write something here."
        case "string_too_short" | "too_short":
            least = context["min_length"]
            return "write something here." if least == 1 else f"write at least {least} characters."
        case "string_too_long" | "too_long":
            unit = "entries" if context.get("field_type") == "List" else "characters"
            return f"use at most {context['max_length']} {unit}."
        case "literal_error":
            return f"choose {context['expected']}."
        case "string_pattern_mismatch":
            return "this does not look right; check it for typing errors."
        case _:
            text = str(error["msg"]).removeprefix("Value error, ")
            return text[:1].lower() + text[1:] + ("" if text.endswith(".") else ".")
