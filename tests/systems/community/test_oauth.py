"""The login over HTTP: the whole dance, and every answer that must not log anyone in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from solotable.errors import DeclarationError
from solotable.systems.community.identity.oauth.client import METADATA_PATH, OAuthClient, local_client_id
from solotable.systems.community.identity.oauth.proofs import ProofKey, digest
from solotable.systems.community.identity.port import (
    Identity,
    LoginRejected,
    LoginStart,
    ProviderUnavailable,
)
from tests.systems.serving import address_of, listening, serving_on

from .login import ALICE, REDIRECT, Provider, running_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as made:
        yield made


def begin(client: OAuthClient, handle: str | None = None) -> LoginStart:
    return asyncio.run(client.begin(handle=handle))


def finish(client: OAuthClient, start: LoginStart, answer: dict[str, str], **changed: str) -> Identity:
    return asyncio.run(client.finish({**start.pending, **changed}, answer))


def test_a_browser_signs_in_and_the_client_learns_did_and_handle(provider: Provider) -> None:
    client = provider.client()
    start = begin(client, "alice.test")
    assert set(dict(parse_qsl(urlsplit(start.url).query))) == {"client_id", "request_uri"}
    answer = provider.answer(start.url)
    assert answer["state"] == start.pending["state"]
    assert finish(client, start, answer) == Identity(did=ALICE.did, handle="alice.test")


def test_the_providers_page_lets_the_form_redirect_to_the_client_only(provider: Provider) -> None:
    start = begin(provider.client(), "alice.test")
    page = provider.browser.get(start.url)
    assert "form-action 'self' http://127.0.0.1:9;" in page.headers["content-security-policy"]
    assert 'value="alice.test"' in page.text
    assert "<script" not in page.text


def test_a_wrong_password_shows_the_form_again(provider: Provider) -> None:
    start = begin(provider.client())
    for handle, password in (("alice.test", "wrong"), ("unknown.test", ""), ("", "")):
        refused = provider.sign_in(start.url, handle, password)
        assert (refused.status_code, "is wrong" in refused.text) == (422, True)
    assert "code" in provider.answer(start.url)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"state": "another"}, "not started in this browser"),
        ({"state": ""}, "not started in this browser"),
        ({"iss": "https://evil.example"}, "another identity provider"),
        ({"iss": ""}, "another identity provider"),
        ({"code": ""}, "no code"),
        ({"code": "guessed"}, "rejected the code"),
    ],
)
def test_a_changed_answer_logs_no_one_in(provider: Provider, change: dict[str, str], text: str) -> None:
    client = provider.client()
    start = begin(client)
    answer = provider.answer(start.url)
    with pytest.raises(LoginRejected, match=text):
        finish(client, start, {**answer, **change})


def test_a_denied_login_is_rejected(provider: Provider) -> None:
    client = provider.client()
    start = begin(client)
    answer = provider.answer(start.url, answer="deny")
    assert answer["error"] == "access_denied"
    with pytest.raises(LoginRejected, match="denied"):
        finish(client, start, answer)


def test_a_code_works_once_and_for_a_minute(provider: Provider) -> None:
    client = provider.client()
    start = begin(client)
    answer = provider.answer(start.url)
    assert finish(client, start, answer).did == ALICE.did
    with pytest.raises(LoginRejected, match="rejected the code"):
        finish(client, start, answer)
    start = begin(client)
    answer = provider.answer(start.url)
    provider.clock.seconds += 61
    with pytest.raises(LoginRejected, match="rejected the code"):
        finish(client, start, answer)


def test_a_stolen_code_is_worth_nothing_without_verifier_and_key(provider: Provider) -> None:
    client = provider.client()
    for stolen in ({"verifier": "v" * 64}, {"key": ProofKey.new().to_text()}):
        start = begin(client)
        answer = provider.answer(start.url)
        with pytest.raises(LoginRejected, match="rejected the code"):
            finish(client, start, answer, **stolen)
        with pytest.raises(LoginRejected):
            finish(client, start, answer)


def test_a_request_works_once_and_for_five_minutes(provider: Provider) -> None:
    client = provider.client()
    start = begin(client)
    provider.answer(start.url)
    assert provider.browser.get(start.url).json()["error"] == "invalid_request"
    start = begin(client)
    provider.clock.seconds += 301
    assert provider.browser.get(start.url).json()["error"] == "invalid_request"


def test_a_client_follows_the_servers_new_nonce(provider: Provider) -> None:
    client = provider.client()
    for _ in range(3):
        start = begin(client)
        assert finish(client, start, provider.answer(start.url)).did == ALICE.did
        provider.clock.seconds += 1000


def test_a_redirect_of_another_client_is_refused(provider: Provider) -> None:
    client = provider.client(redirect_uri="http://127.0.0.1:9/evil", client_id=provider_client_id())
    with pytest.raises(ProviderUnavailable, match="invalid_client"):
        begin(client)


def provider_client_id() -> str:
    return local_client_id(REDIRECT)


def push(provider: Provider, proof: str | None, **changes: str) -> httpx2.Response:
    form = {
        "client_id": provider_client_id(),
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scope": "atproto",
        "state": "s" * 32,
        "code_challenge": digest("v"),
        "code_challenge_method": "S256",
    }
    headers = {} if proof is None else {"dpop": proof}
    return provider.browser.post(
        f"{provider.local.issuer}/oauth/par", data={**form, **changes}, headers=headers
    )


def proof_of(provider: Provider, **changes: Any) -> str:
    nonce = push(provider, None).headers["dpop-nonce"]
    given = {
        "method": "POST",
        "url": f"{provider.local.issuer}/oauth/par",
        "now": provider.clock(),
        "nonce": nonce,
        **changes,
    }
    return ProofKey.new().sign(**given)


def test_the_provider_takes_a_proof_once(provider: Provider) -> None:
    proof = proof_of(provider)
    assert push(provider, proof).status_code == 201
    assert push(provider, proof).json()["error"] == "invalid_dpop_proof"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"method": "GET"}, "invalid_dpop_proof"),
        ({"url": "https://evil.example/oauth/par"}, "invalid_dpop_proof"),
        ({"nonce": None}, "use_dpop_nonce"),
        ({"nonce": "old"}, "use_dpop_nonce"),
        ({"now": 0.0}, "invalid_dpop_proof"),
    ],
)
def test_the_provider_rejects_a_proof_for_something_else(
    provider: Provider, changes: dict[str, Any], error: str
) -> None:
    answer = push(provider, proof_of(provider, **changes))
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize("proof", [None, "", "a.b.c", "x" * 5000])
def test_the_provider_rejects_what_is_not_a_proof(provider: Provider, proof: str | None) -> None:
    assert push(provider, proof).json()["error"] == "invalid_dpop_proof"


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"state": "short"},
        {"scope": "openid"},
        {"client_id": "https://evil.example"},
    ],
)
def test_the_provider_rejects_a_weaker_request(provider: Provider, changes: dict[str, str]) -> None:
    assert push(provider, proof_of(provider), **changes).status_code == 400


def lying(base: str, metadata: dict[str, Any], repository: dict[str, Any]) -> Starlette:
    """A server whose metadata or repository is not what it says."""
    said = {
        "issuer": base,
        "authorization_endpoint": f"{base}/authorize",
        "pushed_authorization_request_endpoint": f"{base}/par",
        "token_endpoint": f"{base}/token",
        "authorization_response_iss_parameter_supported": True,
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": ["ES256"],
        "scopes_supported": ["atproto"],
        **metadata,
    }

    async def describe(request: Request) -> Response:
        return JSONResponse(said)

    async def token(request: Request) -> Response:
        return JSONResponse({"token_type": "DPoP", "scope": "atproto", "sub": "did:plc:eve"} | repository)

    async def repo(request: Request) -> Response:
        return JSONResponse(
            {"did": "did:plc:eve", "handle": "eve.test", "handleIsCorrect": True} | repository
        )

    async def push_(request: Request) -> Response:
        return RedirectResponse("http://169.254.169.254/")

    return Starlette(
        routes=[
            Route(METADATA_PATH, describe),
            Route("/par", push_, methods=["POST"]),
            Route("/token", token, methods=["POST"]),
            Route("/xrpc/com.atproto.repo.describeRepo", repo),
        ]
    )


LACKING: list[dict[str, Any]] = [
    {"issuer": "https://bsky.social"},
    {"code_challenge_methods_supported": ["plain"]},
    {"dpop_signing_alg_values_supported": None},
    {"authorization_response_iss_parameter_supported": False},
    {"token_endpoint": "http://evil.example/token"},
    {"authorization_endpoint": 7},
    {},  # the push answers with a redirect, which the client does not follow
]
UNSURE: list[dict[str, Any]] = [
    {"did": "did:plc:alice"},
    {"handleIsCorrect": False},
    {"handle": "not a handle"},
    {"sub": "eve"},
    {"scope": "openid"},
    {"token_type": "Bearer"},
]


def _paths(prefix: str, cases: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{prefix}{number}", each) for number, each in enumerate(cases)]


@pytest.fixture(scope="module")
def liars() -> Iterator[str]:
    """Serve a lying server for each case, by its path."""
    with listening() as port:
        base = address_of(port)
        mounts = [
            *(Mount(path, lying(base + path, each, {})) for path, each in _paths("/lacking", LACKING)),
            *(Mount(path, lying(base + path, {}, each)) for path, each in _paths("/unsure", UNSURE)),
        ]
        with serving_on(port, Starlette(routes=mounts)):
            yield base


@pytest.mark.parametrize("number", range(len(LACKING)), ids=lambda n: str(LACKING[n]))
def test_a_server_that_lacks_a_part_of_the_protocol_is_not_used(
    provider: Provider, liars: str, number: int
) -> None:
    with pytest.raises(ProviderUnavailable):
        begin(provider.client(issuer=f"{liars}/lacking{number}"))


@pytest.mark.parametrize("number", range(len(UNSURE)), ids=lambda n: str(UNSURE[n]))
def test_an_unconfirmed_identity_is_rejected(provider: Provider, liars: str, number: int) -> None:
    issuer = f"{liars}/unsure{number}"
    pending = {"state": "s", "verifier": "v", "key": ProofKey.new().to_text()}
    with pytest.raises(ProviderUnavailable):
        asyncio.run(
            provider.client(issuer=issuer).finish(pending, {"state": "s", "iss": issuer, "code": "c"})
        )


def test_a_server_that_does_not_answer_is_unavailable(provider: Provider) -> None:
    with listening() as port:
        closed = address_of(port)
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        begin(provider.client(issuer=closed))


def test_only_https_leaves_this_host(provider: Provider) -> None:
    with pytest.raises(DeclarationError, match="https"):
        provider.client(issuer="http://bsky.social")
