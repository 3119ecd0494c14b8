"""Rules of tenants, images and documents, forth and back; bytes stay in their storage."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from solotable import Entity
from solotable.migrations.mapping import Mapping as Rules
from solotable.migrations.mapping import Snapshot, stable_id
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.entities.files import Document, Image

from .old_values import format_time, keep, old_values, sync_of, times_of, without_none

LATEST = "LATEST"
#: The version of a document whose newest item does not name one: behind every version that it has.
_UNKNOWN_VERSION = 1000
_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
}


def add_file_rules(mapping: Rules) -> None:
    """Add the rules of tenants, images and documents, and their inverses."""
    mapping.rule("Tenants")(_tenant)
    mapping.inverse("Tenants", Tenant)(_old_tenant)
    mapping.rule("ImageMetadata")(_image)
    mapping.inverse("ImageMetadata", Image)(_old_image)
    mapping.rule("DocumentRecord")(_document)
    mapping.inverse("DocumentRecord", Document, snapshots=True)(_old_document)


def _tenant(item: dict[str, Any]) -> Iterator[Entity]:
    yield Tenant(
        id=item["id"],
        name=item.get("name") or item["id"],
        version=int(item.get("version") or 1),
        **times_of(item),
    )


def _old_tenant(tenant: Tenant) -> dict[str, Any]:
    return without_none(
        {
            "id": tenant.id,
            "name": tenant.name,
            "created": format_time(tenant.created),
            "updated": format_time(tenant.updated),
            "version": tenant.version,
        }
    )


def _file(item: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the fields of a file that its path implies."""
    where = PurePosixPath(path)
    return {
        "name": item.get("name") or where.name or "Untitled",
        "mime": item.get("mime") or _TYPES.get(where.suffix.lower(), "application/octet-stream"),
        "size": int(item.get("size") or 0),
    }


def _image(item: dict[str, Any]) -> Iterator[Entity]:
    times, path = times_of(item), str(item.get("path") or "")
    image = Image(
        tenant_id=item["tenant_id"],
        image_id=item["id"],
        # The old table does not know the bytes, and two of its rows may have the same photo. The digest of
        # the id is equal to that of no photo, so an upload of the same photo is a new image.
        sha256=hashlib.sha256(f"migrated image {item['tenant_id']} {item['id']}".encode()).hexdigest(),
        caption=item.get("caption") or "",
        status="stored",
        version=int(item.get("version") or 1),
        **_file(item, path),
        **times,
        **sync_of(item, times["updated"]),
    )
    keep(image, {"old_path": path or None, "old_sha256": item.get("sha256")})
    yield image


def _old_image(image: Image) -> dict[str, Any]:
    kept = old_values(image)
    return without_none(
        {
            "id": image.image_id,
            "tenant_id": image.tenant_id,
            "sync_key": f"{image.tenant_id}#{image.sync_status}",
            "sync_error": image.sync_error,
            "path": kept.get("old_path") or image.storage_key,
            "name": image.name,
            "mime": image.mime,
            "size": image.size,
            "caption": image.caption,
            "sha256": kept.get("old_sha256"),
            "created": format_time(image.created),
            "updated": format_time(image.updated),
            "version": image.version,
        }
    )


def _document(item: dict[str, Any]) -> Iterator[Entity | Snapshot]:
    tenant_id, _, document_id = str(item["PK"]).partition("#")
    label, times = str(item["SK"]), times_of(item)
    path = str(item.get("path") or "")
    is_latest = label == LATEST
    number = int(item.get("version") or _UNKNOWN_VERSION) if is_latest else int(label.lstrip("vV"))
    document = Document(
        tenant_id=tenant_id,
        document_id=document_id,
        owner=item.get("owner") or "unknown",
        body_id=stable_id("DocumentRecord", tenant_id, document_id, label, path),
        sha256=item.get("sha256") or hashlib.sha256(path.encode()).hexdigest(),
        # The newest item is a version behind all others, so that its snapshot replaces none of them.
        version=number + 1 if is_latest else number,
        **_file(item, path),
        **times,
    )
    keep(document, {"old_path": path or None})
    yield document if is_latest else Snapshot(document)


def _old_document(found: Document | Snapshot) -> dict[str, Any]:
    document = found.entity if isinstance(found, Snapshot) else found
    assert isinstance(document, Document)
    number = document.version if isinstance(found, Snapshot) else document.version - 1
    return without_none(
        {
            "PK": f"{document.tenant_id}#{document.document_id}",
            "SK": f"v{number}" if isinstance(found, Snapshot) else LATEST,
            "tenant_id": document.tenant_id,
            "document_id": document.document_id,
            "owner": document.owner,
            "name": document.name,
            "mime": document.mime,
            "size": document.size,
            "sha256": document.sha256,
            "path": old_values(document).get("old_path") or document.storage_key,
            "version": None if isinstance(found, Snapshot) else number,
            "created": format_time(document.created),
            "updated": format_time(document.updated),
        }
    )
