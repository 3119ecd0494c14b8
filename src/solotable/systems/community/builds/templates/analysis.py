"""Analysis of a custom template: from a user's manifest to a template, or to what is wrong with it.

Nothing is fetched. A manifest that names a source must name a host of the allow-list, which is empty by
default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from solotable.systems.formats.json_sizes import check_json_size
from solotable.systems.texts import clean_line

from .json_schema import check_schema
from .manifest import LAYOUTS, SiteTemplate, check_template_schema, shipped_templates

MAX_MANIFEST_BYTES = 64 * 1024
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
_VERSION = re.compile(r"[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}")
_TEXTS: Final = {"title": 100, "description": 300}
_KEYS: Final = frozenset({"name", "version", "layout", "fields", "defaults", "source_url", *_TEXTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What an analysis found: a template, or the reasons against it."""

    template: SiteTemplate | None = None
    findings: tuple[str, ...] = ()


def analyse(manifest: Any, *, allowed_hosts: Collection[str] = ()) -> Analysis:
    """Return the template of a manifest, or what is wrong with it.

    `fields` is a JSON Schema of the type object: the custom fields of a site. `defaults` is a config of the
    layout.
    """
    try:
        check_json_size(MAX_MANIFEST_BYTES)(manifest)
    except ValueError as error:
        return Analysis(findings=(f"manifest: {error}.",))
    findings = tuple(_check(manifest, allowed_hosts))
    if findings:
        return Analysis(findings=findings)
    template = _template(manifest)
    findings = tuple(check_template_schema(template))
    return Analysis(findings=findings) if findings else Analysis(template=template)


def _check(manifest: Any, allowed_hosts: Collection[str]) -> Iterator[str]:
    if not isinstance(manifest, dict):
        yield "manifest: is not an object."
        return
    for name in sorted(set(map(str, manifest)) - _KEYS):
        yield f"{name[:40]}: is not a name of a manifest."
    if not _matches(_NAME, manifest.get("name")):
        yield "name: must be lower-case letters, digits and hyphens, at most 50."
    elif manifest["name"] in LAYOUTS:
        yield "name: is the name of a shipped template; choose another one."
    if not _matches(_VERSION, manifest.get("version")):
        yield "version: must be three numbers, such as 1.0.0."
    if manifest.get("layout") not in LAYOUTS:
        yield f"layout: must be one of {', '.join(LAYOUTS)}."
    for name, longest in _TEXTS.items():
        text = manifest.get(name, "")
        if not isinstance(text, str) or len(text) > longest:
            yield f"{name}: must be a text of at most {longest} characters."
    if not isinstance(manifest.get("defaults", {}), dict):
        yield "defaults: is not an object."
    fields = manifest.get("fields", {"type": "object"})
    yield from list(check_schema(fields, "fields"))[:5]
    if isinstance(fields, dict) and fields.get("type") != "object":
        yield "fields.type: must be object."
    yield from _check_source(manifest.get("source_url"), allowed_hosts)


def _check_source(url: Any, allowed_hosts: Collection[str]) -> Iterator[str]:
    if url is None:
        return
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        host = None if parts is None or parts.scheme != "https" else parts.hostname
    except ValueError:
        host = None
    if host is None:
        yield "source_url: must be a URL that begins with https://."
    elif host not in allowed_hosts:
        allowed = ", ".join(sorted(allowed_hosts)) or "none"
        yield f"source_url: the host is not on the list of allowed hosts ({allowed})."


def _template(manifest: dict[str, Any]) -> SiteTemplate:
    shipped = shipped_templates()[manifest["layout"]]
    schema = deepcopy(shipped.schema)
    schema["title"] = clean_line(manifest.get("title") or manifest["name"])
    if "fields" in manifest:
        # A text that no rule bounds is bounded by the size of the config.
        fields = {"title": "Custom fields", "default": {}, **manifest["fields"]}
        if fields.get("required"):
            del fields["default"]
            schema["required"] = [*schema.get("required", []), "custom_fields"]
        schema["properties"]["custom_fields"] = fields
    return SiteTemplate(
        name=manifest["name"],
        version=manifest["version"],
        title=schema["title"],
        description=str(clean_line(manifest.get("description", ""))),
        layout=manifest["layout"],
        schema=schema,
        content_types=shipped.content_types,
        defaults=manifest.get("defaults", {}),
    )


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
