"""`/subscriptions`: what a user follows, as sentences; stop with one press, and undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.responses import Response

from solotable.errors import NotFound
from solotable.pages.forms import FieldError, Form, errors_of
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.errors import TooMany
from solotable.systems.portal.search.port import SearchUnavailable
from solotable.systems.portal.search.records import SearchQuery, Visibility
from solotable.systems.portal.search.service import Search
from solotable.systems.portal.services.drafts import SubscriptionDraft
from solotable.systems.portal.services.subscriptions import Subscriptions

from .browser.visits import Visit
from .library import seal_of
from .views.subscriptions import (
    SubscriptionsPage,
    SubscriptionView,
    matches_text,
    options,
    plain_sentence,
    sentence,
    tag_boxes,
)

_PAGE = 20
_APPROVED = Visibility(statuses=frozenset({"Approved"}))
_LABELS = {"product_suite": "Product suite", "product_concept": "Concept", "tags": "Tags"}


async def show_subscriptions(visit: Visit) -> Response:
    """Show the subscriptions and an empty form."""
    form = Form.of(product_suite=visit.query("suite"), product_concept=visit.query("concept"), more_tags="")
    return await _show(visit, form, done=await _done(visit))


async def follow(visit: Visit) -> Response:
    """Create a subscription, or count what it would match."""
    form = visit.form
    typed = [each.strip() for each in form.value("more_tags").split(",")]
    tags = [*form.values("tags"), *(each for each in typed if each)]
    given = {name: form.value(name) or None for name in ("product_suite", "product_concept")}
    try:
        draft = SubscriptionDraft.model_validate({**given, "tags": tags})
        if form.value("preview"):
            count = await _count(visit, draft.product_suite, draft.product_concept, draft.tags)
            return await _show(visit, form, preview=matches_text(count), chosen=draft.tags)
        created = await Subscriptions(visit.db).create(visit.caller, draft)
    except ValidationError as error:
        return await _show(visit, form.with_errors(errors_of(error, _LABELS)), status=422, chosen=tags)
    except InvalidInput as error:
        return await _show(visit, form.with_errors([FieldError("", str(error))]), status=422, chosen=tags)
    except TooMany as error:
        return await _show(visit, form.with_errors([FieldError("", error.message)]), status=409, chosen=tags)
    return see(f"/subscriptions?followed={created.subscription_id}")


async def stop(visit: Visit) -> Response:
    """Stop a subscription."""
    subscription_id = visit.request.path_params["subscription_id"]
    await Subscriptions(visit.db).delete(visit.caller, subscription_id)
    return see(f"/subscriptions?stopped={subscription_id}")


async def restore(visit: Visit) -> Response:
    """Undo the end of a subscription."""
    subscription_id = visit.request.path_params["subscription_id"]
    await Subscriptions(visit.db).restore(visit.caller, subscription_id)
    return see(f"/subscriptions?followed={subscription_id}")


async def _done(visit: Visit) -> Done | None:
    """Return the message after a form."""
    if visit.query("followed"):
        try:
            found = await Subscriptions(visit.db).get(visit.caller, visit.query("followed"))
        except NotFound:
            return None
        return Done(title="Saved.", text=f"You now follow: {plain_sentence(found)}.")
    if visit.query("stopped"):
        stopped = urlencode({"": visit.query("stopped")})[1:]
        return Done(
            title="Stopped.", text="You hear no more of it.", undo=f"/subscriptions/{stopped}/restore"
        )
    return None


async def _show(
    visit: Visit,
    form: Form,
    *,
    status: int = 200,
    preview: str = "",
    chosen: Sequence[str] = (),
    done: Done | None = None,
) -> Response:
    cursor = seal_of(visit).open(
        visit.request.query_params.get("cursor"), user_id=visit.caller.user_id, list_name="subscriptions"
    )
    page = await Subscriptions(visit.db).list(visit.caller, limit=_PAGE, cursor=cursor)
    following = seal_of(visit).seal(page.cursor, user_id=visit.caller.user_id, list_name="subscriptions")
    facets = await _facets(visit)
    view = SubscriptionsPage(
        items=tuple([await _view(visit, each) for each in page.items]),
        suites=options(facets.get("suite", {}), form.value("product_suite"), "Every suite"),
        concepts=options(facets.get("concept", {}), form.value("product_concept"), "Every concept"),
        tags=tag_boxes(facets.get("tags", {}), chosen),
        preview=preview,
        more_url="" if following is None else f"/subscriptions?{urlencode({'cursor': following})}",
    )
    return await visit.page("subscriptions.html", status=status, page=view, form=form, done=done)


async def _view(visit: Visit, each: Subscription) -> SubscriptionView:
    count = await _count(visit, each.product_suite, each.product_concept, each.tags)
    return SubscriptionView(
        id=each.subscription_id,
        sentence=sentence(each.product_suite, each.product_concept, each.tags),
        matches=matches_text(count),
    )


async def _count(visit: Visit, suite: str | None, concept: str | None, tags: Sequence[str]) -> int | None:
    """Return how many approved items match, from the search index; None if it cannot say."""
    query = SearchQuery(
        visible=_APPROVED,
        suite=(suite,) if suite and suite != "*" else (),
        concept=(concept,) if concept and concept != "*" else (),
        any_tags=tuple(tags),
    )
    try:
        return (await cast(Search, visit.state.search).page(query, limit=1)).total
    except SearchUnavailable:
        return None


async def _facets(visit: Visit) -> Mapping[str, Mapping[str, Any]]:
    """Return the products and tags of approved content; empty while the index is unavailable."""
    try:
        return (await cast(Search, visit.state.search).page(SearchQuery(visible=_APPROVED), limit=1)).facets
    except SearchUnavailable:
        return {}
