"""The settings of a tenant: a tree of JSON in which some leaves are secrets.

What is a secret follows from its name, so that a new one is hidden from its first day. A change is merged
into the tree: what is not named stays, null removes, and a secret that comes back hidden stays what it is.
A list is replaced whole; whatever of it comes back as it was shown keeps its secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from solotable import AsyncDatabase
from solotable.errors import VersionConflict
from solotable.systems.cms.entities.tenancy import MOST_SETTINGS, TenantConfig
from solotable.systems.cms.json_sizes import within
from solotable.systems.cms.refusals import Refused

HIDDEN = "********"
#: Anywhere in a name, as in `recaptchaSecretKey` and `token_v2`: rather one too many is hidden.
_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|bearer|authorization|dsn$|pwd$|pass$"
    r"|(api|private|access|account|shared|signing|encryption|master|service|auth|license)[ _.-]?keys?",
    re.IGNORECASE,
)
#: Attempts of a change that met others and did not name a version.
_ATTEMPTS = 10


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
        elif inner := _secrets_in(value):
            found[name] = inner
    return found


def _secrets_in(value: Any) -> Any:
    """Return the secrets of a value; of a list with some, something for every place of it."""
    if isinstance(value, Mapping):
        return secrets_of(value)
    inner = [_secrets_in(each) for each in value] if isinstance(value, list) else []
    return inner if any(inner) else None


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
        elif isinstance(value, list):
            result[name] = _revealed(stored.get(name), value)
        elif value != HIDDEN or not _SECRET.search(name):
            result[name] = value
    return result


def _revealed(stored: Any, given: list[Any]) -> list[Any]:
    """Return a list with the secrets of those entries that came back as they were shown."""
    known = list(stored) if isinstance(stored, list) else []
    result = []
    for each in given:
        # By what it shows and not by its place: an entry that was moved keeps its own secrets.
        at = next((at for at, former in enumerate(known) if _shown(former) == each), None)
        if at is not None:
            result.append(known.pop(at))
        elif _holds_hidden(each):
            raise Refused(
                "An entry of a list was changed and holds a hidden secret: send the secret with it."
            )
        else:
            result.append(each)
    return result


def _holds_hidden(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(
            (each == HIDDEN and _SECRET.search(name)) or _holds_hidden(each) for name, each in value.items()
        )
    return isinstance(value, list) and any(_holds_hidden(each) for each in value)


def _hides(name: str, value: Any) -> bool:
    # A whole tree under such a name, as `credentials`, is hidden with all that is in it; a switch is not.
    return bool(_SECRET.search(name)) and not (value is None or value == "" or isinstance(value, bool))


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
        """Merge a change into the settings, and return them with secrets hidden.

        Without a version a change that meets another is merged into that.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._merge(patch, version)
            except VersionConflict:
                if version is not None:
                    raise
        return await self._merge(patch, version)

    async def _merge(self, patch: Mapping[str, Any], version: int | None) -> dict[str, Any]:
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
