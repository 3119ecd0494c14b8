"""`/sites`: the user's sites, a form for a new one, and their builds."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from starlette.responses import Response

from solotable.pages.forms import FieldError, Form, errors_of
from solotable.systems.browser.redirects import see
from solotable.systems.community.builds.requests import Builds
from solotable.systems.community.builds.templates.manifest import shipped_templates
from solotable.systems.community.entities.sites import Site
from solotable.systems.community.errors import NameTaken
from solotable.systems.community.routes.requests.rate_limits import user_subject
from solotable.systems.community.services.drafts import SiteDraft
from solotable.systems.community.services.memberships import Memberships
from solotable.systems.community.services.sites import MAX_SITES, Sites
from solotable.systems.errors import InvalidInput
from solotable.systems.http.rate_limits import taken

from .views.build import build_page
from .views.neighbourhood import SiteRow, site_row
from .visits import Visit

_LABELS = {
    "title": "Title",
    "subdomain": "Address",
    "template": "Template",
    "neighbourhood_id": "Neighbourhood",
}
#: A page of a build that is not over loads itself again.
_RELOAD = {"refresh": "3"}


@dataclass(frozen=True, slots=True)
class OwnSite:
    """A site in the list of its owner."""

    row: SiteRow
    path: str


@dataclass(frozen=True, slots=True)
class SitesPage:
    """The sites of a user, and the choices of the form."""

    sites: tuple[OwnSite, ...]
    templates: tuple[tuple[str, str], ...]
    neighbourhoods: tuple[tuple[str, str], ...]


async def show_sites(visit: Visit) -> Response:
    """Show the sites of the user."""
    return await _respond(visit, Form())


async def create_site(visit: Visit) -> Response:
    """Create a site and its first build, or show the form again."""
    form = visit.form
    try:
        draft = SiteDraft(
            title=form.value("title"),
            template=form.value("template"),
            subdomain=form.value("subdomain") or None,
            neighbourhood_id=form.value("neighbourhood_id") or None,
        )
        if draft.template not in shipped_templates():
            raise InvalidInput("Template: choose one of the list.")
        site = await Sites(visit.db, now=visit.settings.now).create(visit.caller, draft)
    except ValidationError as error:
        return await _respond(visit, form.with_errors(errors_of(error, _LABELS)), status=422)
    except InvalidInput as error:
        return await _respond(visit, form.with_errors([FieldError("", str(error))]), status=422)
    except NameTaken as error:
        wrong = FieldError("subdomain", str(error))
        return await _respond(visit, form.with_errors([wrong]), status=409)
    return await _build(visit, site)


async def show_site(visit: Visit) -> Response:
    """Lead to the newest build of a site, or to the list if it has none."""
    site = await _site(visit)
    latest = await _builds(visit).recent(site.site_id, limit=1)
    return see(f"/sites/{site.site_id}/builds/{latest[0].job_id}" if latest else "/sites")


async def build_site(visit: Visit) -> Response:
    """Ask for a build, and show it."""
    return await _build(visit, await _site(visit))


async def show_build(visit: Visit) -> Response:
    """Show a build; while it waits or runs, the page loads itself again every 3 seconds."""
    site, builds = await _site(visit), _builds(visit)
    build = await builds.get(site.site_id, visit.path_part("job_id"))
    view = build_page(
        site,
        build,
        await builds.log(site.site_id, build.job_id),
        await builds.recent(site.site_id),
        before=await builds.queue_position(build) if build.status == "pending" else 0,
        now=visit.now,
    )
    return visit.page("build.html", page=view, headers={} if view.is_over else _RELOAD)


async def cancel_build(visit: Visit) -> Response:
    """Cancel a build."""
    site = await _site(visit)
    job_id = visit.path_part("job_id")
    await _builds(visit).cancel(site.site_id, job_id)
    return see(f"/sites/{site.site_id}/builds/{job_id}")


async def _build(visit: Visit, site: Site) -> Response:
    async with taken(visit.request, "builds", user_subject(visit.did)):
        build = await _builds(visit).request(site.site_id)
    return see(f"/sites/{site.site_id}/builds/{build.job_id}")


async def _site(visit: Visit) -> Site:
    return await Sites(visit.db, now=visit.settings.now).get(
        visit.caller, visit.path_part("site_id"), consistent=True
    )


def _builds(visit: Visit) -> Builds:
    return Builds(visit.db, now=visit.settings.now, template_hosts=visit.settings.builds.template_hosts)


async def _respond(visit: Visit, form: Form, *, status: int = 200) -> Response:
    found = await Sites(visit.db, now=visit.settings.now).list(visit.caller, limit=MAX_SITES)
    memberships = Memberships(visit.db, now=visit.settings.now)
    mine = await memberships.of_user(visit.caller, visit.did, limit=100)
    page = SitesPage(
        sites=tuple(OwnSite(site_row(each, "", visit.now), f"/sites/{each.site_id}") for each in found),
        templates=tuple((name, each.title) for name, each in shipped_templates().items()),
        neighbourhoods=(
            ("", "None"),
            *((each.neighbourhood.id, each.neighbourhood.name) for each in mine),
        ),
    )
    return visit.page("sites.html", status=status, page=page, form=form)
