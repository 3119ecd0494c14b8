"""Decode large stored items in steps; no step blocks other threads for more than a millisecond.

A JSON parser reads its text in one call, and an item of 400 KB can be megabytes of text with 400,000 values.
Here the parser reads some elements of a list at a time. A piece of text starts where an element starts; if
the parser accepts it, it is whole elements.
"""

from __future__ import annotations

import re
from typing import Any

from solotable._protocol.engine import Pause
from solotable._protocol.json_codec import loads
from solotable._values import AttributeValue, Item

#: Text up to this length is parsed in one call.
STEP = 8 * 1024
_SHORTEST_STEP = 512
#: Possible ends of an element to try before a shorter step.
_MOST_TRIES = 32
_NAME = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*":').match
_KIND = re.compile(rb'\{"([A-Z]+)":').match
_SCALAR = re.compile(rb'(?:"[^"\\]*(?:\\.[^"\\]*)*"|true|false)').match
_STRINGS = re.compile(rb'\[(?:"[^"\\]*(?:\\.[^"\\]*)*",?)*\]').match
_ELEMENTS = 1024


class _Unreadable(Exception):
    """The text does not have the form of a stored item."""


def decode_item_in_steps(raw: bytes, pause: Pause) -> Item:
    """Return a stored item; call `pause` between steps."""
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
    """Empty an item in steps: to free 400,000 values at once takes long too."""
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
    """Return the map whose text starts here, and its end."""
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
    """Return the list whose text starts here, and its end."""
    at = _skip(raw, at, b"[")
    elements: list[AttributeValue] = []
    step = STEP
    while raw[at : at + 1] != b"]":
        if elements:
            at = _skip(raw, at, b",")
        pause(0)
        while not (some := _some_elements(raw, at, step))[0] and step > _SHORTEST_STEP:
            # The list is shorter than a step, or its elements are longer.
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
    """Return some whole elements and their end; [] if no end of an element was found."""
    cut = at + step
    for _ in range(_MOST_TRIES):
        cut = raw.find(b"},{", cut, at + 2 * step) + 1
        if not cut:
            break
        piece = raw[at:cut]
        # Most candidates are inside an inner element; counting brackets is cheaper than parsing.
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
