"""The text of a file as a tree with line numbers: JSON with the standard library, YAML with PyYAML.

Only what both have: mappings with string keys, lists, strings, numbers, true, false and null. YAML is
composed by the safe loader and never constructed, so a tag cannot create an object.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from json import decoder, scanner
from typing import Any, cast

from solotable.errors import DataError

#: Users write files of limits; a longer text is something else.
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
    """A text is not YAML or JSON, or has a key twice."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message


class YamlNotInstalled(DataError):
    """PyYAML is not installed."""


def parse_text(text: str, *, is_json: bool) -> Node:
    """Return the tree of a text."""
    if len(text) > MOST_CHARACTERS:
        raise MalformedText(1, f"The file has more than {MOST_CHARACTERS:,} characters.")
    try:
        return _parse_json(text.removeprefix("\ufeff")) if is_json else _parse_yaml(text)
    except RecursionError:
        raise MalformedText(1, "The file is nested too deeply.") from None


class _LineDecoder(json.JSONDecoder):
    """The decoder of the standard library, with a Node for each value."""

    def __init__(self, text: str) -> None:
        super().__init__(parse_constant=self._reject)
        self._newlines = [found.start() for found in re.finditer("\n", text)]
        # The scanner in C does not call these methods; the one in Python does.
        self.parse_object, self.parse_array = self._object, self._array
        self._scan = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # not in typeshed
        self.scan_once = self._node

    def _line(self, at: int) -> int:
        return bisect_left(self._newlines, at) + 1

    def _node(self, text: str, at: int) -> tuple[Node, int]:
        try:
            value, end = self._scan(text, at)
        except json.JSONDecodeError:
            raise
        except ValueError as error:
            raise MalformedText(self._line(at), f"This is not JSON: {_first_line(str(error))}.") from None
        return Node(self._line(at), value), end

    def _array(self, start: tuple[str, int], *_: Any) -> Any:
        return decoder.JSONArray(start, self._node)  # type: ignore[attr-defined]  # not in typeshed

    def _object(self, start: tuple[str, int], *_: Any) -> tuple[dict[str, Entry], int]:
        lines: list[int] = []

        def scan_member(text: str, at: int) -> tuple[Node, int]:
            # Only white space is between the quote that ends the key, the colon and the value.
            lines.append(self._line(text.rindex('"', 0, text.rindex(":", 0, at))))
            return self._node(text, at)

        pairs, end = decoder.JSONObject(  # type: ignore[attr-defined]  # not in typeshed
            start, True, scan_member, None, list
        )
        found: dict[str, Entry] = {}
        for (name, node), line in zip(pairs, lines, strict=True):
            _add(found, name, line, node)
        return found, end

    def _reject(self, name: str) -> Any:
        raise ValueError(f"{name} is not a JSON number")


def _parse_json(text: str) -> Node:
    if not text.strip(" \t\r\n"):
        return Node(1, None)
    try:
        return cast(Node, _LineDecoder(text).decode(text))
    except json.JSONDecodeError as error:
        raise MalformedText(error.lineno, f"This is not JSON: {error.msg.removesuffix(' at')}.") from None


def _parse_yaml(text: str) -> Node:
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
        line, message = 1 if mark is None else mark.line + 1, error.problem or error.context or ""
    except yaml.YAMLError as error:
        line, message = text.count("\n", 0, getattr(error, "position", 0)) + 1, str(error)
    raise MalformedText(line, f"This is not YAML: {_first_line(message)}.")


class _YamlTree:
    """PyYAML's tree as Nodes. The node of an alias is made once, however often it is used."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._nodes: dict[int, Node] = {}
        self._open: set[int] = set()

    def node(self, given: Any) -> Node:
        found = self._nodes.get(id(given))
        if found is not None:
            return found
        line = given.start_mark.line + 1
        if id(given) in self._open:
            raise MalformedText(line, "An alias contains itself.")
        self._open.add(id(given))
        found = self._nodes[id(given)] = Node(line, self._value(given))
        self._open.discard(id(given))
        return found

    def _value(self, given: Any) -> Any:
        match given.id:
            case "mapping":
                return self._mapping(given)
            case "sequence":
                return [self.node(each) for each in given.value]
        return self._scalar(given)

    def _mapping(self, given: Any) -> dict[str, Entry]:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in given.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value, line)
            elif key.id != "scalar":
                raise MalformedText(line, "A key is a plain string.")
            else:
                # A key such as 2024-01 or `on` stays the text that was written.
                _add(own, str(key.value), line, self.node(value))
        # Keys of the mapping itself replace merged ones (`<<`).
        return merged | own

    def _merged(self, given: Any, line: int) -> dict[str, Entry]:
        """Return what a mapping, or a list of them, adds."""
        node = self.node(given)
        found: dict[str, Entry] = {}
        for each in reversed(node.value if isinstance(node.value, list) else [node]):
            if not isinstance(each.value, dict):
                raise MalformedText(line, "`<<` merges a mapping, or a list of mappings.")
            found |= each.value
        return found

    def _scalar(self, given: Any) -> Any:
        kind = given.tag.removeprefix("tag:yaml.org,2002:")
        try:
            if kind in ("null", "bool", "float"):
                return self._loader.construct_object(given)
            # YAML 1.1 reads 1:30 as a number to the base of 60, and 010 as eight.
            if kind == "int" and (digits := given.value.replace("_", "")).lstrip("+-").isdecimal():
                return int(digits)
        except (KeyError, ValueError):
            pass
        return str(given.value)


def _add(found: dict[str, Entry], name: str, line: int, node: Node) -> None:
    if name in found:
        raise MalformedText(line, f"Duplicate key {name!r}.")
    found[name] = Entry(line, node)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else "it cannot be read"
