"""Tokens: the issuer, the audience, the times, the algorithm and the key must all be right."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import HTTPException

from solotable.errors import DeclarationError
from solotable.web import Auth, JwtSettings, Principal

SECRET = "s" * 40
OLD_SECRET = "o" * 40
NOW = 1_800_000_000
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


PUBLIC = pem(PRIVATE)
CLAIMS: dict[str, Any] = {
    "iss": "https://id.example",
    "aud": "shop",
    "sub": "u-1",
    "exp": NOW + 600,
    "iat": NOW,
    "roles": ["EDITOR"],
    "tenants": ["acme"],
    "email": "ann@example.org",
}


def settings(**changes: Any) -> JwtSettings:
    given: dict[str, Any] = {"issuer": "https://id.example", "audience": "shop", "clock": lambda: NOW}
    return JwtSettings(**(given | changes))


HS = settings(secrets=[SECRET, OLD_SECRET])
RS = settings(public_keys={"k1": PUBLIC})
BOTH = settings(secrets=[SECRET], public_keys={"k1": PUBLIC, "k2": pem(OTHER)})


def verified(using: JwtSettings, token: str) -> Principal | None:
    try:
        return asyncio.run(Auth(jwt=using).verify_token(token))
    except HTTPException as refused:
        assert refused.status_code == 401
        return None


def hs(claims: dict[str, Any] | None = None, secret: str = SECRET, **header: Any) -> str:
    return pyjwt.encode(CLAIMS if claims is None else claims, secret, "HS256", headers=header)


def rs(claims: dict[str, Any] | None = None, key: rsa.RSAPrivateKey = PRIVATE, **header: Any) -> str:
    return pyjwt.encode(claims or CLAIMS, key, "RS256", headers={"kid": "k1"} | header)


def by_hand(header: dict[str, Any], claims: Any, key: bytes = b"") -> str:
    """Return a token that libraries refuse to make."""
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, claims)]
    signature = hmac.new(key, b".".join(parts), hashlib.sha256).digest() if key else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def test_a_good_token_identifies_the_principal() -> None:
    for using, token in ((HS, hs()), (RS, rs()), (BOTH, hs()), (BOTH, rs())):
        assert verified(using, token) == Principal(
            id="u-1",
            kind="jwt",
            issuer="https://id.example",
            email="ann@example.org",
            roles=frozenset({"EDITOR"}),
            tenants=frozenset({"acme"}),
        )


def test_a_former_secret_still_verifies_while_it_is_listed() -> None:
    assert verified(HS, hs(secret=OLD_SECRET)) is not None
    assert verified(settings(secrets=[SECRET]), hs(secret=OLD_SECRET)) is None


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "", "hs256", "HS512", "ES256", "PS256", 7, None, ["HS256"]]
)
def test_no_other_algorithm_is_taken(alg: Any) -> None:
    for key in (b"", SECRET.encode(), PUBLIC.encode()):
        for using in (HS, RS, BOTH):
            assert verified(using, by_hand({"alg": alg, "typ": "JWT", "kid": "k1"}, CLAIMS, key)) is None


def test_a_public_key_is_rejected_as_a_secret() -> None:
    for key in (PUBLIC.encode(), PUBLIC.strip().encode()):
        for using in (RS, BOTH):
            assert verified(using, by_hand({"alg": "HS256", "kid": "k1"}, CLAIMS, key)) is None


def test_settings_of_one_algorithm_reject_the_other() -> None:
    assert verified(RS, hs()) is None
    assert verified(HS, rs()) is None


@pytest.mark.parametrize("kid", ["k2", "nope", "", "../../k1", "k1\x00", 1, ["k1"], {"k": 1}, None])
def test_a_key_id_finds_exactly_its_key_or_nothing(kid: Any) -> None:
    token = by_hand({"alg": "RS256", "kid": kid}, CLAIMS)
    assert verified(BOTH, token) is None
    if isinstance(kid, str):
        assert verified(BOTH, rs(kid=kid)) is None


def test_a_token_without_a_key_id_is_verified_only_with_a_single_key() -> None:
    token = pyjwt.encode(CLAIMS, PRIVATE, "RS256")
    assert verified(RS, token) is not None
    assert verified(BOTH, token) is None


def test_headers_that_bring_a_key_are_not_read() -> None:
    jwk = json.loads(pyjwt.algorithms.RSAAlgorithm.to_jwk(OTHER.public_key()))
    for header in ({"jwk": jwk}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/c"}):
        assert verified(RS, rs(key=OTHER, **header)) is None


def test_a_token_with_critical_headers_is_rejected() -> None:
    assert verified(HS, by_hand({"alg": "HS256"}, CLAIMS, SECRET.encode())) is not None
    assert verified(HS, by_hand({"alg": "HS256", "crit": ["x"], "x": 1}, CLAIMS, SECRET.encode())) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 31},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": float("nan")},
        {"nbf": NOW + 31},
        {"nbf": "now"},
        {"iat": NOW + 31},
        {"iss": "https://evil.example"},
        {"iss": "https://id.example/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": []},
        {"aud": None},
        {"aud": "shop2"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"roles": {"EDITOR": True}},
        {"roles": 7},
        {"roles": [["EDITOR"]]},
        {"tenants": {"acme": 1}},
        {"tenants": [None]},
        {"tenants": True},
    ],
)
def test_a_token_with_a_wrong_claim_is_rejected(changes: dict[str, Any]) -> None:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    assert verified(HS, by_hand({"alg": "HS256"}, claims, SECRET.encode())) is None


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "moment",
    [
        float("inf"),
        float("-inf"),
        float("nan"),
        10**400,
        253_402_300_800,
        1e300,
        -1,
        -0.5,
        -(10**400),
        True,
        False,
        "1800000600",
        "",
        [NOW],
        {},
    ],
    ids=lambda each: repr(each)[:12],
)
def test_an_invalid_time_rejects_the_token(claim: str, moment: Any) -> None:
    token = by_hand({"alg": "HS256"}, CLAIMS | {claim: moment}, SECRET.encode())
    assert verified(HS, token) is None


def test_a_time_that_is_null_rejects_the_token() -> None:
    for claim in ("exp", "nbf", "iat"):
        assert verified(HS, by_hand({"alg": "HS256"}, CLAIMS | {claim: None}, SECRET.encode())) is None


def test_moments_up_to_the_year_9999_are_valid() -> None:
    for changes in ({"exp": 253_402_300_799}, {"exp": NOW + 0.5}, {"nbf": 0}, {"iat": 0.0}):
        assert verified(HS, by_hand({"alg": "HS256"}, CLAIMS | changes, SECRET.encode())) is not None


@pytest.mark.parametrize(
    "changes", [{"exp": NOW - 29}, {"nbf": NOW + 29}, {"iat": NOW + 29}, {"aud": ["x", "shop"]}]
)
def test_clocks_may_differ_a_little(changes: dict[str, Any]) -> None:
    assert verified(HS, hs(CLAIMS | changes)) is not None


@pytest.mark.parametrize(
    "token", ["", ".", "..", "a.b.c", "é.é.é", "{}", hs() + "x", hs()[:-4], hs().replace(".", "..", 1)]
)
def test_texts_that_are_not_tokens_are_rejected(token: str) -> None:
    assert verified(HS, token) is None


def test_bodies_that_are_not_claims_are_rejected() -> None:
    bodies: list[Any] = [[], "text", None, 7, [[[[]]]]]
    for claims in bodies:
        assert verified(HS, by_hand({"alg": "HS256"}, claims, SECRET.encode())) is None


def test_no_claim_gives_all_tenants_but_a_role_that_the_settings_name() -> None:
    for claim in ("*", ["*"], ""):
        found = verified(HS, hs(CLAIMS | {"tenants": claim}))
        assert found is not None
        assert found.tenants is not None
    absent = {name: value for name, value in CLAIMS.items() if name != "tenants"}
    found = verified(HS, hs(absent))
    assert found is not None
    assert found.tenants == frozenset()
    everywhere = settings(secrets=[SECRET], all_tenants_roles=frozenset({"ROOT"}))
    root = verified(everywhere, hs(absent | {"roles": "ROOT"}))
    assert root is not None
    assert root.tenants is None


def test_roles_can_be_fixed_or_filtered_by_the_settings() -> None:
    claims = CLAIMS | {"roles": ["ROOT", "EDITOR"]}
    fixed = verified(settings(secrets=[SECRET], fixed_roles=frozenset({"CUSTOMER"})), hs(claims))
    assert fixed is not None
    assert fixed.roles == {"CUSTOMER"}
    filtered = verified(settings(secrets=[SECRET], allowed_roles=frozenset({"EDITOR"})), hs(claims))
    assert filtered is not None
    assert filtered.roles == {"EDITOR"}


def test_claims_may_lie_deeper() -> None:
    deep = settings(secrets=[SECRET], roles_claim=("realm_access", "roles"))
    found = verified(deep, hs(CLAIMS | {"realm_access": {"roles": ["A"]}}))
    assert found is not None
    assert found.roles == {"A"}


def test_each_issuer_has_its_own_keys_and_rules() -> None:
    staff = settings(secrets=[SECRET])
    customers = settings(
        issuer="https://pool.example", secrets=[OLD_SECRET], fixed_roles=frozenset({"CUSTOMER"})
    )
    auth = Auth(jwt=[staff, customers])
    theirs = CLAIMS | {"iss": "https://pool.example"}
    assert asyncio.run(auth.verify_token(hs(theirs, OLD_SECRET))).roles == {"CUSTOMER"}
    # A token of one provider that claims the issuer of the other, and so its settings.
    for claims, secret in ((CLAIMS, OLD_SECRET), (theirs, SECRET)):
        with pytest.raises(HTTPException):
            asyncio.run(auth.verify_token(hs(claims, secret)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"secrets": ["short"]},
        {"secrets": SECRET},
        {"secrets": [PUBLIC]},
        {"secrets": [SECRET], "issuer": ""},
        {"secrets": [SECRET], "audience": ""},
        {"jwks": "http://id.example/keys"},
        {"jwks": "file:///etc/passwd"},
        {"public_keys": {"k1": "no pem"}},
    ],
)
def test_unsafe_settings_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        Auth(jwt=settings(**changes))


def test_short_rsa_keys_are_rejected() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  # it is to be refused
    with pytest.raises(DeclarationError):
        Auth(jwt=settings(public_keys={"k": pem(weak)}))


def test_two_settings_of_one_issuer_are_rejected() -> None:
    with pytest.raises(DeclarationError):
        Auth(jwt=[HS, RS])


def test_secrets_are_not_in_the_repr() -> None:
    assert SECRET not in repr(HS)
