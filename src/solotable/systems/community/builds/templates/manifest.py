"""Templates as records: those in this package, and custom ones from the manifest that a user sends.

A manifest is data: the layout of a shipped template under another name, with other defaults and with fields
that the site must give. It holds no code and no HTML.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

from solotable.systems.errors import InvalidInput
from solotable.systems.formats.json_sizes import check_json_size

from .json_schema import check_schema, validate, with_defaults

LAYOUTS: Final = ("blog", "newsletter", "project")
#: A config is a few settings and short texts; posts are items of the table (C2.11).
MAX_CONFIG_BYTES = 64 * 1024
_MOST_ERRORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteTemplate:
    """A template: which layout it has, and which config it takes."""

    name: str
    version: str
    title: str
    #: The shipped template whose pages it uses; its own name if it is shipped.
    layout: str
    schema: dict[str, Any]
    description: str = ""
    content_types: tuple[str, ...] = ("post",)
    #: Config that a custom template sets, unless the site sets it.
    defaults: dict[str, Any] = field(default_factory=dict)


def template_files() -> Traversable:
    """Return the folder with the files of the shipped templates."""
    return resources.files(__package__) / "files"


@cache
def shipped_templates() -> dict[str, SiteTemplate]:
    """Return the templates of this package by name."""
    folder = template_files()
    common = json.loads((folder / "common.json").read_text(encoding="utf-8"))
    found: dict[str, SiteTemplate] = {}
    for name in LAYOUTS:
        manifest = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        schema = manifest["schema"]
        manifest["schema"] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": manifest["title"],
            **schema,
            "properties": common | schema["properties"],
            "additionalProperties": False,
        }
        manifest["content_types"] = tuple(manifest["content_types"])
        found[name] = SiteTemplate(layout=name, **manifest)
    return found


def checked_config(template: SiteTemplate, config: Any) -> dict[str, Any]:
    """Return a config with all defaults, or raise InvalidInput with what is wrong and where.

    The size is checked first, so a config of 10 MB costs no validation.
    """
    try:
        check_json_size(MAX_CONFIG_BYTES)(config)
    except ValueError as error:
        raise InvalidInput(f"config: {error}.") from None
    if not isinstance(config, dict):
        raise InvalidInput("config: must be of the type object.")
    if "posts" in config:
        raise InvalidInput("config.posts: posts are not part of the config; create each one as content.")
    merged = template.defaults | config
    errors = list(_first(validate(merged, template.schema)))
    if errors:
        raise InvalidInput(" ".join(errors))
    filled: dict[str, Any] = with_defaults(merged, template.schema)
    return filled


def check_template_schema(template: SiteTemplate) -> list[str]:
    """Return what is wrong with the schema and the defaults of a template."""
    errors = list(_first(check_schema(template.schema)))
    if errors:
        return errors
    required = template.schema.get("properties", {}).get("custom_fields", {}).get("required", [])
    # Fields that each site must give are not part of the defaults.
    relaxed = deepcopy(template.schema)
    if required:
        relaxed["properties"]["custom_fields"].pop("required")
        relaxed.pop("required", None)
    return [f"defaults: {each}" for each in _first(validate(template.defaults, relaxed))]


def _first(errors: Iterator[str]) -> Iterator[str]:
    for _ in range(_MOST_ERRORS):
        if (found := next(errors, None)) is None:
            return
        yield found
