"""The settings of a tenant: a tree of JSON in which some leaves are secrets.

What is a secret follows from its name, so that a new one is hidden from its first day. A change is merged
into the tree: what is not named stays, null removes, and a secret that comes back hidden stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from solotable import AsyncDatabase
from solotable.systems.cms.entities.tenancy import MOST_SETTINGS, TenantConfig
from solotable.systems.cms.json_sizes import within
from solotable.systems.cms.refusals import Refused

HIDDEN = "********"
_SECRET = re.compile(
    r"(secret|password|passwd|token|api_?-?key|private_?-?key|credentials?)s?$", re.IGNORECASE
)


def redacted(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree with every secret hidden.

    >>> redacted({"mail": {"apiKey": "k", "from": "a@x.org"}})
    {'mail': {'apiKey': '********', 'from': 'a@x.org'}}
    """
    return {name: HIDDEN if _hides(name, value) else _shown(value) for name, value in tree.items()}


def secrets_of(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the secrets of a tree, where they stand in it."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        if _hides(name, value):
            found[name] = value
        elif isinstance(value, Mapping) and (inner := secrets_of(value)):
            found[name] = inner
    return found


def merged(stored: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored tree with a change merged in.

    >>> merged({"a": {"b": 1, "token": "t"}}, {"a": {"c": 2, "token": "********"}})
    {'a': {'b': 1, 'token': 't', 'c': 2}}
    """
    result = dict(stored)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            below = stored.get(name)
            result[name] = merged(below if isinstance(below, Mapping) else {}, value)
        elif value != HIDDEN or not _SECRET.search(name):
            result[name] = value
    return result


def _hides(name: str, value: Any) -> bool:
    # A whole tree under such a name, as `credentials`, is hidden with all that is in it.
    return bool(_SECRET.search(name)) and value not in (None, "")


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redacted(value)
    return [_shown(each) for each in value] if isinstance(value, list) else value


class Settings:
    """The settings of one tenant."""

    def __init__(self, db: AsyncDatabase, tenant: str) -> None:
        self._db = db
        self._tenant = tenant

    async def read(self) -> dict[str, Any]:
        """Return the settings with secrets hidden."""
        return redacted((await self._db.require(TenantConfig, id=self._tenant)).settings)

    async def secrets(self) -> dict[str, Any]:
        """Return the secrets as they are; for administrators of the tenant."""
        return secrets_of((await self._db.require(TenantConfig, id=self._tenant)).settings)

    async def merge(self, patch: Mapping[str, Any], *, version: int | None = None) -> dict[str, Any]:
        """Merge a change into the settings, and return them with secrets hidden."""
        current = await self._db.require(TenantConfig, id=self._tenant, consistent=True)
        try:
            settings = within(MOST_SETTINGS)(merged(current.settings, patch))
        except ValueError as refused:
            raise Refused(f"The settings: this {refused}.") from None
        expected = current.version if version is None else version
        stored = await self._db.update(
            TenantConfig, id=self._tenant, version=expected, set={"settings": settings}
        )
        return redacted(stored.settings)
