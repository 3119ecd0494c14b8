"""Publishing: an attempt stores files under its own prefix, and one transaction makes them live.

The transaction checks the worker's lease and that no newer build is live. So a worker that was late, or that
builds an older request, changes nothing that readers see. `manifest.json` is uploaded first: what a dead
worker left can be removed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from solotable import ANY, Database, Lease, exists
from solotable.errors import NotFound, TransactionFailed
from solotable.systems.community.entities.builds import Build, FilesReference, SiteFiles
from solotable.systems.community.entities.sites import Site, SiteOwner
from solotable.systems.errors import first_error
from solotable.systems.storage import Storage

MANIFEST: Final = "manifest.json"
#: How long an upload may last before its files count as left behind.
_UPLOAD_HOURS = 1
#: How often the files of a live build are looked at: a purged site has no owner.
_LIVE_HOURS = 24
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "xml": "application/xml; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}


def media_type(path: str) -> str:
    """Return the type of a file of a built site.

    >>> media_type("posts/ice.html"), media_type("feed.xml")
    ('text/html; charset=utf-8', 'application/atom+xml; charset=utf-8')
    """
    if path == "feed.xml":
        return "application/atom+xml; charset=utf-8"
    return _TYPES.get(path.rpartition(".")[2], "application/octet-stream")


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file in a manifest."""

    digest: str
    size: int


def encode_manifest(files: Mapping[str, PublishedFile]) -> bytes:
    """Return the manifest of a build."""
    listed = {path: [file.digest, file.size] for path, file in files.items()}
    return json.dumps({"files": listed}, separators=(",", ":"), sort_keys=True).encode()


def decode_manifest(data: bytes) -> dict[str, PublishedFile]:
    """Return the files of a manifest."""
    return {path: PublishedFile(*entry) for path, entry in json.loads(data)["files"].items()}


async def upload(
    storage: Storage,
    prefix: str,
    files: Mapping[str, PublishedFile],
    read: Callable[[str], bytes],
    *,
    at_once: int,
    done: Callable[[int], float],
) -> None:
    """Store the manifest, then each file.

    `done` is called between groups of files with how many are stored. It returns the seconds that are left,
    or raises to stop.
    """
    left = done(0)
    manifest = storage.put(f"{prefix}/{MANIFEST}", encode_manifest(files), mime=media_type(MANIFEST))
    await asyncio.wait_for(manifest, left)
    stored = 0
    for paths in _groups(files, at_once):
        left = done(stored)
        puts = (storage.put(f"{prefix}/{path}", read(path), mime=media_type(path)) for path in paths)
        await asyncio.wait_for(asyncio.gather(*puts), left)
        stored += len(paths)
    done(stored)


def _groups(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(paths)
    while group := list(islice(rest, size)):
        yield group


def announce_upload(db: Database, build: Build, lease: Lease, now: datetime) -> SiteFiles:
    """Store that an attempt uploads files, before the first one, so that they are removed if it dies."""
    files = SiteFiles(
        site_id=build.site_id,
        job_id=build.job_id,
        token=lease.token,
        due_at=now + timedelta(hours=_UPLOAD_HOURS),
    )
    with db.transaction() as tx:
        tx.create(files)
        tx.check_lease(lease)
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a build makes live: its files, and what its item says at the end."""

    files: SiteFiles
    now: datetime
    public_url: str
    stages: dict[str, float]
    content_count: int
    grace_seconds: float

    def of_build(self) -> dict[str, Any]:
        """Return the changes of the build."""
        return {
            "status": "completed",
            "completed_at": self.now,
            "stages": self.stages,
            "content_count": self.content_count,
        }

    def of_site(self) -> dict[str, Any]:
        """Return the changes of the site: readers see these files."""
        return {
            "live_job_id": self.files.job_id,
            "live_token": self.files.token,
            "built_at": self.now,
            "status": "published",
            "public_url": self.public_url,
        }

    def of_files(self, *, live: bool) -> dict[str, Any]:
        """Return the changes of files that readers see, or no longer see."""
        kept = timedelta(hours=_LIVE_HOURS) if live else timedelta(seconds=self.grace_seconds)
        return {"live": live, "due_at": self.now + kept}


def make_live(db: Database, lease: Lease, build: Build, publication: Publication) -> bool:
    """Show the files to readers and complete the build, in one transaction.

    Return False if a newer build is live; then the build is completed, and replaced at once. Raise LeaseLost,
    NotFound for a site that was deleted, or ConditionFailed for a build that was cancelled.
    """
    site = db.require(Site, did=build.did, site_id=build.site_id, consistent=True)
    live = site.live_job_id
    replaced = live is not None and live > build.job_id
    job: dict[str, Any] = {"site_id": build.site_id, "job_id": build.job_id}
    try:
        with db.transaction() as tx:
            tx.update(
                Build,
                **job,
                version=ANY,
                set=publication.of_build(),
                remove=["stage", "error", "error_stage"],
                where=lambda stored: (stored.token == lease.token) & (stored.cancel_requested == False),  # noqa: E712 - a condition
            )
            tx.update(publication.files, set=publication.of_files(live=not replaced))
            tx.check_lease(lease)
            if not replaced:
                tx.update(
                    Site,
                    did=build.did,
                    site_id=build.site_id,
                    version=ANY,
                    set=publication.of_site(),
                    # Another build became live since the read: its files would never be removed.
                    where=lambda stored: (
                        ~exists(stored.live_job_id) if live is None else stored.live_job_id == live
                    ),
                )
            if not replaced and live is not None and live != build.job_id:
                before: dict[str, Any] = {"site_id": build.site_id, "job_id": live, "token": site.live_token}
                tx.upsert(SiteFiles, **before, set=publication.of_files(live=False))
    except TransactionFailed as failed:
        raise first_error(failed) from failed
    return not replaced


async def remove_files(storage: Storage, prefix: str, *, at_once: int) -> int:
    """Remove what an attempt stored, the manifest last, and return how many files it had."""
    try:
        manifest = decode_manifest(await storage.get(f"{prefix}/{MANIFEST}"))
    except NotFound:
        return 0
    for paths in _groups(manifest, at_once):
        await asyncio.gather(*(storage.delete(f"{prefix}/{path}") for path in paths))
    await storage.delete(f"{prefix}/{MANIFEST}")
    return len(manifest)


def files_to_remove(db: Database, now: datetime) -> Iterator[SiteFiles]:
    """Yield the files that are due and not live, or whose site was purged; live ones are due again later."""
    for reference in list(db.all(SiteFiles.due(now), unknown="skip")):
        files = _current(db, reference, now)
        if files is None:
            continue
        # A deleted site keeps its owner, and its files, until it is purged: it may come back.
        if files.live and db.get(SiteOwner, site_id=files.site_id, consistent=True) is not None:
            db.update(files, set={"due_at": now + timedelta(hours=_LIVE_HOURS)})
        else:
            yield files


def _current(db: Database, reference: FilesReference, now: datetime) -> SiteFiles | None:
    # The index may be behind the table.
    files = db.get(SiteFiles, **dict(reference), consistent=True)
    return files if files is not None and files.due_at <= now else None
