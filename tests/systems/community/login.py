"""A served identity provider, and a browser that signs in there, for tests of logins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from solotable.systems.community.identity.oauth.client import OAuthClient, OAuthSettings, local_client_id
from solotable.systems.community.identity.oauth.local_provider import LocalAccount, LocalProvider
from tests.store.opening import Clock
from tests.systems.portal.browsing import Page
from tests.systems.serving import address_of, listening, serving_on

PASSWORD = "a long enough password"
REDIRECT = "http://127.0.0.1:9/auth/callback"
ALICE, BEN = (
    LocalAccount(did=f"did:plc:{name}", handle=f"{name}.test", password=PASSWORD) for name in ("alice", "ben")
)


@dataclass
class Provider:
    """A served provider with two accounts, and a clock that it shares with its clients."""

    local: LocalProvider
    clock: Clock
    redirect_uri: str = REDIRECT
    browser: httpx2.Client = field(default_factory=lambda: httpx2.Client(follow_redirects=False))

    def client(self, **more: Any) -> OAuthClient:
        """Return a client of the provider."""
        given = {"issuer": self.local.issuer, "redirect_uri": self.redirect_uri, **more}
        given.setdefault("client_id", local_client_id(given["redirect_uri"]))
        return OAuthClient(OAuthSettings(clock=self.clock, **given))

    def sign_in(
        self, url: str, handle: str = "alice.test", password: str = PASSWORD, *, answer: str = "allow"
    ) -> httpx2.Response:
        """Open the provider's page and send its form, as a browser does."""
        page = Page(self.browser.get(url))
        assert page.status == 200, page.text
        fields = {**page.form("/oauth/authorize").fields, "answer": answer}
        return self.browser.post(
            f"{self.local.issuer}/oauth/authorize",
            data={**fields, "handle": handle, "password": password},
        )

    def answer(self, url: str, **more: Any) -> dict[str, str]:
        """Return the query of the redirect that the browser gets."""
        response = self.sign_in(url, **more)
        assert response.status_code == 303, response.text
        return query_of(response)


def query_of(response: httpx2.Response) -> dict[str, str]:
    """Return the query of a redirect."""
    return dict(parse_qsl(urlsplit(response.headers["location"]).query))


@contextmanager
def running_provider(redirect_uri: str = REDIRECT) -> Iterator[Provider]:
    """Serve a provider on a free port."""
    clock = Clock()
    with listening() as port:
        local = LocalProvider(address_of(port), [ALICE, BEN], clock=clock)
        with serving_on(port, local.app):
            provider = Provider(local, clock, redirect_uri)
            try:
                yield provider
            finally:
                provider.browser.close()
