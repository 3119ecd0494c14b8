"""The text of a file as a tree that knows its lines: JSON by itself, YAML with PyYAML.

Only what both have: mappings with text keys, lists, texts, numbers, true, false and null. YAML is composed by
the safe loader and never constructed, so no tag can make anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # public, but not in typeshed
from typing import Any

from solotable.errors import DataError

#: A file of limits is written by people; what is larger is something else.
MOST_CHARACTERS = 10_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and the line that it begins on."""

    line: int
    value: Any  # dict[str, Entry] | list[Node] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of a mapping: the line of its key, and its value."""

    line: int
    node: Node


class MalformedText(DataError):
    """A text is no YAML or no JSON, or says a thing twice."""

    public_message: str

    def __init__(self, line: int, told: str) -> None:
        super().__init__(f"line {line}: {told}", public_message=told)
        self.line = line


class YamlNotInstalled(DataError):
    """PyYAML is not installed."""


def parsed(text: str, *, is_json: bool) -> Node:
    """Return the tree of a text."""
    if len(text) > MOST_CHARACTERS:
        raise MalformedText(1, f"The file has more than {MOST_CHARACTERS:,} characters.")
    try:
        return _JsonParser(text).document() if is_json else _yaml(text)
    except RecursionError:
        raise MalformedText(1, "The file is nested too deeply.") from None


class _JsonParser:
    """JSON, read by hand: the standard library keeps no lines."""

    def __init__(self, text: str) -> None:
        self._text = text.removeprefix("\ufeff")
        self._at = 0
        #: The line of a place that was asked for, from which the next one is counted.
        self._known = (0, 1)

    def document(self) -> Node:
        self._skip()
        if self._at == len(self._text):
            return Node(1, None)
        found = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._unexpected()
        return found

    def _value(self) -> Node:
        self._skip()
        line = self._line()
        match self._text[self._at : self._at + 1]:
            case "{":
                return Node(line, self._object())
            case "[":
                return Node(line, self._array())
            case '"':
                return Node(line, self._string())
        try:
            value, end = _DECODER.raw_decode(self._text, self._at)
        except ValueError:
            raise self._unexpected() from None
        self._at = end
        return Node(line, value)

    def _object(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}

        def member() -> None:
            self._skip()
            line = self._line()
            if self._text[self._at : self._at + 1] != '"':
                raise self._unexpected()
            name = self._string()
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise self._unexpected()
            self._at += 1
            _add(found, name, line, self._value())

        self._sequence("}", member)
        return found

    def _array(self) -> list[Node]:
        found: list[Node] = []
        self._sequence("]", lambda: found.append(self._value()))
        return found

    def _sequence(self, end: str, member: Callable[[], object]) -> None:
        """Read members and the commas between them, from behind the opening bracket."""
        self._at += 1
        self._skip()
        if self._text[self._at : self._at + 1] == end:
            self._at += 1
            return
        while True:
            member()
            self._skip()
            follows = self._text[self._at : self._at + 1]
            if follows not in (",", end) or not follows:
                raise self._unexpected()
            self._at += 1
            if follows == end:
                return

    def _string(self) -> str:
        try:
            text, self._at = scanstring(self._text, self._at + 1)
        except ValueError as error:
            raise MalformedText(self._line(), f"This is no JSON text ({_first(str(error))}).") from None
        return str(text)

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t", "\n", "\r"):
            self._at += 1

    def _line(self) -> int:
        at, line = self._known
        self._known = (self._at, line + self._text.count("\n", at, self._at))
        return self._known[1]

    def _unexpected(self) -> MalformedText:
        met = self._text[self._at : self._at + 1]
        return MalformedText(
            self._line(), f"JSON does not go on with {met!r} here." if met else "The JSON ends too soon."
        )


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _yaml(text: str) -> Node:
    try:
        import yaml  # type: ignore[import-untyped]  # ships no types
    except ImportError:
        raise YamlNotInstalled(
            'Limits in YAML need PyYAML: pip install "solotable[limiter]", or write the file as JSON.'
        ) from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return Node(1, None) if root is None else _YamlTree(loader).node(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = error.problem or error.context or "it cannot be read"
        raise MalformedText(
            1 if mark is None else mark.line + 1, f"This is no YAML: {_first(told)}."
        ) from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise MalformedText(line, f"This is no YAML: {_first(str(error))}.") from None


class _YamlTree:
    """YAML's own tree as ours. What an alias names is made once, however often it is named."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._made: dict[int, Node] = {}
        self._open: set[int] = set()

    def node(self, given: Any) -> Node:
        found = self._made.get(id(given))
        if found is not None:
            return found
        line = given.start_mark.line + 1
        if id(given) in self._open:
            raise MalformedText(line, "An alias leads back into itself.")
        self._open.add(id(given))
        found = self._made[id(given)] = Node(line, self._value(given))
        self._open.discard(id(given))
        return found

    def _value(self, given: Any) -> Any:
        match given.id:
            case "mapping":
                return self._mapping(given)
            case "sequence":
                return [self.node(each) for each in given.value]
        return _scalar(self._loader, given)

    def _mapping(self, given: Any) -> dict[str, Entry]:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in given.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value, line)
            else:
                _add(own, _key(key), line, self.node(value))
        # What is merged in (`<<`) comes first, and gives way to the mapping's own.
        return merged | own

    def _merged(self, given: Any, line: int) -> dict[str, Entry]:
        """Return what a mapping, or a list of them, adds; PyYAML keeps each name as often as met."""
        node = self.node(given)
        found: dict[str, Entry] = {}
        for each in reversed(node.value if isinstance(node.value, list) else [node]):
            if not isinstance(each.value, dict):
                raise MalformedText(line, "Only a mapping, or a list of mappings, is merged in by `<<`.")
            found |= each.value
        return found


def _key(key: Any) -> str:
    # A name such as 2024-01 or `on` stays the text that was written.
    if key.id != "scalar":
        raise MalformedText(key.start_mark.line + 1, "A key is a plain text.")
    return str(key.value)


def _scalar(loader: Any, given: Any) -> Any:
    kind = given.tag.removeprefix("tag:yaml.org,2002:")
    try:
        if kind in ("null", "bool", "float"):
            return loader.construct_object(given)
        # YAML 1.1 reads 1:30 as a number to the base of 60, and 010 as eight.
        if kind == "int" and (digits := given.value.replace("_", "")).lstrip("+-").isdecimal():
            return int(digits)
    except (KeyError, ValueError):
        pass
    return str(given.value)


def _add(found: dict[str, Entry], name: str, line: int, node: Node) -> None:
    if name in found:
        raise MalformedText(line, f"{name!r} is there twice in one mapping.")
    found[name] = Entry(line, node)


def _first(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "it cannot be read"
