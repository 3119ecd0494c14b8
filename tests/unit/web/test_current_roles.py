"""Current roles: looked up for tokens in each tenant, not for API keys and anonymous requests."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from solotable._store import AsyncDatabase
from solotable.errors import TransportError
from solotable.web import Auth, JwtSettings, Principal

from .app import EDITOR_KEY, KEYS, client, make

SECRET = "s" * 32
TOKENS = JwtSettings(
    issuer="https://id.example",
    audience="shop",
    secrets=[SECRET],
    all_tenants_roles=frozenset({"ROOT"}),
)


class Records:
    """The users of an app, by tenant."""

    def __init__(self, **roles: frozenset[str]) -> None:
        self.roles = roles
        self.asked: list[tuple[str, str]] = []

    async def __call__(
        self, database: AsyncDatabase, principal: Principal, tenant: str
    ) -> frozenset[str] | None:
        self.asked.append((principal.id, tenant))
        if principal.id == "fails":
            raise TransportError("no answer")
        return self.roles.get(tenant)


def bearer(*tenants: str, subject: str = "ann", role: str = "EDITOR") -> dict[str, str]:
    claims = {"iss": TOKENS.issuer, "aud": "shop", "sub": subject, "exp": time.time() + 3600}
    text = jwt.encode({**claims, "roles": [role, "OTHER"], "tenants": list(tenants)}, SECRET, "HS256")
    return {"authorization": f"Bearer {text}"}


def app(records: Records) -> Any:
    return make(auth=Auth(api_keys=KEYS, jwt=TOKENS), resolve_roles=records)


def test_a_token_is_looked_up_once_for_a_while_and_a_key_never() -> None:
    records = Records()
    made = app(records)
    with client(made) as http:
        for _ in range(3):
            assert http.get("/me", headers=bearer("acme")).json()["roles"] == ["EDITOR", "OTHER"]
            assert http.get("/me", headers={"x-api-key": EDITOR_KEY}).status_code == 200
            assert http.get("/visitor").json() == "anonymous"
        assert records.asked == [("ann", "acme")]
        records.roles["acme"] = frozenset()
        assert http.get("/me", headers=bearer("acme")).status_code == 200
        made.state.current_roles.forget("zeta")
        assert http.get("/me", headers=bearer("acme")).status_code == 200
        made.state.current_roles.forget("acme")
        for path in ("/me", "/visitor", "/things"):
            assert http.get(path, headers=bearer("acme")).status_code == 403


def test_roles_are_those_of_the_tenant_and_without_one_those_of_all() -> None:
    records = Records(acme=frozenset({"EDITOR"}), zeta=frozenset({"OTHER", "EDITOR"}), nova=frozenset())
    with client(app(records)) as http:

        def roles(*tenants: str, wanted: str | None = None) -> Any:
            named = {"x-tenant-id": wanted} if wanted else {}
            return http.get("/me", headers={**bearer(*tenants), **named}).json().get("roles")

        assert roles("acme") == roles("acme", "zeta") == roles("acme", "nova") == ["EDITOR"]
        assert roles("acme", "zeta", wanted="zeta") == ["EDITOR", "OTHER"]
        assert roles("nova") is roles("acme", "nova", wanted="nova") is None
        assert roles("acme", wanted="zeta") == ["EDITOR"]
        assert http.get("/things", headers={**bearer("acme", "nova")}).status_code == 200
        many = [f"t{number}" for number in range(17)]
        assert http.get("/me", headers=bearer(*many)).status_code == 400
        assert http.get("/me", headers={**bearer(*many), "x-tenant-id": "t3"}).status_code == 200


def test_principals_of_all_tenants_or_none_are_not_looked_up() -> None:
    records = Records(acme=frozenset())
    with client(app(records)) as http:
        for held in (bearer("acme", role="ROOT"), bearer()):
            assert http.get("/me", headers=held).status_code == 200
    assert records.asked == []


@pytest.mark.parametrize("path", ["/me", "/things"])
def test_a_failed_lookup_of_roles_rejects_the_request(path: str) -> None:
    with client(app(Records())) as http:
        assert http.get(path, headers=bearer("acme", subject="fails")).status_code == 503
