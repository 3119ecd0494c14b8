"""Large stored items are read in steps: no step holds up other threads for more than a millisecond.

A JSON parser reads its text in one go, and an item of 400 KB can be megabytes of text and 400,000 values.
Here the parser is given some elements of a list at a time. Whether a piece of text is whole elements is for
the parser to say: if it can be read, it is, since it starts where an element starts.
"""

from __future__ import annotations

import re
from typing import Any

from solotable._protocol.engine import Pause
from solotable._protocol.json_codec import loads
from solotable._values import AttributeValue, Item

#: Text up to this length is read in one go.
STEP = 8 * 1024
_SHORTEST_STEP = 512
#: Places at which an element may end that are looked at before a shorter step is taken.
_MOST_TRIES = 32
_NAME = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*":').match
_KIND = re.compile(rb'\{"([A-Z]+)":').match
_SCALAR = re.compile(rb'(?:"[^"\\]*(?:\\.[^"\\]*)*"|true|false)').match
_STRINGS = re.compile(rb'\[(?:"[^"\\]*(?:\\.[^"\\]*)*",?)*\]').match
_ELEMENTS = 1024


class _Unreadable(Exception):
    """The text is not in the form in which items are stored."""


def decode_item_in_steps(raw: bytes, pause: Pause) -> Item:
    """Return a stored item; `pause` is called between steps."""
    if len(raw) > STEP:
        try:
            members, end = _members(raw, 0, pause)
        except _Unreadable:
            pass
        else:
            if end == len(raw):
                return members
    item: Item = loads(raw)
    return item


def release_item(item: Item, pause: Pause) -> None:
    """Let go of an item in steps, as freeing 400,000 values takes long too. It is empty afterwards."""
    for value in item.values():
        _release(value, pause)
    item.clear()


def _release(value: AttributeValue, pause: Pause) -> None:
    for kind, content in value.items():
        if kind == "M":
            release_item(content, pause)
        elif kind == "L":
            while len(content) > _ELEMENTS:
                pause(0)
                del content[-_ELEMENTS:]


def _members(raw: bytes, at: int, pause: Pause) -> tuple[Item, int]:
    """Return the map whose text starts here, and where it ends."""
    members: Item = {}
    if raw[at : at + 1] != b"{":
        raise _Unreadable
    at += 1
    while raw[at : at + 1] != b"}":
        if members:
            at = _skip(raw, at, b",")
        name = _NAME(raw, at)
        if name is None:
            raise _Unreadable
        pause(0)
        members[loads(name[0][:-1])], at = _value(raw, name.end(), pause)
    return members, at + 1


def _value(raw: bytes, at: int, pause: Pause) -> tuple[AttributeValue, int]:
    kind = _KIND(raw, at)
    if kind is None:
        raise _Unreadable
    content: Any
    match kind[1]:
        case b"M":
            content, at = _members(raw, kind.end(), pause)
        case b"L":
            content, at = _elements(raw, kind.end(), pause)
        case other:
            found = (_STRINGS if other in (b"SS", b"NS", b"BS") else _SCALAR)(raw, kind.end())
            if found is None:
                raise _Unreadable
            content, at = loads(found[0]), found.end()
    return {kind[1].decode(): content}, _skip(raw, at, b"}")


def _elements(raw: bytes, at: int, pause: Pause) -> tuple[list[AttributeValue], int]:
    """Return the list whose text starts here, and where it ends."""
    at = _skip(raw, at, b"[")
    elements: list[AttributeValue] = []
    step = STEP
    while raw[at : at + 1] != b"]":
        if elements:
            at = _skip(raw, at, b",")
        pause(0)
        while not (some := _some_elements(raw, at, step))[0] and step > _SHORTEST_STEP:
            # The list ends before that, or its elements are longer.
            step //= 4
        if some[0]:
            elements += some[0]
            at = some[1]
            step = min(STEP, 4 * step)
        else:
            element, at = _value(raw, at, pause)
            elements.append(element)
    return elements, at + 1


def _some_elements(raw: bytes, at: int, step: int) -> tuple[list[AttributeValue], int]:
    """Return the elements up to a place where one ends, and that place; none if none is found to end."""
    cut = at + step
    for _ in range(_MOST_TRIES):
        cut = raw.find(b"},{", cut, at + 2 * step) + 1
        if not cut:
            break
        piece = raw[at:cut]
        # Most places are within an inner element, which shows without reading.
        if piece.count(b"{") == piece.count(b"}") and piece.count(b"[") == piece.count(b"]"):
            try:
                return loads(b"[" + piece + b"]"), cut
            except ValueError:
                pass
    return [], at


def _skip(raw: bytes, at: int, token: bytes) -> int:
    if raw[at : at + 1] != token:
        raise _Unreadable
    return at + 1
