"""The identity port: a provider proves who a user is, by redirects of their browser.

`OAuthClient` implements it for authorization servers of the AT Protocol. Implement `IdentityProvider` for
another protocol; the app keeps what `begin` returns in a sealed cookie until the browser comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from solotable.errors import SolotableError


class LoginRejected(SolotableError):
    """The login failed or was denied; the message may be shown to the user."""


class ProviderUnavailable(SolotableError):
    """The identity provider did not answer, or its answer is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A proven user: the DID is the account, the handle is its name and can change."""

    did: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginStart:
    """Where to send the browser, and what the app keeps secret until the browser comes back."""

    url: str
    pending: Mapping[str, str]


class IdentityProvider(Protocol):
    """Proves who a user is."""

    async def begin(self, *, handle: str | None) -> LoginStart:
        """Start a login, or raise ProviderUnavailable; a provider may fill in the handle."""

    async def finish(self, pending: Mapping[str, str], answer: Mapping[str, str]) -> Identity:
        """Return the user of the redirect's query, or raise LoginRejected or ProviderUnavailable."""
