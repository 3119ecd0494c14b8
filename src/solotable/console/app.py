"""The ASGI app: one door that checks Host, Origin and token, finds the page, and answers HTML or JSON."""

from __future__ import annotations

import logging
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from solotable.errors import DataError, DeclarationError, NotFound, ServiceError, SolotableError
from solotable.pages.assets import Assets
from solotable.pages.forms import Form, read_form

from .data.request_log import page_of
from .paths import decode_segment
from .render import Renderer
from .routes import find_page
from .security import HEADERS
from .state import Console, PageRequest, Redirect, View

_LOG = logging.getLogger(__name__)
#: An item of 400 KB, percent-encoded three bytes for one, as form and as stored.
_LARGEST_FORM = 4 * 1024 * 1024
_MOST_FIELDS = 20_000
_YEAR = 365 * 24 * 3600


def create_app(console: Console) -> ASGIApp:
    """Return the app of a console."""
    assets = Assets("solotable.console")
    return _Door(console, Renderer(console, assets), assets)


class _Door:
    """Answers every request of a browser.

    Not routes of Starlette: they match the decoded path, in which a key's slash is a separator.
    """

    def __init__(self, console: Console, renderer: Renderer, assets: Assets) -> None:
        self._console = console
        self._renderer = renderer
        self._assets = assets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an HTTP request; close another connection."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        response = await self.answer(request)
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """Answer a request with a page, JSON or a redirect."""
        # Not the decoded path: a key may contain a slash.
        raw = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
        path = raw.decode("latin-1").partition("?")[0]
        wants_json = path.endswith(".json")
        try:
            if request.method not in ("GET", "HEAD", "POST"):
                raise HTTPException(405, f"The console takes no {request.method}.")
            if path.startswith("/static/"):
                return await self._static(request, path)
            response = await self._respond(request, path, wants_json)
        except HTTPException as error:
            response = self._failure(request, path, wants_json, error.status_code, error.detail)
        except SolotableError as error:
            status = _status_of(error)
            response = self._failure(request, path, wants_json, status, str(error))
        except Exception:  # noqa: BLE001 - process edge: one page fails, the console stays
            _LOG.exception("the page %s failed", path)
            text = "The console could not build this page; its terminal shows why."
            response = self._failure(request, path, wants_json, 500, text)
        response.headers.update({"cache-control": "no-store", **HEADERS})
        return response

    async def _static(self, request: Request, path: str) -> Response:
        self._console.gate.check_host(request.headers.get("host", ""))
        version, _, name = path.removeprefix("/static/").partition("/")
        request.scope["path_params"] = {"version": version, "name": name}
        response = await self._assets.serve(request)
        response.headers.update(HEADERS)
        return response

    async def _respond(self, request: Request, path: str, wants_json: bool) -> Response:
        gate = self._console.gate
        gate.check_host(request.headers.get("host", ""))
        gate.check_embedding(request.headers)
        plain = path.removesuffix(".json") if wants_json else path
        raw_segments = [each for each in plain.split("/") if each]
        handler, variable = find_page(request.method, raw_segments)
        form = Form()
        if request.method == "POST":
            gate.check_origin(request.headers)
            form = await read_form(request, most_bytes=_LARGEST_FORM, most_fields=_MOST_FIELDS)
            gate.check_token(form.value("token"))
        asked = PageRequest(
            path=plain,
            segments=tuple(decode_segment(each) for each in variable),
            parameters=dict(request.query_params),
            form=form,
        )

        def run() -> Response:
            with page_of(asked.path):
                found = handler(self._console, asked)
                if isinstance(found, Redirect):
                    return _redirect(found, as_json=wants_json)
                if wants_json:
                    return JSONResponse(found.data, found.status)
                return self._page(request, found, asked)

        return await run_in_threadpool(run)

    def _page(self, request: Request, view: View, asked: PageRequest) -> Response:
        theme = request.cookies.get("theme", "")
        return self._renderer.respond(view, asked, theme if theme in ("light", "dark") else "")

    def _failure(self, request: Request, path: str, wants_json: bool, status: int, text: str) -> Response:
        if wants_json:
            return JSONResponse({"error": text, "status": status}, status)
        view = View(
            template="error.html",
            title=_TITLES.get(status, "That did not work"),
            data={"status": status, "text": text},
            status=status,
        )
        asked = PageRequest(path=path, segments=(), parameters={})
        return self._page(request, view, asked)


async def _live(receive: Receive, send: Send) -> None:
    """Answer the server's start and end; the console prepares nothing."""
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


_TITLES = {
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed",
    421: "Another host name",
}


def _status_of(error: SolotableError) -> int:
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, DataError | DeclarationError):
        return 400
    return error.status if isinstance(error, ServiceError) else 502


def _redirect(found: Redirect, *, as_json: bool) -> Response:
    path, mark, query = found.path.partition("?")
    response = RedirectResponse(f"{path}.json{mark}{query}" if as_json else found.path, 303)
    if found.cookie is not None:
        name, value = found.cookie
        response.set_cookie(name, value, max_age=_YEAR, samesite="strict", httponly=True, path="/")
    return response
