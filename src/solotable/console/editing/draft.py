"""Drafts: an item as rows of a form or as DynamoDB JSON, and back to the same bytes. Sends nothing.

Every value passes as text: no number becomes a float, and a string that a form field would change (line ends,
control characters) is written as a JSON string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solotable._protocol.decode.requests import decode_request
from solotable._protocol.requests import PutItem
from solotable._values import TYPES, AttributeValue, Item
from solotable.errors import DataError, ServiceError
from solotable.pages.forms import Form

#: Characters that HTML forms change or drop: all controls but tab and line feed, and a byte order mark.
_ALTERED = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufeff\ufffe\uffff]")
#: A float has so many digits, so a longer number needs a word.
_SHORT_NUMBER = 15
#: The types in the order of the form's list.
TYPE_NAMES = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")
_HINTS = {
    "N": "All 38 digits are kept. Nothing passes through a float.",
    "B": "Base64.",
    "SS": "A set, as a JSON list: no order, no duplicates.",
    "NS": "A set of numbers, as a JSON list of strings.",
    "BS": "A set of binary values, as a JSON list of base64 texts.",
    "L": "A list in DynamoDB JSON.",
    "M": "A map in DynamoDB JSON.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """An attribute that two people changed; None for a value that one of them removed."""

    read: AttributeValue | None
    mine: AttributeValue | None
    theirs: AttributeValue | None
    choice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attribute in a form."""

    name: str
    kind: str
    text: str
    #: Whether the text of a string is a JSON string.
    escaped: bool = False
    locked: bool = False
    changed: bool = False
    error: str = ""
    clash: Clash | None = None

    @property
    def hint(self) -> str:
        """What the notation of the value is."""
        if self.escaped:
            return "A JSON string: the value has characters that a form would change."
        if self.kind == "N" and len(self.text) <= _SHORT_NUMBER:
            return ""
        return _HINTS.get(self.kind, "")

    @property
    def lines(self) -> int:
        """The height of the field."""
        return min(12, max(1, self.text.count("\n") + 1 + len(self.text) // 90))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a user sent: rows or JSON, the item that was read, and what is wrong."""

    read: Item
    rows: tuple[Row, ...] = ()
    #: The JSON text, if the user edits JSON.
    text: str | None = None
    errors: tuple[str, ...] = ()
    item: Item = field(default_factory=dict)

    @property
    def changed(self) -> list[str]:
        """The names of the attributes that differ from the item that was read."""
        names = [*self.item, *(name for name in self.read if name not in self.item)]
        return [name for name in names if self.item.get(name) != self.read.get(name)]

    @property
    def is_settled(self) -> bool:
        """Whether every clash has a choice."""
        return all(row.clash is None or row.clash.choice for row in self.rows)


def dump_item(item: Any) -> str:
    """Return JSON in one line of ASCII, which every form field carries unchanged."""
    return json.dumps(item, separators=(",", ":"))


def escape_altered(text: str) -> str:
    """Return JSON whose strings have no character that a form would change."""
    return re.sub("[\x7f\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def load_json(text: str) -> Any:
    """Return JSON; numbers stay texts, and a name that occurs twice is an error. Raises DataError."""

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(members)
        if len(found) < len(members):
            twice = next(name for at, (name, _) in enumerate(members) if name in dict(members[:at]))
            raise DataError(f"Duplicate name {twice!r}; each attribute has one value.")
        return found

    try:
        found = json.loads(text, object_pairs_hook=pairs, parse_float=str, parse_int=str)
        # Lone surrogates are no text.
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DataError(f"Line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except (RecursionError, UnicodeEncodeError):
        raise DataError("The text nests too deeply, or has characters that are not Unicode.") from None
    return found


def check_item(item: Any) -> Item:
    """Return an item in canonical form, or raise DataError with DynamoDB's sentence."""
    if not isinstance(item, dict) or not all(isinstance(each, dict) for each in item.values()):
        raise DataError('An item is an object of attributes in DynamoDB JSON: {"name": {"S": "Roof"}}.')
    try:
        request = decode_request("PutItem", {"TableName": "draft", "Item": item})
    except ServiceError as error:
        raise DataError(error.message) from None
    assert isinstance(request, PutItem)
    return dict(request.item)


def encode_value(value: AttributeValue) -> tuple[str, str, bool]:
    """Return a value as type, text, and whether the text is a JSON string."""
    kind, content = next(iter(value.items()))
    match kind:
        case "S":
            if _ALTERED.search(content):
                return kind, json.dumps(content), True
            return kind, content, False
        case "N" | "B":
            return kind, content, False
        case "BOOL":
            return kind, "true" if content else "false", False
        case "NULL":
            return kind, "", False
        case _:
            return kind, json.dumps(content, ensure_ascii=_has_altered(content)), False


def _has_altered(content: Any) -> bool:
    return _ALTERED.search(json.dumps(content, ensure_ascii=False)) is not None


def decode_value(kind: str, text: str, *, escaped: bool = False) -> AttributeValue:
    """Return the value of a type and a text, or raise DataError."""
    match kind:
        case "S" if escaped:
            content = load_json(text)
            if not isinstance(content, str):
                raise DataError('Write a JSON string, with quotes: "text".')
        case "S":
            content = text
        case "N" | "B":
            content = text.strip()
        case "BOOL":
            if text.strip() not in ("true", "false"):
                raise DataError("A BOOL is true or false.")
            content = text.strip() == "true"
        case "NULL":
            content = True
        case "SS" | "NS" | "BS" | "L":
            content = load_json(text)
            if not isinstance(content, list):
                raise DataError(f'{kind} is a JSON list: ["a", "b"].')
        case "M":
            content = load_json(text)
            if not isinstance(content, dict):
                raise DataError('M is a JSON object in DynamoDB JSON: {"name": {"S": "Roof"}}.')
        case _:
            raise DataError(f"{kind!r} is not a type of DynamoDB; use {', '.join(TYPES)}.")
    return check_item({"value": {kind: content}})["value"]


def rows_of(item: Item, locked: Iterable[str], read: Item | None = None) -> tuple[Row, ...]:
    """Return an item as rows, the locked attributes first."""
    kept = [name for name in locked if name in item]
    found = []
    for name in (*kept, *(each for each in item if each not in kept)):
        kind, text, escaped = encode_value(item[name])
        changed = read is not None and read.get(name) != item[name]
        found.append(
            Row(name=name, kind=kind, text=text, escaped=escaped, locked=name in kept, changed=changed)
        )
    return tuple(found)


def read_draft(form: Form, locked: Sequence[str]) -> Draft:
    """Return the draft of a form, with what is wrong in it."""
    read = check_item(load_json(form.value("read")))
    if form.value("mode") == "json":
        return _read_json(form.value("json"), read, locked)
    rows: list[Row] = []
    item: Item = {name: read[name] for name in locked if name in read}
    errors: list[str] = []
    for number in _numbers(form):
        row = _read_row(form, number, read)
        if not row.name and not row.text:
            continue
        if row.name in item:
            row = _with_error(row, "The item has this attribute already.")
        if row.clash is None and not row.error:
            try:
                item[row.name] = decode_value(row.kind, row.text, escaped=row.escaped)
            except DataError as error:
                row = _with_error(row, str(error))
        elif row.clash is not None and row.clash.choice:
            chosen = row.clash.mine if row.clash.choice == "mine" else row.clash.theirs
            if chosen is not None:
                item[row.name] = chosen
        elif row.clash is not None:
            row = _with_error(row, "Choose mine or theirs.")
        if row.error:
            errors.append(f"{row.name or 'An attribute without a name'}: {row.error}")
        rows.append(row)
    locked_rows = rows_of({name: read[name] for name in locked if name in read}, locked)
    marked = [
        row if row.clash or row.error else _with_change(row, item.get(row.name) != read.get(row.name))
        for row in rows
    ]
    return Draft(read=read, rows=(*locked_rows, *marked), errors=tuple(errors), item=item)


def _read_json(text: str, read: Item, locked: Sequence[str]) -> Draft:
    try:
        item = check_item(load_json(text))
        for name in locked:
            if item.get(name) != read.get(name):
                raise DataError(f"{name} is locked: the key names the item, and solotable writes the others.")
    except DataError as error:
        return Draft(read=read, text=text, errors=(str(error),))
    return Draft(read=read, rows=rows_of(item, locked, read), text=text, item=item)


def _numbers(form: Form) -> list[int]:
    found = {int(name[2:]) for name in form.fields if name.startswith("n.") and name[2:].isdigit()}
    removed = form.value("remove")
    return sorted(each for each in found if str(each) != removed)


def _read_row(form: Form, number: int, read: Item) -> Row:
    name, kind = form.value(f"n.{number}"), form.value(f"t.{number}")
    text, escaped = form.value(f"v.{number}"), form.value(f"x.{number}") == "1" and kind == "S"
    clash = None
    if f"mine.{number}" in form.fields:
        given = {each: load_json(form.value(f"{each}.{number}")) for each in ("mine", "theirs", "was")}
        choice = form.value("settle") or form.value(f"choice.{number}")
        clash = Clash(
            read=_checked(given["was"]),
            mine=_checked(given["mine"]),
            theirs=_checked(given["theirs"]),
            choice=choice if choice in ("mine", "theirs") else "",
        )
    error = "" if name else "Write a name."
    del read
    return Row(name=name, kind=kind or "S", text=text, escaped=escaped, error=error, clash=clash)


def _checked(value: Any) -> AttributeValue | None:
    return None if value is None else check_item({"value": value})["value"]


def _with_error(row: Row, error: str) -> Row:
    return Row(name=row.name, kind=row.kind, text=row.text, escaped=row.escaped, error=error, clash=row.clash)


def _with_change(row: Row, changed: bool) -> Row:
    return Row(name=row.name, kind=row.kind, text=row.text, escaped=row.escaped, changed=changed)


def merge(read: Item, mine: Item, theirs: Item, locked: Sequence[str]) -> Draft:
    """Return a draft on top of what another person saved: each keeps their changes, clashes are marked."""
    rows: list[Row] = []
    item: Item = {}
    names = [*theirs, *(name for name in mine if name not in theirs)]
    for name in (
        *(each for each in locked if each in theirs),
        *(each for each in names if each not in locked),
    ):
        was, my, their = read.get(name), mine.get(name), theirs.get(name)
        clash = None
        if name in locked or my in (was, their):
            value = their
        elif their == was:
            value = my
        else:
            clash = Clash(read=was, mine=my, theirs=their)
            value = my if my is not None else their
        if value is None:
            continue
        kind, text, escaped = encode_value(value)
        item[name] = value
        rows.append(
            Row(
                name=name,
                kind=kind,
                text=text,
                escaped=escaped,
                locked=name in locked,
                changed=clash is None and value != their,
                clash=clash,
            )
        )
    return Draft(read=theirs, rows=tuple(rows), item=item)


def show_row(row: Row, number: int) -> dict[str, Any]:
    """Return a row for the template."""
    clash = row.clash
    shown: Mapping[str, Any] = {
        "number": number,
        "name": row.name,
        "kind": row.kind,
        "text": row.text,
        "escaped": row.escaped,
        "locked": row.locked,
        "changed": row.changed,
        "error": row.error,
        "hint": row.hint,
        "lines": row.lines,
        "clash": None,
    }
    if clash is None:
        return dict(shown)
    return {
        **shown,
        "clash": {
            "mine": dump_item(clash.mine),
            "theirs": dump_item(clash.theirs),
            "read": dump_item(clash.read),
            "shown": {
                each: "removed" if value is None else encode_value(value)[1]
                for each, value in (("mine", clash.mine), ("theirs", clash.theirs), ("read", clash.read))
            },
            "choice": clash.choice,
        },
    }
