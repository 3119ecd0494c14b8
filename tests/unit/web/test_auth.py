"""Authentication: API keys and tokens, wrong credentials, and requests without one."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from solotable.errors import DeclarationError
from solotable.web import ApiKey, Auth, JwtSettings, requires

from . import app as shop
from .test_jwt import CLAIMS, NOW, SECRET, hs

AUTH = Auth(
    api_keys=shop.KEYS,
    jwt=JwtSettings(issuer="https://id.example", audience="shop", secrets=[SECRET], clock=lambda: NOW),
)


def test_a_key_and_a_token_identify_the_principal() -> None:
    with shop.client(shop.make(auth=AUTH)) as http:
        by_key = http.get("/me", headers={"x-api-key": shop.EDITOR_KEY})
        by_token = http.get("/me", headers={"authorization": f"Bearer {hs()}"})
        assert by_key.json() == {"id": "k-acme", "kind": "api-key", "roles": ["EDITOR"]}
        assert by_token.json() == {"id": "u-1", "kind": "jwt", "roles": ["EDITOR"]}


@pytest.mark.parametrize(
    "headers",
    [
        [("x-api-key", "")],
        [("x-api-key", "wrong")],
        [("x-api-key", shop.EDITOR_KEY.upper())],
        [("x-api-key", shop.EDITOR_KEY[:-1])],
        [("x-api-key", hashlib.sha256(shop.EDITOR_KEY.encode()).hexdigest())],
        [("x-api-key", "ä" * 30)],
        [("x-api-key", "x" * 9000)],
        [("x-api-key", shop.EDITOR_KEY), ("x-api-key", shop.ADMIN_KEY)],
        [("x-api-key", shop.EDITOR_KEY), ("authorization", f"Bearer {hs()}")],
        [("x-api-key", shop.EDITOR_KEY), ("authorization", "")],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer ")],
        [("authorization", "Basic YTpi")],
        [("authorization", hs())],
        [("authorization", f"Bearer {hs()}, Bearer {hs()}")],
        [("authorization", f"Bearer {hs(CLAIMS | {'exp': 1})}")],
    ],
)
@pytest.mark.parametrize("path", ["/me", "/visitor", "/things"])
def test_a_wrong_credential_is_rejected_even_where_none_is_needed(
    headers: list[tuple[str, str]], path: str
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    with shop.client(shop.make(auth=AUTH)) as http:
        answer = http.get(path, headers=raw)
    assert answer.status_code == 401
    assert "Bearer" in answer.headers["www-authenticate"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_no_credential_is_anonymous_and_gets_nowhere() -> None:
    with shop.client(shop.make(auth=AUTH)) as http:
        assert http.get("/visitor").json() == "anonymous"
        assert http.get("/me").status_code == 401
        assert http.get("/things", headers={"x-tenant-id": "acme"}).status_code == 401


def test_without_auth_every_credential_is_rejected() -> None:
    with shop.client(shop.make(auth=None), key=shop.ADMIN_KEY) as http:
        assert http.get("/me").status_code == 401
        assert http.get("/things", headers={"x-tenant-id": "acme"}).status_code == 401


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(one: Any, other: Any) -> bool:
        compared.append(other)
        return bool(one == other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    Auth(api_keys=shop.KEYS).verify_key(shop.EDITOR_KEY)
    # The keys after the matching one are compared too.
    assert len(compared) == len(shop.KEYS)


def test_a_role_is_needed_where_it_is_asked_for() -> None:
    with shop.client(shop.make()) as http:
        sent = {"thing_id": "1", "name": "x"}
        refused = http.post("/things", headers={"x-api-key": shop.POWERLESS_KEY}, json=sent)
        assert refused.status_code == 403
        assert "EDITOR" in refused.json()["detail"]
        allowed = http.post("/things", headers={"x-api-key": shop.EDITOR_KEY}, json=sent)
        assert allowed.status_code == 201
    with pytest.raises(TypeError):
        requires()


def test_unsafe_keys_are_rejected() -> None:
    for bad in (
        lambda: ApiKey.of("short", id="k", roles=[], tenants=[]),
        lambda: ApiKey.of("x" * 30, id="k", roles="ADMIN", tenants=[]),
        lambda: ApiKey.of("x" * 30, id="k", roles=[], tenants="acme"),
        lambda: ApiKey(id="k", sha256="x" * 30, roles=frozenset(), tenants=None),
        lambda: Auth(api_keys=[shop.KEYS[0], shop.KEYS[0]]),
    ):
        with pytest.raises(DeclarationError):
            bad()


def test_a_key_is_not_stored() -> None:
    assert shop.EDITOR_KEY not in repr(shop.KEYS[0])
