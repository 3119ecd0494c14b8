"""Login at an authorization server of the AT Protocol: PAR, PKCE, DPoP with nonces, `iss` checks.

The issuer is fixed by the settings, so no user chooses which host this process calls. The client resolves no
handles and keeps no access token: it needs to know who the user is, and nothing of theirs.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from solotable.errors import DeclarationError
from solotable.systems.community.identity.port import (
    Identity,
    LoginRejected,
    LoginStart,
    ProviderUnavailable,
)

from .exchange import JsonReply, is_secure, send
from .proofs import ALGORITHM, ProofKey, digest

SCOPE = "atproto"
METADATA_PATH = "/.well-known/oauth-authorization-server"
_DID = re.compile(r"did:(plc|web):[A-Za-z0-9._:%-]{1,200}")
_HANDLE = re.compile(r"(?=.{3,253}$)[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))+")
_METADATA_SECONDS = 300.0


def local_client_id(redirect_uri: str) -> str:
    """Return the client id of an app on this host, which needs no published metadata."""
    return f"http://localhost?{urlencode({'redirect_uri': redirect_uri, 'scope': SCOPE})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """Which server to ask, and as whom."""

    #: `https://bsky.social`; http on this host only.
    issuer: str
    #: The URL of the app's published metadata; see `local_client_id`.
    client_id: str
    redirect_uri: str
    timeout_seconds: float = 10.0
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        for name in ("issuer", "redirect_uri"):
            if not is_secure(getattr(self, name)):
                raise DeclarationError(f"{name} takes https, or http to this host.")


@dataclass(frozen=True, slots=True)
class _Endpoints:
    authorize: str
    push: str
    token: str


class OAuthClient:
    """An IdentityProvider: one authorization server of the AT Protocol."""

    def __init__(self, settings: OAuthSettings) -> None:
        self._settings = settings
        self._endpoints: tuple[float, _Endpoints] | None = None
        #: The server's last nonce.
        self._nonce: str | None = None

    async def begin(self, *, handle: str | None) -> LoginStart:
        """Push the request to the server, and return its page for the browser."""
        return await asyncio.to_thread(self._begin, handle)

    async def finish(self, pending: Mapping[str, str], answer: Mapping[str, str]) -> Identity:
        """Exchange the code of the redirect for the DID of the user, and ask for their handle."""
        return await asyncio.to_thread(self._finish, dict(pending), dict(answer))

    def _begin(self, handle: str | None) -> LoginStart:
        endpoints = self._find_endpoints()
        key, state, verifier = ProofKey.new(), secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        form = {
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect_uri,
            "response_type": "code",
            "scope": SCOPE,
            "state": state,
            "code_challenge": digest(verifier),
            "code_challenge_method": "S256",
        }
        if handle:
            form["login_hint"] = handle
        reply = self._post(endpoints.push, form, key)
        request_uri = reply.body.get("request_uri")
        if reply.status not in (200, 201) or not isinstance(request_uri, str):
            raise ProviderUnavailable(f"The server rejected the request ({_error_of(reply)}).")
        query = urlencode({"client_id": self._settings.client_id, "request_uri": request_uri})
        pending = {"state": state, "verifier": verifier, "key": key.to_text()}
        return LoginStart(url=f"{endpoints.authorize}?{query}", pending=pending)

    def _finish(self, pending: Mapping[str, str], answer: Mapping[str, str]) -> Identity:
        if not hmac.compare_digest(answer.get("state", "").encode(), pending["state"].encode()):
            raise LoginRejected("This login was not started in this browser. Start again.")
        # Mix-up: the answer of another server must not be used at this one (RFC 9207).
        if answer.get("iss") != self._settings.issuer:
            raise LoginRejected("The answer is from another identity provider. Start again.")
        if "error" in answer:
            raise LoginRejected("The identity provider denied the login.")
        if not answer.get("code"):
            raise LoginRejected("The answer of the identity provider has no code. Start again.")
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect_uri,
            "code_verifier": pending["verifier"],
        }
        reply = self._post(self._find_endpoints().token, form, ProofKey.from_text(pending["key"]))
        if reply.status == 400:
            raise LoginRejected("The identity provider rejected the code. Start again.")
        did, scopes = reply.body.get("sub"), str(reply.body.get("scope", "")).split()
        if reply.status != 200 or str(reply.body.get("token_type")).lower() != "dpop" or SCOPE not in scopes:
            raise ProviderUnavailable(f"The server did not issue a token ({_error_of(reply)}).")
        if not isinstance(did, str) or not _DID.fullmatch(did):
            raise ProviderUnavailable("The server's token has no DID as its subject.")
        return Identity(did=did, handle=self._find_handle(did))

    def _find_handle(self, did: str) -> str:
        query = urlencode({"repo": did})
        reply = self._get(f"{self._settings.issuer}/xrpc/com.atproto.repo.describeRepo?{query}")
        handle = reply.body.get("handle")
        # A handle that its DID document does not confirm belongs to another account.
        if (
            reply.status != 200
            or reply.body.get("did") != did
            or reply.body.get("handleIsCorrect") is not True
        ):
            raise ProviderUnavailable(f"The server does not confirm the handle of {did}.")
        if not isinstance(handle, str) or not _HANDLE.fullmatch(handle.lower()):
            raise ProviderUnavailable(f"The server has no valid handle of {did}.")
        return handle.lower()

    def _find_endpoints(self) -> _Endpoints:
        known, now = self._endpoints, self._settings.clock()
        if known is not None and now < known[0]:
            return known[1]
        reply = self._get(self._settings.issuer + METADATA_PATH)
        found = _check_metadata(self._settings.issuer, reply)
        self._endpoints = (now + _METADATA_SECONDS, found)
        return found

    def _get(self, url: str) -> JsonReply:
        return send("GET", url, timeout_seconds=self._settings.timeout_seconds)

    def _post(self, url: str, form: Mapping[str, str], key: ProofKey) -> JsonReply:
        """Send a form with a proof; once more with the nonce that the server asks for (RFC 9449)."""
        reply = self._post_once(url, form, key)
        if reply.body.get("error") == "use_dpop_nonce":
            reply = self._post_once(url, form, key)
        return reply

    def _post_once(self, url: str, form: Mapping[str, str], key: ProofKey) -> JsonReply:
        proof = key.sign(method="POST", url=url, now=self._settings.clock(), nonce=self._nonce)
        seconds = self._settings.timeout_seconds
        reply = send("POST", url, form=form, headers={"dpop": proof}, timeout_seconds=seconds)
        self._nonce = reply.headers.get("dpop-nonce", self._nonce)
        return reply


def _check_metadata(issuer: str, reply: JsonReply) -> _Endpoints:
    body: Mapping[str, Any] = reply.body
    wanted = {
        "code_challenge_methods_supported": "S256",
        "dpop_signing_alg_values_supported": ALGORITHM,
        "scopes_supported": SCOPE,
    }
    missing = [name for name, value in wanted.items() if value not in (body.get(name) or ())]
    if body.get("authorization_response_iss_parameter_supported") is not True:
        missing.append("authorization_response_iss_parameter_supported")
    if reply.status != 200 or body.get("issuer") != issuer or missing:
        raise ProviderUnavailable(f"The metadata of {issuer} does not fit; missing: {', '.join(missing)}.")
    names = ("authorization_endpoint", "pushed_authorization_request_endpoint", "token_endpoint")
    urls = [body.get(name) for name in names]
    if not all(isinstance(url, str) and is_secure(url) for url in urls):
        raise ProviderUnavailable(f"The metadata of {issuer} has no secure endpoints.")
    return _Endpoints(*(str(url) for url in urls))


def _error_of(reply: JsonReply) -> str:
    code = reply.body.get("error")
    return f"{reply.status}, {code}" if isinstance(code, str) and code.isascii() else str(reply.status)
