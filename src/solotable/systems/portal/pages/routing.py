"""`PAGES`: every page with the least role that opens it, and `add_pages`."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.routing import Route

from solotable.pages.assets import Assets
from solotable.systems.portal.roles import Role

from . import account, analytics, content, editing, inbox, library, people, subscriptions
from .browser.visits import Handler, guarded

_CONTENT = "/content/{content_id}"
_PERSON = "/people/{user_id}"


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page or a form of one, and the least role that opens it."""

    method: str
    path: str
    handler: Handler
    least: Role = "Viewer"
    #: False where the handler reads an upload itself.
    reads_form: bool = True


PAGES: tuple[PageRoute, ...] = (
    PageRoute("GET", "/", library.show_library),
    PageRoute("GET", "/content/new", editing.show_new, "Contributor"),
    PageRoute("POST", "/content/new", editing.create, "Contributor"),
    PageRoute("GET", _CONTENT, content.show_content),
    PageRoute("GET", f"{_CONTENT}/edit", editing.show_edit, "Contributor"),
    PageRoute("POST", f"{_CONTENT}/edit", editing.save, "Contributor"),
    PageRoute("GET", f"{_CONTENT}/file", content.download_file),
    PageRoute("POST", f"{_CONTENT}/file", content.attach_file, "Contributor", reads_form=False),
    PageRoute("POST", f"{_CONTENT}/approve", content.change_status("approve"), "Approver"),
    PageRoute("POST", f"{_CONTENT}/deprecate", content.change_status("deprecate"), "Approver"),
    PageRoute("POST", f"{_CONTENT}/expire", content.change_status("expire"), "Approver"),
    PageRoute("POST", f"{_CONTENT}/reopen", content.change_status("reopen"), "Admin"),
    PageRoute("GET", f"{_CONTENT}/delete", content.ask_to_delete, "Admin"),
    PageRoute("POST", f"{_CONTENT}/delete", content.delete_content, "Admin"),
    PageRoute("GET", "/inbox", inbox.show_inbox),
    PageRoute("GET", "/inbox/stream", inbox.stream_inbox),
    PageRoute("POST", "/inbox/read", inbox.mark_all_read),
    PageRoute("POST", "/inbox/{notification_id}/read", inbox.mark_read),
    PageRoute("GET", "/subscriptions", subscriptions.show_subscriptions),
    PageRoute("POST", "/subscriptions", subscriptions.follow),
    PageRoute("POST", "/subscriptions/{subscription_id}/stop", subscriptions.stop),
    PageRoute("POST", "/subscriptions/{subscription_id}/restore", subscriptions.restore),
    PageRoute("GET", "/analytics", analytics.show_analytics, "Admin"),
    PageRoute("GET", "/people", people.show_people, "Admin"),
    PageRoute("POST", "/people", people.invite, "Admin"),
    PageRoute("POST", f"{_PERSON}/role", people.change_role, "Admin"),
    PageRoute("POST", f"{_PERSON}/disable", people.disable, "Admin"),
    PageRoute("POST", f"{_PERSON}/enable", people.enable, "Admin"),
    PageRoute("GET", "/account", account.show_account),
    PageRoute("POST", "/sign-out", account.sign_out),
)

_OPEN = (
    ("GET", "/sign-in", account.show_sign_in),
    ("POST", "/sign-in", account.sign_in),
    ("GET", "/invitations/{link}", account.show_invitation),
    ("POST", "/invitations/{link}", account.accept_invitation),
)


def add_pages(app: FastAPI, assets: Assets) -> None:
    """Add the pages and their files to an app; they are not part of its OpenAPI document."""
    for page in PAGES:
        endpoint = guarded(page.handler, page.least, reads_form=page.reads_form)
        app.router.routes.append(Route(page.path, endpoint, methods=[page.method], include_in_schema=False))
    for method, path, handler in (*_OPEN, ("GET", assets.path, assets.serve)):
        app.router.routes.append(Route(path, handler, methods=[method], include_in_schema=False))
