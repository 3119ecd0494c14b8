"""Hide the values of a settings tree whose paths are not declared public.

A path is a JSON Pointer (RFC 6901): `/mail/from`. It names a value, never a map, so that a secret that is
added to a map later is hidden. The entries of a list have the path of the list. Names are compared exactly,
without folding case or Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from solotable.systems.errors import InvalidInput

HIDDEN: Final = "********"
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
#: The depth of settings in requests.
_MAX_DEPTH = 32
_NOTHING: Final = object()
Names = tuple[str, ...]


def parse_path(text: str) -> Names:
    """Return the names of a path, or raise InvalidInput if it is not a JSON Pointer.

    >>> parse_path("/mail/from"), parse_path("/a~1b/c")
    (('mail', 'from'), ('a/b', 'c'))
    """
    if not _POINTER.fullmatch(text):
        raise InvalidInput(
            "A path must be a JSON Pointer such as /mail/from, with ~1 for / and ~0 for ~ in names."
        )
    if text.count("/") > _MAX_DEPTH:
        raise InvalidInput(f"A path has at most {_MAX_DEPTH} names.")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in text[1:].split("/"))


class PublicPointers:
    """The paths of the public values."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._values = {parse_path(path) for path in paths}
        self._maps = {names[:end] for names in self._values for end in range(1, len(names))}

    def shows(self, path: Names) -> bool:
        """Return whether the value at a path is public."""
        return path in self._values

    def opens(self, path: Names) -> bool:
        """Return whether a value below a path is public."""
        return path in self._maps


def redact(tree: Mapping[str, Any], public: PublicPointers) -> dict[str, Any]:
    """Return a tree with every value hidden that is not public.

    >>> redact({"mail": {"key": "k", "from": "a@x.org"}, "pay": {"key": "p"}}, PublicPointers(["/mail/from"]))
    {'mail': {'key': '********', 'from': 'a@x.org'}, 'pay': '********'}
    """
    return {name: _redact(value, (name,), public) for name, value in tree.items()}


def _redact(value: Any, path: Names, public: PublicPointers) -> Any:
    if isinstance(value, Mapping) and public.opens(path):
        return {name: _redact(each, (*path, name), public) for name, each in value.items()}
    if isinstance(value, list) and (public.shows(path) or public.opens(path)):
        return [_redact(each, path, public) for each in value]
    is_value = not isinstance(value, (Mapping, list))
    return value if is_value and public.shows(path) else HIDDEN


def hidden_values(tree: Mapping[str, Any], public: PublicPointers) -> dict[str, Any]:
    """Return only the values that `redact` hides, in clear.

    >>> hidden_values({"mail": {"key": "k", "from": "a@x.org"}}, PublicPointers(["/mail/from"]))
    {'mail': {'key': 'k'}}
    """
    found = {name: _hidden(value, (name,), public) for name, value in tree.items()}
    return {name: value for name, value in found.items() if value is not _NOTHING}


def _hidden(value: Any, path: Names, public: PublicPointers) -> Any:
    if isinstance(value, Mapping) and public.opens(path):
        found = {name: _hidden(each, (*path, name), public) for name, each in value.items()}
        return {name: each for name, each in found.items() if each is not _NOTHING} or _NOTHING
    if isinstance(value, list) and (public.shows(path) or public.opens(path)):
        inner = [_hidden(each, path, public) for each in value]
        if all(each is _NOTHING for each in inner):
            return _NOTHING
        # Null marks an entry without hidden values, so that entries keep their positions.
        return [None if each is _NOTHING else each for each in inner]
    is_value = not isinstance(value, (Mapping, list))
    return _NOTHING if is_value and public.shows(path) else value


def merge(
    stored: Mapping[str, Any], patch: Mapping[str, Any], public: PublicPointers, path: Names = ()
) -> dict[str, Any]:
    """Return the stored tree with a change merged in; a value that is sent back hidden stays.

    >>> merge({"a": {"b": 1, "key": "k"}}, {"a": {"c": 2, "key": "********"}}, PublicPointers())
    {'a': {'b': 1, 'key': 'k', 'c': 2}}
    """
    result = dict(stored)
    for name, value in patch.items():
        below, here = stored.get(name), (*path, name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merge(below if isinstance(below, Mapping) else {}, value, public, here)
        elif isinstance(value, list):
            result[name] = _restore_hidden(below if isinstance(below, list) else [], value, public, here)
        elif value != HIDDEN:
            result[name] = value
    return result


def _restore_hidden(stored: list[Any], given: list[Any], public: PublicPointers, path: Names) -> list[Any]:
    """Return a list in which entries that were sent back as shown have their hidden values."""
    known = [(each, _redact(each, path, public)) for each in stored]
    result = []
    for each in given:
        if not _holds_hidden(each):
            result.append(each)
            continue
        # Match by the shown values, not by position: an entry may have moved.
        former = [value for value, shown in known if shown == each]
        if not former:
            raise InvalidInput("A changed list entry holds a hidden value; send that value in clear.")
        if len(former) > given.count(each) and any(value != former[0] for value in former):
            raise InvalidInput("Several list entries look the same; send their hidden values in clear.")
        nth = sum(1 for before in result if any(before is value for value in former))
        result.append(former[min(nth, len(former) - 1)])
    return result


def _holds_hidden(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_hidden(each) for each in value.values())
    return any(map(_holds_hidden, value)) if isinstance(value, list) else value == HIDDEN
