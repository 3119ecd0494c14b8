"""The cookie of a session, and the tokens of its forms; another site can send neither."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """A cookie that scripts cannot read; `base` is its name without the prefix that https adds."""

    base: str
    seconds: int

    def name(self, request: Request) -> str:
        """Return the name of the cookie: over https, no other host or path can set it."""
        return f"__Host-{self.base}" if request.url.scheme == "https" else self.base

    def read(self, request: Request) -> str | None:
        """Return the token that a browser sent; None without one."""
        return request.cookies.get(self.name(request))

    def set(self, request: Request, response: Response, token: str) -> None:
        """Give the browser a token."""
        response.set_cookie(
            self.name(request),
            token,
            max_age=self.seconds,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="lax",
        )

    def clear(self, request: Request, response: Response) -> None:
        """Take the token away."""
        response.delete_cookie(
            self.name(request), path="/", secure=request.url.scheme == "https", httponly=True, samesite="lax"
        )


def form_token(secret: str) -> str:
    """Return the token of all forms of a session, derived from its cookie."""
    return hmac.new(secret.encode(), b"form token", hashlib.sha256).hexdigest()


def is_form_token(secret: str, given: str) -> bool:
    """Return whether a form was made for this cookie."""
    return hmac.compare_digest(form_token(secret).encode(), given.encode("utf-8", "replace"))
