"""`/api/templates`: templates of sites, and the analysis of custom ones."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Depends

from solotable.errors import NotFound
from solotable.systems.community.builds.render.content import PostContent, SiteContent
from solotable.systems.community.builds.render.site_files import render_site
from solotable.systems.community.builds.templates.manifest import (
    SiteTemplate,
    checked_config,
    shipped_templates,
)
from solotable.systems.community.entities.builds import CustomTemplate
from solotable.systems.openapi_examples import with_example
from solotable.systems.routes import PUBLIC, JsonRoute

from .requests.access import allow
from .requests.dependencies import CallDep, PublicCallDep, TemplatePath
from .requests.rate_limits import limit_address
from .schemas.bodies import CustomTemplateView, TemplateManifest, TemplatePreview, TemplateView
from .sites import builds_of

API = "/api/templates"
router = APIRouter(
    prefix=API, tags=["templates"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)

_TEMPLATE = {"template_id": "blog", "version": "1.0.0", "title": "Blog", "layout": "blog"}
#: The posts of a preview: title, text, day in November 2026.
_SAMPLES = (
    ("The heron is back", "It stood on the lock gate at seven, as if it had never been away.", 13),
    ("Ice on the lock", "Thin, grey, and gone by noon.", 9),
    ("A bench for the towpath", "Three of us carried it. *It is level now.*", 2),
)


@router.get("", **with_example([_TEMPLATE]), **PUBLIC)
async def list_templates() -> list[TemplateView]:
    """List the templates that every user may use."""
    return [TemplateView.of(name, each) for name, each in shipped_templates().items()]


@router.post("/custom", status_code=202, **allow("user"))
async def submit_template(body: TemplateManifest, call: CallDep) -> CustomTemplateView:
    """Give a manifest of a custom template; a worker analyses it. Nothing is fetched from the network."""
    stored = await builds_of(call).submit_template(call.did, body.manifest)
    call.response.headers["location"] = f"{API}/custom/{stored.template_id}"
    return CustomTemplateView.model_validate(stored, from_attributes=True)


@router.get("/custom/{template_id}", **allow("owner"))
async def get_custom_template(template_id: TemplatePath, call: CallDep) -> CustomTemplateView:
    """Return where the analysis of a custom template of the caller stands."""
    found = await call.db.require(CustomTemplate, did=call.did, template_id=template_id, consistent=True)
    return CustomTemplateView.model_validate(found, from_attributes=True)


@router.get("/{template_id}", **PUBLIC)
async def get_template(template_id: TemplatePath, call: PublicCallDep) -> TemplateView:
    """Return a template: one of all users, or one of the caller that is ready."""
    return TemplateView.of(template_id, await _find(call, template_id))


@router.get("/{template_id}/schema", **with_example({"type": "object"}), **PUBLIC)
async def get_schema(template_id: TemplatePath, call: PublicCallDep) -> dict[str, Any]:
    """Return the JSON Schema of a site's config."""
    return (await _find(call, template_id)).schema


@router.get("/{template_id}/content-types", **with_example(["post"]), **PUBLIC)
async def get_content_types(template_id: TemplatePath, call: PublicCallDep) -> list[str]:
    """Return which content the template shows."""
    return list((await _find(call, template_id)).content_types)


@router.get("/{template_id}/preview", **PUBLIC)
async def preview_template(template_id: TemplatePath, call: PublicCallDep) -> TemplatePreview:
    """Return a site of a shipped template with sample posts."""
    if template_id not in shipped_templates():
        raise NotFound(f"Template not found: template_id={template_id!r}.")
    files = _render_sample(template_id)
    html = files["index.html"].decode()
    return TemplatePreview(template_id=template_id, files=sorted(files), html=html)


async def _find(call: PublicCallDep, template_id: str) -> SiteTemplate:
    if template_id in shipped_templates() or call.caller.did is None:
        found = shipped_templates().get(template_id)
        if found is None:
            raise NotFound(f"Template not found: template_id={template_id!r}.")
        return found
    return await builds_of(call).template(call.caller.did, template_id)


@lru_cache(maxsize=8)
def _render_sample(template_id: str) -> dict[str, bytes]:
    template = shipped_templates()[template_id]
    site = SiteContent(
        title="Notes from number nine",
        layout=template.layout,
        base_url="https://sample.example/",
        config=checked_config(template, {"author": "Wanda Kerr"}),
    )
    posts = [
        PostContent(
            rkey=f"sample{number}",
            name=f"sample-{number}",
            title=title,
            body=body,
            published_at=datetime(2026, 11, day, 9, tzinfo=UTC),
        )
        for number, (title, body, day) in enumerate(_SAMPLES)
    ]
    return {file.path: file.data for file in render_site(site, posts, len(posts))}
