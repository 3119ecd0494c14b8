"""`PAGES`: every page, and `add_pages`."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.routing import Route

from solotable.pages.assets import Assets

from . import account, neighbourhoods, sites
from .visits import Handler, opened

#: The package with the templates and the static files.
PACKAGE = "solotable.systems.community.pages"
_NEIGHBOURHOOD = "/n/{slug}"
_SITE = "/sites/{site_id}"
_BUILD = f"{_SITE}/builds/{{job_id}}"


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page or a form of one."""

    method: str
    path: str
    handler: Handler
    needs_session: bool = True
    #: Whether a user who deleted their account may open it.
    for_leaving: bool = False


PAGES: tuple[PageRoute, ...] = (
    PageRoute("GET", "/", neighbourhoods.show_start, needs_session=False),
    PageRoute("GET", "/new", neighbourhoods.show_new),
    PageRoute("POST", "/new", neighbourhoods.create),
    PageRoute("GET", _NEIGHBOURHOOD, neighbourhoods.show_neighbourhood, needs_session=False),
    PageRoute("POST", f"{_NEIGHBOURHOOD}/join", neighbourhoods.join),
    PageRoute("POST", f"{_NEIGHBOURHOOD}/leave", neighbourhoods.leave),
    PageRoute("POST", f"{_NEIGHBOURHOOD}/invite", neighbourhoods.invite),
    PageRoute("POST", f"{_NEIGHBOURHOOD}/requests", neighbourhoods.answer_request),
    PageRoute("GET", "/sites", sites.show_sites),
    PageRoute("POST", "/sites", sites.create_site),
    PageRoute("GET", _SITE, sites.show_site),
    PageRoute("POST", f"{_SITE}/build", sites.build_site),
    PageRoute("GET", _BUILD, sites.show_build),
    PageRoute("POST", f"{_BUILD}/cancel", sites.cancel_build),
    PageRoute("GET", "/account", account.show_account, for_leaving=True),
    PageRoute("GET", "/account/data", account.download_data),
    PageRoute("GET", "/account/records", account.download_records),
    PageRoute("GET", "/account/delete", account.show_deletion),
    PageRoute("POST", "/account/delete", account.delete),
    PageRoute("POST", "/account/recover", account.recover, for_leaving=True),
    PageRoute("POST", "/sign-out", account.sign_out, for_leaving=True),
    PageRoute("GET", "/verify-email", account.show_verification),
    PageRoute("POST", "/verify-email", account.verify_email),
)


def add_pages(app: FastAPI, assets: Assets) -> None:
    """Add the pages and their files to an app; they are not part of its OpenAPI document."""
    for page in PAGES:
        endpoint = opened(page.handler, needs_session=page.needs_session, for_leaving=page.for_leaving)
        app.router.routes.append(Route(page.path, endpoint, methods=[page.method], include_in_schema=False))
    app.router.routes.append(Route(assets.path, assets.serve, include_in_schema=False))
