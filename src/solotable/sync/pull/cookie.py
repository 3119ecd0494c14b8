"""Cookies: the versions of the spaces that a client has, and an order that never goes back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

_LARGEST_ORDER = 2**52
_MOST_SPACES = 10_000
_MOST_CLIENTS = 10_000
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The last item of a page: its space, the number of the range within it, and its sort key."""

    space: str
    number: int
    sort: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """What a client has: by space, its version and epoch.

    The order is `base` plus the sum of the versions. So two clients of a group agree which cookie is newer.
    """

    spaces: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    base: int = 0
    #: For clients whose last cookie has an order that is a text, or a number beyond ours.
    prefix: str | None = None
    #: Where the next page of a large view begins; None for a complete view.
    following: PagePosition | None = None
    #: Ids that the client has got from the log of the last seconds, by client: the id, and the time of its
    #: commit in milliseconds. The records of clients may show lower ones for a while.
    recent: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    #: The group of those clients. A new group begins with the cookie of an old one.
    group: str = field(default="", compare=False)

    @property
    def number(self) -> int:
        """The order without its prefix."""
        return self.base + sum(version for version, _ in self.spaces.values())

    @property
    def order(self) -> int | str:
        """The order that clients compare."""
        return self.number if self.prefix is None else f"{self.prefix}{self.number:0{_DIGITS}d}"

    def to_json(self) -> dict[str, Any]:
        """Return the cookie as clients store it."""
        found: dict[str, Any] = {
            "order": self.order,
            "base": self.base,
            "spaces": {name: list(known) for name, known in self.spaces.items()},
        }
        if self.prefix is not None:
            found["prefix"] = self.prefix
        if self.following is not None:
            found["next"] = [self.following.space, self.following.number, self.following.sort]
        if self.recent:
            found["recent"] = {client: list(known) for client, known in self.recent.items()}
            found["group"] = self.group
        return found

    def after(self, before: Cookie | None, order: Any) -> Cookie:
        """Return this cookie with an order above a client's last one, whatever that was."""
        if before is not None:
            above = before.number + 1
            return replace(self, prefix=before.prefix, base=self.base + max(0, above - self.number))
        match order:
            case bool() | None:
                return self
            case int() | float() if abs(order) < _LARGEST_ORDER:
                above = math.floor(order) + 1
                return replace(self, base=self.base + max(0, above - self.number))
            case str():
                # Clients compare texts by their UTF-8 bytes: a longer text with the same start is greater.
                return replace(self, prefix=order + "~")
            case _:
                return replace(self, prefix="~")


def order_of(cookie: Any) -> Any:
    """Return the order of any cookie that a client may send."""
    return cookie.get("order") if isinstance(cookie, Mapping) else cookie


def parse_cookie(given: Any) -> Cookie | None:
    """Return a client's cookie; None for no cookie, a damaged one, and that of another backend."""
    if not isinstance(given, Mapping):
        return None
    spaces, base, prefix = given.get("spaces"), given.get("base"), given.get("prefix")
    if not isinstance(spaces, Mapping) or len(spaces) > _MOST_SPACES or not _is_count(base):
        return None
    known: dict[str, tuple[int, str]] = {}
    for name, each in spaces.items():
        if not isinstance(each, list) or len(each) != 2:
            return None
        version, epoch = each
        if not _is_count(version) or not isinstance(epoch, str):
            return None
        known[str(name)] = (version, epoch)
    if prefix is not None and not isinstance(prefix, str):
        return None
    following: PagePosition | None = None
    match given.get("next"):
        case None:
            pass
        case [str(space), int(number), str() | None as sort] if space in known and _is_count(number):
            following = PagePosition(space, number, sort)
        case _:
            return None
    recent = _parse_recent(given.get("recent", {}))
    group = given.get("group", "")
    if recent is None or not isinstance(group, str):
        return None
    cookie = Cookie(spaces=known, base=base, prefix=prefix, following=following, recent=recent, group=group)
    return cookie if cookie.order == given.get("order") else None


def _parse_recent(given: Any) -> dict[str, tuple[int, int]] | None:
    if not isinstance(given, Mapping) or len(given) > _MOST_CLIENTS:
        return None
    found: dict[str, tuple[int, int]] = {}
    for client, each in given.items():
        match each:
            case [int(last), int(at)] if _is_count(last) and _is_count(at):
                found[str(client)] = (last, at)
            case _:
                return None
    return found


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_ORDER
