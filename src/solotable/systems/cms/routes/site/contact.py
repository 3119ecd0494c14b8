"""The contact form of a site: a form post to `/contact`, without JavaScript.

Programs send JSON to the same path (`routes/admin/visitors`); the content type decides. Both check the
Origin, count by network address and e-mail address, and store the same message. A robot that fills in the
hidden field gets the same answer as a visitor, and nothing is stored.
"""

from __future__ import annotations

import json
import math
from typing import cast

from fastapi import HTTPException, Request, Response
from pydantic import ValidationError
from starlette.routing import Match, Route
from starlette.types import Scope

from solotable import AsyncStore
from solotable.pages.forms import FieldError, Form, read_form
from solotable.systems.browser.redirects import see
from solotable.systems.browser.sessions import SessionCookie
from solotable.systems.cms.entities import Content
from solotable.systems.cms.routes.admin.visitors import NewMessage
from solotable.systems.cms.routes.dependencies import get_pepper, get_visitor_store
from solotable.systems.cms.routes.rate_limits import FormLimit, SenderLimit, get_limiter
from solotable.systems.cms.services import Leads, Routes
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.cms.theme.words import Words
from solotable.systems.errors import InvalidInput
from solotable.systems.formats.email_addresses import normalise_email
from solotable.systems.http.sealing import Seal
from solotable.systems.limiter.errors import RateLimitExceeded
from solotable.web.http.middleware import limit_body
from solotable.web.tenancy.dependencies import get_host_tenant_id

from .page_html import CONTACT, private_page, site_of

SENT = "sent"
_TYPE = b"application/x-www-form-urlencoded"
_TRAP = "website"
_FIELDS = ("name", "email", "message")
_MAX_FORM_BYTES = 64 * 1024
#: Holds the address for the page after the form, sealed; an address must not be in a URL.
_COOKIE = SessionCookie("cms-sent", seconds=300)
_LIMIT = FormLimit("contact")


class FormRoute(Route):
    """A route for forms of browsers only; the API takes JSON at the same path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a form post."""
        kind = next((value for name, value in scope.get("headers", ()) if name == b"content-type"), b"")
        is_form = kind.partition(b";")[0].strip().lower() == _TYPE
        return super().matches(scope) if is_form and scope.get("method") == "POST" else (Match.NONE, {})


def contact_seal(request: Request) -> Seal:
    """Return the app's seal of the cookie after a form."""
    return cast(Seal, request.app.state.contact_seal)


async def send_message(request: Request) -> Response:
    """Store a message and redirect, or show the form again with its errors and what was typed."""
    limit_body(request, _MAX_FORM_BYTES)
    owner = await get_host_tenant_id(request)
    words = (await site_of(request, owner)).words
    store = await get_visitor_store(request, owner)
    form = await read_form(request)
    response = see(f"{CONTACT}?{SENT}=1")
    pepper = await get_pepper(request)
    try:
        # Robots count too: they send many.
        await _LIMIT(request, response, owner, await get_limiter(request), pepper)
        if form.value(_TRAP):
            return response
        message, errors = _check(form, words)
        if message is None:
            return await _show_again(request, store, form, errors, words)
        await SenderLimit(response, owner, await get_limiter(request), pepper).acquire(message.email)
    except RateLimitExceeded as error:
        minutes = max(1, math.ceil(int(error.retry_after_header) / 60))
        again = [FieldError("", words.fill("too_many", minutes=minutes))]
        refused = await _show_again(request, store, form, again, words, status=429)
        refused.headers["retry-after"] = error.retry_after_header
        return refused
    await Leads(store, pepper=pepper).message(message.email, body=message.message, name=message.name)
    _COOKIE.set(request, response, contact_seal(request).seal(json.dumps(message.email), owner))
    return response


def _check(form: Form, words: Words) -> tuple[NewMessage | None, list[FieldError]]:
    """Return the message of a form, or what is wrong with it, in the site's language."""
    advice = {
        ("name", "long"): "name_long",
        ("email", "short"): "email_wrong",
        ("email", "long"): "email_wrong",
        ("message", "short"): "message_missing",
        ("message", "long"): "message_long",
    }
    labels = {"name": "your_name", "email": "email", "message": "message"}
    wrong: dict[str, str] = {}
    found = None
    try:
        found = NewMessage(**{name: form.value(name).strip() for name in _FIELDS})
        normalise_email(found.email)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            name = str(each["loc"][0])
            size = "long" if each["type"] == "string_too_long" else "short"
            wrong.setdefault(name, advice.get((name, size), "failed"))
    except InvalidInput:
        wrong["email"] = "email_wrong"
    if not wrong:
        return found, []
    if "email" not in wrong and not _is_address(form.value("email")):
        wrong["email"] = "email_wrong"
    shown = [name for name in _FIELDS if name in wrong]
    return None, [FieldError(name, f"{words[labels[name]]}: {words[wrong[name]]}") for name in shown]


def _is_address(text: str) -> bool:
    try:
        normalise_email(text)
    except InvalidInput:
        return False
    return True


async def _show_again(
    request: Request,
    store: AsyncStore,
    form: Form,
    errors: list[FieldError],
    words: Words,
    *,
    status: int = 422,
) -> Response:
    page = await _contact_page(store)
    shown = Form(form.fields, tuple(errors), words["not_sent"])
    return await private_page(request, page, store, status=status, form=shown)


async def show_sent(request: Request, store: AsyncStore, page: Content) -> Response:
    """Show that a message was sent, and the address to which the answer will go."""
    words = (await site_of(request, page.tenant_id)).words
    sealed = _COOKIE.read(request)
    opened = None if sealed is None else contact_seal(request).open(sealed, tenant_of(store))
    text = words["sent_text"] if opened is None else words.fill("sent_to", email=json.loads(opened))
    response = await private_page(request, page, store, sent=text)
    if sealed is not None:
        _COOKIE.clear(request, response)
    return response


async def _contact_page(store: AsyncStore) -> Content:
    found = await Routes(store).resolve(CONTACT, preview=True)
    if not isinstance(found, Content):
        raise HTTPException(404, "No page has this path.")
    return found
