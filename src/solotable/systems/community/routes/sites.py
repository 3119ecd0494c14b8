"""`/api/sites`: sites of the caller, their content, and their builds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from solotable.errors import NotFound
from solotable.systems.community.builds.requests import RECENT_BUILDS, Builds
from solotable.systems.community.builds.templates.manifest import SiteTemplate, checked_config
from solotable.systems.community.entities.builds import CustomTemplate
from solotable.systems.community.entities.sites import Post, PostSummary, Site
from solotable.systems.community.services.drafts import PostDraft, PostPatch, SiteDraft, SitePatch
from solotable.systems.community.services.posts import Posts
from solotable.systems.community.services.sites import Sites
from solotable.systems.errors import InvalidInput
from solotable.systems.openapi_examples import with_example
from solotable.systems.routes import ExpectedVersion, JsonRoute, set_etag
from solotable.web import Page

from .requests.access import allow
from .requests.dependencies import Call, CallDep, JobPath, PagingDep, RecordPath, SitePath, page_of
from .requests.rate_limits import limit_address
from .schemas.bodies import BuildView, LogLine, Prefill, SiteDocument

API = "/api/sites"
router = APIRouter(prefix=API, tags=["sites"], route_class=JsonRoute, dependencies=[Depends(limit_address)])

_BUILD = {"job_id": "01JD0QK7V3M8Z6X2T9R4C5B1AE", "status": "completed", "trigger": "manual"}
_LINE = {"number": 10000, "level": "info", "stage": "fetch", "text": "15 posts"}
_Limit = Annotated[int, Query(ge=1, le=100, description="The largest number of builds.")]


def _sites(call: Call) -> Sites:
    return Sites(call.db, now=call.settings.now)


def _posts(call: Call) -> Posts:
    return Posts(call.db, now=call.settings.now)


def builds_of(call: Call) -> Builds:
    """Return the builds, with the hosts that templates may name."""
    hosts = call.settings.builds.template_hosts
    return Builds(call.db, now=call.settings.now, template_hosts=hosts)


async def find_template(call: Call, template_id: str) -> SiteTemplate:
    """Return a template that the caller may use, or raise InvalidInput."""
    try:
        return await builds_of(call).template(call.did, template_id)
    except NotFound:
        known = await call.db.get(CustomTemplate, did=call.did, template_id=template_id)
        state = "does not exist" if known is None else f"is not ready: {known.status}"
        raise InvalidInput(f"template: {state}; choose another one.") from None


@router.get("", **allow("user"))
async def list_sites(call: CallDep, paging: PagingDep) -> Page[Site]:
    """List the caller's sites."""
    page = await _sites(call).list(call.caller, limit=paging.limit, cursor=paging.cursor("sites"))
    return page_of(page, paging.seal_next(page.cursor, "sites"))


@router.post("", status_code=201, **allow("user"))
async def create_site(draft: SiteDraft, call: CallDep) -> Site:
    """Create a site. The schema of its template checks the config; 409 if the subdomain is taken."""
    checked_config(await find_template(call, draft.template), draft.config)
    created = await _sites(call).create(call.caller, draft)
    call.response.headers["location"] = f"{API}/{created.site_id}"
    return set_etag(call.response, created)


@router.get("/{site_id}", **allow("owner"))
async def get_site(site_id: SitePath, call: CallDep) -> Site:
    """Return a site of the caller; 404 for a site of another user."""
    return set_etag(call.response, await _sites(call).get(call.caller, site_id))


@router.put("/{site_id}", **allow("owner"))
async def update_site(site_id: SitePath, patch: SitePatch, call: CallDep, version: ExpectedVersion) -> Site:
    """Change the given fields; readers see them after the next build."""
    given = patch.given()
    if "config" in given or "template" in given:
        stored = await _sites(call).get(call.caller, site_id)
        template = await find_template(call, given.get("template", stored.template))
        checked_config(template, given.get("config", stored.config))
    return set_etag(call.response, await _sites(call).update(call.caller, site_id, patch, version=version))


@router.delete("/{site_id}", status_code=204, **allow("owner"))
async def delete_site(site_id: SitePath, call: CallDep) -> None:
    """Delete a site; it can be restored for 7 days."""
    await _sites(call).delete(call.caller, site_id)


@router.post("/{site_id}/restore", **allow("owner"))
async def restore_site(site_id: SitePath, call: CallDep) -> Site:
    """Undo the deletion of a site."""
    return set_etag(call.response, await _sites(call).restore(call.caller, site_id))


