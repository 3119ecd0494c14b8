"""The settings that the public site shows: the details under `site`, checked when they are written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from solotable.systems.errors import InvalidInput, validate


class OpeningHours(BaseModel):
    """One line of the opening hours: days, and times."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[str, Field(min_length=1, max_length=100)]
    text: Annotated[str, Field(min_length=1, max_length=100)]


class SiteSettings(BaseModel):
    """What the theme shows of a business. All of it is public."""

    model_config = ConfigDict(extra="forbid")

    #: The colour of links and buttons, as `#rrggbb`.
    brand: Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")] | None = None
    address: Annotated[str, Field(max_length=300)] = ""
    email: Annotated[str, Field(max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    telephone: Annotated[str, Field(max_length=40, pattern=r"^\+?[0-9 ()/.-]+$")] | None = None
    hours: Annotated[list[OpeningHours], Field(max_length=14)] = []
    #: A sentence beside the contact form.
    note: Annotated[str, Field(max_length=500)] = ""


def check_site_settings(tree: Any) -> None:
    """Raise InvalidInput for details that the theme cannot show; null removes them."""
    if tree is None:
        return
    if not isinstance(tree, dict):
        raise InvalidInput('SiteSettings: send an object, such as {"brand": "#9c3f24"}.')
    validate(SiteSettings, **tree)


def site_settings_of(settings: dict[str, Any]) -> SiteSettings:
    """Return the details of a site; none if they were stored in another form."""
    try:
        return SiteSettings.model_validate(settings.get("site") or {})
    except ValidationError:
        return SiteSettings()
