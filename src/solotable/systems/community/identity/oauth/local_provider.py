"""An authorization server of the AT Protocol for demos and tests, with accounts in memory.

It does what the client relies on: pushed requests, PKCE, DPoP with nonces, codes that work once, `iss`. It
is not for production: it limits no guesses, and forgets everything when it stops.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from solotable.pages.assets import Assets
from solotable.pages.forms import FieldError, Form, read_form
from solotable.systems.browser.render import POLICY, Branding, Renderer

from .client import METADATA_PATH, SCOPE
from .proofs import ALGORITHM, InvalidProof, Proof, digest, verify_proof

_REQUEST_SECONDS = 300
_CODE_SECONDS = 60
_NONCE_SECONDS = 300
_PROOF_SECONDS = 60
_URN = "urn:ietf:params:oauth:request_uri:"
_PAGES = "solotable.systems.community.pages"
_MAX_PENDING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccount:
    """An account of the provider."""

    did: str
    handle: str
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pushed:
    """A pushed request, and after the sign-in the account of its code."""

    client_id: str
    redirect_uri: str
    state: str
    challenge: str
    thumbprint: str
    hint: str
    expires: float
    did: str = ""


class OAuthFailure(Exception):
    """An error that the client reads, by its code."""

    def __init__(self, code: str, description: str = "") -> None:
        super().__init__(description or code)
        self.code = code


class LocalProvider:
    """Serve `app` at `issuer`."""

    def __init__(
        self,
        issuer: str,
        accounts: Iterable[LocalAccount],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer = issuer
        self._path = urlsplit(issuer).path
        self.accounts = {each.handle: each for each in accounts}
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._pushed: dict[str, _Pushed] = {}
        self._codes: dict[str, _Pushed] = {}
        self._proofs: dict[str, float] = {}
        assets = Assets("solotable.systems.browser", _PAGES)
        branding = Branding(name="Local identity provider", stylesheet="community.css")
        self._renderer = Renderer(_PAGES, branding, assets)
        self.app = Starlette(
            routes=[
                Route(METADATA_PATH, self._describe),
                Route("/oauth/par", self._push, methods=["POST"]),
                Route("/oauth/authorize", self._show),
                Route("/oauth/authorize", self._decide, methods=["POST"]),
                Route("/oauth/token", self._exchange, methods=["POST"]),
                Route("/xrpc/com.atproto.repo.describeRepo", self._repository),
                Route(assets.path, assets.serve),
            ],
            exception_handlers={OAuthFailure: self._fail},
        )

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/oauth/authorize",
                "pushed_authorization_request_endpoint": f"{self.issuer}/oauth/par",
                "token_endpoint": f"{self.issuer}/oauth/token",
                "require_pushed_authorization_requests": True,
                "authorization_response_iss_parameter_supported": True,
                "code_challenge_methods_supported": ["S256"],
                "dpop_signing_alg_values_supported": [ALGORITHM],
                "grant_types_supported": ["authorization_code"],
                "response_types_supported": ["code"],
                "scopes_supported": [SCOPE],
                "token_endpoint_auth_methods_supported": ["none"],
                "client_id_metadata_document_supported": True,
            }
        )

    async def _push(self, request: Request) -> Response:
        form = await read_form(request)
        proof = self._check_proof(request)
        if form.value("response_type") != "code" or form.value("code_challenge_method") != "S256":
            raise OAuthFailure("invalid_request", "response_type=code and code_challenge_method=S256")
        if len(form.value("code_challenge")) != 43 or len(form.value("state")) < 16:
            raise OAuthFailure("invalid_request", "code_challenge or state is too short")
        if SCOPE not in form.value("scope").split():
            raise OAuthFailure("invalid_scope")
        if not _is_registered(form.value("client_id"), form.value("redirect_uri")):
            raise OAuthFailure("invalid_client", "the redirect is not one of the client")
        urn = _URN + secrets.token_urlsafe(24)
        self._forget_expired()
        self._pushed[urn] = _Pushed(
            client_id=form.value("client_id"),
            redirect_uri=form.value("redirect_uri"),
            state=form.value("state"),
            challenge=form.value("code_challenge"),
            thumbprint=proof.thumbprint,
            hint=form.value("login_hint")[:253],
            expires=self._clock() + _REQUEST_SECONDS,
        )
        body = {"request_uri": urn, "expires_in": _REQUEST_SECONDS}
        return JSONResponse(body, status_code=201, headers=self._nonce_header())

    async def _show(self, request: Request) -> Response:
        urn = request.query_params.get("request_uri", "")
        pushed = self._find_pushed(urn, request.query_params.get("client_id", ""))
        return self._page(urn, pushed, Form.of(handle=pushed.hint))

    async def _decide(self, request: Request) -> Response:
        form = await read_form(request)
        urn = form.value("request_uri")
        pushed = self._find_pushed(urn, form.value("client_id"))
        if form.value("answer") == "deny":
            del self._pushed[urn]
            return self._return(pushed, error="access_denied")
        account = self.accounts.get(form.value("handle").strip().lower())
        known = "" if account is None else account.password
        if account is None or not hmac.compare_digest(form.value("password").encode(), known.encode()):
            wrong = FieldError("handle", "The handle or the password is wrong.")
            kept = Form.of(handle=form.value("handle")[:253]).with_errors([wrong])
            return self._page(urn, pushed, kept, status=422)
        # One request, one code.
        del self._pushed[urn]
        code = secrets.token_urlsafe(32)
        values = {name: getattr(pushed, name) for name in _Pushed.__slots__}
        expires = self._clock() + _CODE_SECONDS
        self._codes[code] = _Pushed(**(values | {"did": account.did, "expires": expires}))
        return self._return(pushed, code=code)

    async def _exchange(self, request: Request) -> Response:
        form = await read_form(request)
        proof = self._check_proof(request)
        # A code is gone after the first attempt, right or wrong.
        found = self._codes.pop(form.value("code"), None)
        if form.value("grant_type") != "authorization_code":
            raise OAuthFailure("unsupported_grant_type")
        if found is None or found.expires <= self._clock():
            raise OAuthFailure("invalid_grant", "the code was used or has expired")
        if (found.client_id, found.redirect_uri) != (form.value("client_id"), form.value("redirect_uri")):
            raise OAuthFailure("invalid_grant", "the code is of another client")
        if not hmac.compare_digest(digest(form.value("code_verifier")), found.challenge):
            raise OAuthFailure("invalid_grant", "the code_verifier does not fit")
        if proof.thumbprint != found.thumbprint:
            raise OAuthFailure("invalid_dpop_proof", "another key started the login")
        body = {
            "access_token": secrets.token_urlsafe(32),
            "token_type": "DPoP",
            "expires_in": _CODE_SECONDS,
            "scope": SCOPE,
            "sub": found.did,
        }
        return JSONResponse(body, headers={"cache-control": "no-store", **self._nonce_header()})

    async def _repository(self, request: Request) -> Response:
        did = request.query_params.get("repo", "")
        account = next((each for each in self.accounts.values() if each.did == did), None)
        if account is None:
            return JSONResponse({"error": "RepoNotFound"}, status_code=400)
        body = {"did": did, "handle": account.handle, "handleIsCorrect": True, "collections": []}
        return JSONResponse(body)

    async def _fail(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, OAuthFailure)
        body = {"error": error.code, "error_description": str(error)}
        return JSONResponse(body, status_code=400, headers=self._nonce_header())

    def _check_proof(self, request: Request) -> Proof:
        # Below a path, as of a mounted app, the path of the route does not have that of the issuer.
        url = self.issuer + request.url.path.removeprefix(self._path)
        try:
            proof = verify_proof(request.headers.get("dpop", ""), method=request.method, url=url)
        except InvalidProof as error:
            raise OAuthFailure("invalid_dpop_proof", str(error)) from error
        if proof.nonce not in (self._nonce(), self._nonce(-1)):
            raise OAuthFailure("use_dpop_nonce")
        now = self._clock()
        if abs(now - proof.issued_at) > _PROOF_SECONDS:
            raise OAuthFailure("invalid_dpop_proof", "the proof is too old")
        self._proofs = {each: expires for each, expires in self._proofs.items() if expires > now}
        if proof.id in self._proofs:
            raise OAuthFailure("invalid_dpop_proof", "the proof was used before")
        self._proofs[proof.id] = now + 2 * _PROOF_SECONDS
        return proof

    def _nonce(self, period: int = 0) -> str:
        counted = int(self._clock() // _NONCE_SECONDS) + period
        return hmac.new(self._secret, str(counted).encode(), hashlib.sha256).hexdigest()

    def _nonce_header(self) -> dict[str, str]:
        return {"dpop-nonce": self._nonce()}

    def _find_pushed(self, urn: str, client_id: str) -> _Pushed:
        found = self._pushed.get(urn)
        if found is None or found.expires <= self._clock() or found.client_id != client_id:
            raise OAuthFailure("invalid_request", "the request was used or has expired")
        return found

    def _forget_expired(self) -> None:
        now = self._clock()
        for kept in (self._pushed, self._codes):
            for each in [name for name, pushed in kept.items() if pushed.expires <= now]:
                del kept[each]
        if len(self._pushed) >= _MAX_PENDING:
            raise OAuthFailure("temporarily_unavailable")

    def _return(self, pushed: _Pushed, **answer: str) -> Response:
        query = urlencode({**answer, "state": pushed.state, "iss": self.issuer})
        return RedirectResponse(f"{pushed.redirect_uri}?{query}", status_code=303)

    def _page(self, urn: str, pushed: _Pushed, form: Form, *, status: int = 200) -> Response:
        # A browser checks form-action for the redirect after the form as well.
        target = urlsplit(pushed.redirect_uri)
        policy = POLICY.replace("form-action 'self'", f"form-action 'self' {target.scheme}://{target.netloc}")
        page: Mapping[str, Any] = {
            "request_uri": urn,
            "client_id": pushed.client_id,
            "host": target.netloc,
            "action": f"{self._path}/oauth/authorize",
            "handles": sorted(self.accounts),
        }
        headers = {"cache-control": "no-store"}
        return self._renderer.respond(
            "provider.html", status=status, policy=policy, headers=headers, page=page, form=form
        )


def _is_registered(client_id: str, redirect_uri: str) -> bool:
    """Return whether a client of this host may use a redirect: its id lists them."""
    parts = urlsplit(client_id)
    if (parts.scheme, parts.netloc, parts.path) not in (
        ("http", "localhost", ""),
        ("http", "localhost", "/"),
    ):
        return False
    return redirect_uri in parse_qs(parts.query).get("redirect_uri", [])