@router.get("/{site_id}/export", **allow("owner"))
async def export_site(site_id: SitePath, call: CallDep) -> SiteDocument:
    """Return a site and its posts as JSON."""
    return SiteDocument.model_validate(await _sites(call).export(call.caller, site_id))


@router.get("/{site_id}/prefill", **allow("owner"))
async def prefill_site(site_id: SitePath, call: CallDep) -> Prefill:
    """Return a config for the site's template: what is stored, the caller's profile, and the defaults."""
    site = await _sites(call).get(call.caller, site_id)
    template = await find_template(call, site.template)
    user, fields = call.client.user, template.schema["properties"]
    known = {} if user is None else {"author": user.display_name, "description": user.bio[:300]}
    fitting = {name: value for name, value in known.items() if value and name in fields}
    return Prefill(template=site.template, config=checked_config(template, fitting | site.config))


@router.post("/{site_id}/build", status_code=202, **allow("owner"))
async def build_site(site_id: SitePath, call: CallDep) -> BuildView:
    """Ask for a build; a worker does it. `Location` is where to follow it."""
    await _sites(call).get(call.caller, site_id, consistent=True)
    async with call.limited("builds"):
        build = await builds_of(call).request(site_id)
    call.response.headers["location"] = f"{API}/{site_id}/build/{build.job_id}"
    return BuildView.of(build)


@router.get("/{site_id}/builds", **with_example([_BUILD]), **allow("owner"))
async def list_builds(site_id: SitePath, call: CallDep, limit: _Limit = RECENT_BUILDS) -> list[BuildView]:
    """List the last builds of a site, newest first."""
    await _sites(call).get(call.caller, site_id)
    return [BuildView.of(each) for each in await builds_of(call).recent(site_id, limit=limit)]


@router.get("/{site_id}/build/{job_id}", **allow("owner"))
async def get_build(site_id: SitePath, job_id: JobPath, call: CallDep) -> BuildView:
    """Return a build."""
    await _sites(call).get(call.caller, site_id)
    return BuildView.of(await builds_of(call).get(site_id, job_id))


@router.delete("/{site_id}/build/{job_id}", status_code=202, **allow("owner"))
async def cancel_build(site_id: SitePath, job_id: JobPath, call: CallDep) -> BuildView:
    """Cancel a build; one that runs stops at its next step. 409 if it has ended."""
    await _sites(call).get(call.caller, site_id)
    return BuildView.of(await builds_of(call).cancel(site_id, job_id))


@router.get("/{site_id}/build/{job_id}/log", **with_example([_LINE]), **allow("owner"))
async def get_build_log(site_id: SitePath, job_id: JobPath, call: CallDep) -> list[LogLine]:
    """Return the log of a build, which is kept for 90 days."""
    await _sites(call).get(call.caller, site_id)
    builds = builds_of(call)
    await builds.get(site_id, job_id)
    lines = await builds.log(site_id, job_id)
    return [LogLine.model_validate(each, from_attributes=True) for each in lines]


@router.get("/{site_id}/content", **allow("owner"))
async def list_content(site_id: SitePath, call: CallDep, paging: PagingDep) -> Page[PostSummary]:
    """List the posts of a site without their texts, newest first."""
    name = ("content", site_id)
    page = await _posts(call).list(call.caller, site_id, limit=paging.limit, cursor=paging.cursor(*name))
    return page_of(page, paging.seal_next(page.cursor, *name))


@router.post("/{site_id}/content", status_code=201, **allow("owner"))
async def create_content(site_id: SitePath, draft: PostDraft, call: CallDep) -> Post:
    """Create a post."""
    created = await _posts(call).create(call.caller, site_id, draft)
    call.response.headers["location"] = f"{API}/{site_id}/content/{created.rkey}"
    return set_etag(call.response, created)


@router.get("/{site_id}/content/{rkey}", **allow("owner"))
async def get_content(site_id: SitePath, rkey: RecordPath, call: CallDep) -> Post:
    """Return a post with its text."""
    return set_etag(call.response, await _posts(call).get(call.caller, site_id, rkey))


@router.put("/{site_id}/content/{rkey}", **allow("owner"))
async def update_content(
    site_id: SitePath, rkey: RecordPath, patch: PostPatch, call: CallDep, version: ExpectedVersion
) -> Post:
    """Change the given fields of a post. `If-Match` names the version to change."""
    stored = await _posts(call).update(call.caller, site_id, rkey, patch, version=version)
    return set_etag(call.response, stored)


@router.delete("/{site_id}/content/{rkey}", status_code=204, **allow("owner"))
async def delete_content(site_id: SitePath, rkey: RecordPath, call: CallDep) -> None:
    """Delete a post."""
    await _posts(call).delete(call.caller, site_id, rkey)
