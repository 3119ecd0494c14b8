"""Which values of a tree of settings are shown: those whose path is declared public. All others are hidden.

A path is a JSON Pointer (RFC 6901): `/mail/from`. It names a value, never a whole map, so that a secret
which comes into a map later is hidden from its first day. Entries of a list have the path of the list.
Names are compared code point by code point: a look-alike is another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from solotable.systems.cms.errors import Refused

HIDDEN: Final = "********"
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
#: As deep as settings may be sent.
_DEEPEST = 32
_NOTHING: Final = object()
Names = tuple[str, ...]


def parse_path(text: str) -> Names:
    """Return the names of a path, or refuse what is no JSON Pointer to a value.

    >>> parse_path("/mail/from"), parse_path("/a~1b/c")
    (('mail', 'from'), ('a/b', 'c'))
    """
    if not _POINTER.fullmatch(text):
        raise Refused("A path is a JSON Pointer such as /mail/from; write ~1 for a / in a name, ~0 for a ~.")
    if text.count("/") > _DEEPEST:
        raise Refused(f"A path has at most {_DEEPEST} names.")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in text[1:].split("/"))


class Public:
    """The values that are declared public."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._values = {parse_path(path) for path in paths}
        self._maps = {names[:end] for names in self._values for end in range(1, len(names))}

    def shows(self, path: Names) -> bool:
        """Whether the value at a path is public."""
        return path in self._values

    def opens(self, path: Names) -> bool:
        """Whether something below a path is public."""
        return path in self._maps


def redacted(tree: Mapping[str, Any], public: Public) -> dict[str, Any]:
    """Return a tree in which every value that is not public is hidden.

    >>> redacted({"mail": {"key": "k", "from": "a@x.org"}, "pay": {"key": "p"}}, Public(["/mail/from"]))
    {'mail': {'key': '********', 'from': 'a@x.org'}, 'pay': '********'}
    """
    return {name: _shown(value, (name,), public) for name, value in tree.items()}


def _shown(value: Any, path: Names, public: Public) -> Any:
    if isinstance(value, Mapping) and public.opens(path):
        return {name: _shown(each, (*path, name), public) for name, each in value.items()}
    if isinstance(value, list) and (public.shows(path) or public.opens(path)):
        return [_shown(each, path, public) for each in value]
    is_value = not isinstance(value, (Mapping, list))
    return value if is_value and public.shows(path) else HIDDEN


def hidden_of(tree: Mapping[str, Any], public: Public) -> dict[str, Any]:
    """Return only what `redacted` hides, as it is and where it stands.

    >>> hidden_of({"mail": {"key": "k", "from": "a@x.org"}}, Public(["/mail/from"]))
    {'mail': {'key': 'k'}}
    """
    found = {name: _hidden(value, (name,), public) for name, value in tree.items()}
    return {name: value for name, value in found.items() if value is not _NOTHING}


def _hidden(value: Any, path: Names, public: Public) -> Any:
    if isinstance(value, Mapping) and public.opens(path):
        found = {name: _hidden(each, (*path, name), public) for name, each in value.items()}
        return {name: each for name, each in found.items() if each is not _NOTHING} or _NOTHING
    if isinstance(value, list) and (public.shows(path) or public.opens(path)):
        inner = [_hidden(each, path, public) for each in value]
        if all(each is _NOTHING for each in inner):
            return _NOTHING
        # Null stands for an entry that is shown whole, so that each has its place.
        return [None if each is _NOTHING else each for each in inner]
    is_value = not isinstance(value, (Mapping, list))
    return _NOTHING if is_value and public.shows(path) else value


def merged(
    stored: Mapping[str, Any], patch: Mapping[str, Any], public: Public, path: Names = ()
) -> dict[str, Any]:
    """Return the stored tree with a change merged in; what comes back hidden stays what it is.

    >>> merged({"a": {"b": 1, "key": "k"}}, {"a": {"c": 2, "key": "********"}}, Public())
    {'a': {'b': 1, 'key': 'k', 'c': 2}}
    """
    result = dict(stored)
    for name, value in patch.items():
        below, here = stored.get(name), (*path, name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(below if isinstance(below, Mapping) else {}, value, public, here)
        elif isinstance(value, list):
            result[name] = _revealed(below if isinstance(below, list) else [], value, public, here)
        elif value != HIDDEN:
            result[name] = value
    return result


def _revealed(stored: list[Any], given: list[Any], public: Public, path: Names) -> list[Any]:
    """Return a list with the hidden values of those entries that came back as they were shown."""
    known = [(each, _shown(each, path, public)) for each in stored]
    result = []
    for each in given:
        if not _holds_hidden(each):
            result.append(each)
            continue
        # By what it shows and not by its place: an entry that was moved keeps its own values.
        former = [value for value, shown in known if shown == each]
        if not former:
            raise Refused("An entry of a list was changed and holds a hidden value: send the value with it.")
        if len(former) > given.count(each) and any(value != former[0] for value in former):
            raise Refused("Several entries of a list look like this one: send its hidden values with it.")
        nth = sum(1 for before in result if any(before is value for value in former))
        result.append(former[min(nth, len(former) - 1)])
    return result


def _holds_hidden(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_hidden(each) for each in value.values())
    return any(map(_holds_hidden, value)) if isinstance(value, list) else value == HIDDEN
