"""Which requests the console answers: its own Host and Origin, and forms with its token.

A web page can point its host name at this machine (DNS rebinding), or post a form to it. Both carry a Host or
an Origin that is not the console's, and neither knows the token.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
#: No page may embed, post to or read the console; scripts and styles come from the console alone.
HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Gate:
    """Checks the Host of every request, and Origin and token of those that change something."""

    def __init__(self) -> None:
        #: Random for each start; pages carry it in their forms.
        self.token = secrets.token_urlsafe(32)

    def check_host(self, host: str) -> None:
        """Raise 421 for a Host header of another name than this machine's loopback names."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() not in _LOOPBACK:
            raise HTTPException(
                421,
                f"The console answers to 127.0.0.1 and localhost, not to the host name {host!r}; open the "
                "address that the command printed.",
            )

    def check_embedding(self, headers: Mapping[str, str]) -> None:
        """Raise 403 if a page of another site loads one as a picture, frame or script: reads cost money."""
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") != "document":
            raise HTTPException(403, "A page of another site cannot embed the console; open its address.")

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise 403 for a request that a page of another origin has sent."""
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            raise HTTPException(403, f"A page of {origin} sent this form; use the console's own page.")
        if site is not None and site not in ("same-origin", "none"):
            raise HTTPException(403, "A page of another site sent this form; use the console's own page.")

    def check_token(self, given: str) -> None:
        """Raise 403 for a form without the token of this process."""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise HTTPException(
                403, "The form has no valid token: the console was started again. Load the page, then send."
            )
