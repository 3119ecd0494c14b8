"""`/content/new` and `/content/{id}/edit`: the form of a draft. Typed text is never thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import ValidationError
from starlette.responses import Response

from solotable.errors import NotFound, VersionConflict
from solotable.pages.forms import FieldError, Form, errors_of
from solotable.systems.browser.dates import relative
from solotable.systems.browser.redirects import see
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.errors import IllegalTransition
from solotable.systems.portal.routes.searches import visibility_of
from solotable.systems.portal.search.port import SearchUnavailable
from solotable.systems.portal.search.records import SearchQuery
from solotable.systems.portal.search.service import Search
from solotable.systems.portal.services.access import check_editable
from solotable.systems.portal.services.contents import Contents
from solotable.systems.portal.services.drafts import ContentDraft, ContentPatch

from .browser.visits import Visit
from .views.shared import Step, content_url, steps_of

_LABELS = {
    "title": "Title",
    "summary": "Summary",
    "product_suite": "Product suite",
    "product_concept": "Concept",
    "tags": "Tags",
    "version": "Version",
    "audience_role": "For",
    "effective_date": "Valid from",
    "review_due_date": "Review by",
    "expiry_date": "Expires on",
    "expiry_policy": "When it expires",
}
_POLICIES = (
    ("", "Keep the file for admins"),
    ("soft_expire", "Keep the file for admins (chosen)"),
    ("hard_expire", "Remove the file"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPage:
    """The form of a draft."""

    title: str
    #: The page of the content; empty for new content.
    url: str
    name: str
    action: str
    revision: int
    button: str
    steps: tuple[Step, ...]
    suites: tuple[str, ...]
    concepts: tuple[str, ...]
    policies: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that another person changed."""

    label: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a form was not saved although its fields are right."""

    title: str
    text: str
    differences: tuple[Difference, ...] = ()


async def show_new(visit: Visit) -> Response:
    """Show the empty form."""
    form = Form.of(version="1.0", product_suite=visit.query("suite"), product_concept=visit.query("concept"))
    return await _show(visit, None, form)


async def create(visit: Visit) -> Response:
    """Create a draft, or show the form again."""
    try:
        draft = ContentDraft.model_validate(_input(visit.form, keep_empty=False))
        created = await Contents(visit.db).create(visit.caller, draft)
    except (ValidationError, InvalidInput) as error:
        return await _show(visit, None, visit.form.with_errors(_errors(error)), status=422)
    return see(f"{content_url(created.content_id)}?done=created")


async def show_edit(visit: Visit) -> Response:
    """Show the form of stored content."""
    content = await _content(visit)
    check_editable(visit.caller, content)
    return await _show(visit, content, Form.of(**_fields(content)))


async def save(visit: Visit) -> Response:
    """Save a draft, or show the form again with what was typed."""
    contents, content_id = Contents(visit.db), visit.request.path_params["content_id"]
    given = visit.form.value("revision")
    revision = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else 0
    try:
        patch = ContentPatch.model_validate(_input(visit.form, keep_empty=True))
        await contents.update(visit.caller, content_id, patch, revision=revision)
    except (ValidationError, InvalidInput) as error:
        form = visit.form.with_errors(_errors(error))
        return await _show(visit, await _content(visit), form, status=422, revision=revision)
    except VersionConflict:
        content = await _content(visit)
        return await _show(visit, content, visit.form, status=409, conflict=_changed(content, visit.form))
    except IllegalTransition:
        content = await _content(visit)
        conflict = Conflict(
            f"This content is {content.status} now.",
            "It was not saved, because its status changed while you were writing. Your text is still here: "
            "copy what you need, or ask an administrator to reopen it.",
        )
        return await _show(visit, content, visit.form, status=409, conflict=conflict)
    except NotFound:
        conflict = Conflict(
            "This content was deleted.",
            "It was not saved, because another person deleted it while you were writing. Your text is still "
            "here: copy what you need, or save it as new content.",
        )
        return await _show(visit, None, visit.form, status=409, conflict=conflict)
    return see(f"{content_url(content_id)}?done=saved")


async def _show(
    visit: Visit,
    content: Content | None,
    form: Form,
    *,
    status: int = 200,
    revision: int | None = None,
    conflict: Conflict | None = None,
) -> Response:
    suites, concepts = await _known_products(visit)
    url = "" if content is None else content_url(content.content_id)
    is_draft = content is None or content.status == "Draft"
    page = EditPage(
        title="New content" if content is None else "Edit draft" if is_draft else "Edit details",
        url=url,
        name="" if content is None else content.title,
        action=f"{url}/edit" if content is not None else "/content/new",
        # After a conflict the stored revision: saving once more is a decision for this text.
        revision=revision if revision is not None else 0 if content is None else content.revision,
        button="Save draft" if is_draft else "Save details",
        steps=steps_of(content, datetime.now(UTC), {}),
        suites=suites,
        concepts=concepts,
        policies=tuple(
            each for each in _POLICIES if each[0] != "soft_expire" or form.value("expiry_policy") == each[0]
        ),
    )
    return await visit.page("edit.html", status=status, page=page, form=form, conflict=conflict)


async def _content(visit: Visit) -> Content:
    return await Contents(visit.db).get(
        visit.caller, visit.request.path_params["content_id"], consistent=True
    )


async def _known_products(visit: Visit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return suites and concepts that content has, as suggestions; the form works without them."""
    try:
        found = await cast(Search, visit.state.search).page(
            SearchQuery(visible=visibility_of(visit.caller)), limit=1
        )
    except SearchUnavailable:
        return (), ()
    return tuple(sorted(found.facets.get("suite", ()))), tuple(sorted(found.facets.get("concept", ())))


def _input(form: Form, *, keep_empty: bool) -> dict[str, Any]:
    """Return the fields of a form as the services take them; an empty optional field is None."""
    found: dict[str, Any] = {}
    for name in _LABELS:
        text = form.value(name).strip()
        if name == "tags":
            found[name] = [each.strip() for each in text.split(",") if each.strip()]
        elif text or name in ("title", "summary", "version"):
            found[name] = text
        elif keep_empty:
            found[name] = None
    return found


def _fields(content: Content) -> dict[str, str]:
    found = {}
    for name in _LABELS:
        value = getattr(content, name)
        if isinstance(value, datetime):
            found[name] = value.date().isoformat()
        elif isinstance(value, list):
            found[name] = ", ".join(value)
        else:
            found[name] = value or ""
    return found


def _errors(error: ValidationError | InvalidInput) -> list[FieldError]:
    return errors_of(error, _LABELS) if isinstance(error, ValidationError) else [FieldError("", str(error))]


def _changed(content: Content, form: Form) -> Conflict:
    theirs = _fields(content)
    differences = tuple(
        Difference(label, theirs[name])
        for name, label in _LABELS.items()
        if theirs[name] != form.value(name).strip()
    )
    when = "" if content.last_updated is None else relative(content.last_updated, datetime.now(UTC)).text
    return Conflict(
        "Another person saved this content while you were writing.",
        f"They saved it {when}. Your text is still here and not saved yet. Compare it with theirs below, "
        "then save again to keep yours.",
        differences,
    )
