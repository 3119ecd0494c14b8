"""The front page of the demo: what runs where, how to sign in, what to try."""

from __future__ import annotations

from importlib import resources

import jinja2
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from solotable import __version__

from .status import Status

_PACKAGE = "solotable.systems.demo"
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer", "cache-control": "no-store"}
#: A page that is not settled loads itself again after so many seconds.
_REFRESH = "2"
_HOSTS = ["127.0.0.1", "localhost"]


def create_app(status: Status) -> Starlette:
    """Return the app of the front page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    stylesheet = (resources.files(_PACKAGE) / "static" / "demo.css").read_bytes()

    def front(_: Request) -> Response:
        html = environment.get_template("front.html").render(status=status, version=__version__)
        headers = _HEADERS if status.is_settled else _HEADERS | {"refresh": _REFRESH}
        return HTMLResponse(html, headers=headers)

    def as_json(_: Request) -> Response:
        shown = {"settled": status.is_settled, "parts": [each.to_json() for each in status.parts]}
        return JSONResponse(shown, headers=_HEADERS)

    def style(_: Request) -> Response:
        return Response(stylesheet, media_type="text/css", headers={"cache-control": "no-cache"})

    app = Starlette(
        routes=[
            Route("/", front),
            Route("/status.json", as_json),
            Route("/demo.css", style),
        ]
    )
    # The page shows keys, so no other host name may reach it.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)
    return app
