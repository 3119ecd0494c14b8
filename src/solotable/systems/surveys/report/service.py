"""Reports of stored surveys: read the parts, the snapshot and the images, and render the page."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from solotable import AsyncStore
from solotable.errors import DataError, NotFound
from solotable.systems.file_types import IMAGES, MB
from solotable.systems.storage import Storage
from solotable.systems.surveys.entities.access import Member
from solotable.systems.surveys.entities.configs import SurveyConfig
from solotable.systems.surveys.entities.files import Image
from solotable.systems.surveys.services.survey.configs import Configs
from solotable.systems.surveys.services.survey.surveys import Surveys

from .html import PhotoLinks, report_page
from .model import Report, ReportFacts, ReportPhoto, build_report, photo_ids

PhotoSize = Literal["thumbnail", "full"]
#: The URL of an image, as a thumbnail or whole; None without one.
PhotoUrl = Callable[[Image, PhotoSize], str | None]
#: The bytes of pictures that one page holds; the photos after them are links.
MAX_EMBEDDED_BYTES = 64 * MB
#: A larger photo is on the cover as its thumbnail.
MAX_COVER_BYTES = 5 * MB
_AT_ONCE = 8


async def read_report(store: AsyncStore, survey_id: str, *, firm: str = "") -> Report:
    """Return the report of a survey, or raise NotFound. `firm` is the name on its cover."""
    tree = await Surveys(store).whole(survey_id)
    survey = tree.survey
    configuration, head = None, None
    if survey.config_id is not None:
        configuration = await Configs(store).get(survey_id, survey.config_id)
        head = await store.get(SurveyConfig, survey_id=survey_id, config_id=survey.config_id)
    found = await store.get_many(*(Image.key(image_id=image_id) for image_id in photo_ids(tree)))
    member = await store.get(Member, user_id=survey.owner)
    facts = ReportFacts(
        firm=firm,
        surveyor=survey.owner if member is None else member.name,
        snapshot_taken=None if head is None else head.created,
    )
    return build_report(tree, configuration, [image for image in found if image is not None], facts)


async def report_html(
    store: AsyncStore,
    storage: Storage | None,
    survey_id: str,
    *,
    photo_url: PhotoUrl | None = None,
    pdf_url: str | None = None,
    firm: str = "",
) -> str:
    """Return the report of a survey as an HTML page, or raise NotFound.

    With a storage, the page holds the thumbnails and needs nothing else. Without one, `photo_url` gives the
    URLs of thumbnails. It also gives the URLs of the photos that the thumbnails link to. `pdf_url` is the
    link to the PDF, `firm` the name on the cover: that of the tenant, which a tenant's store cannot read.
    """
    report = await read_report(store, survey_id, firm=firm)
    pictures = {} if storage is None else await _embed(storage, report)

    def links(photo: ReportPhoto) -> PhotoLinks:
        if photo.image is None or not photo.is_stored:
            return PhotoLinks()
        source, target = pictures.get(photo.image_id), None
        if photo_url is not None:
            source = source or photo_url(photo.image, "full" if photo is report.cover else "thumbnail")
            target = photo_url(photo.image, "full")
        return PhotoLinks(source, target)

    return report_page(report, links, pdf_url=pdf_url)


async def _embed(storage: Storage, report: Report) -> dict[str, str]:
    """Return data URLs of photos: of the thumbnails, or whole for the cover and without a thumbnail."""
    found: dict[str, str] = {}
    room = MAX_EMBEDDED_BYTES
    for start in range(0, len(report.photos), _AT_ONCE):
        pictures = [
            picture
            for photo in report.photos[start : start + _AT_ONCE]
            if (picture := _picture(photo, is_cover=photo is report.cover, room=room)) is not None
        ]
        read = await asyncio.gather(*(_read(storage, picture.key) for picture in pictures))
        for picture, data in zip(pictures, read, strict=True):
            room -= len(data)
            if data and room >= 0:
                text = base64.b64encode(data).decode()
                found[picture.image_id] = f"data:{picture.mime};base64,{text}"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """The bytes that a page holds of a photo."""

    image_id: str
    key: str
    mime: str


def _picture(photo: ReportPhoto, *, is_cover: bool, room: int) -> _Picture | None:
    image = photo.image
    if image is None or not photo.is_stored or image.mime not in IMAGES:
        return None
    if image.has_thumbnail and not (is_cover and image.size <= MAX_COVER_BYTES):
        return _Picture(image_id=image.image_id, key=image.thumbnail_key, mime="image/jpeg")
    if image.size > room:
        return None
    return _Picture(image_id=image.image_id, key=image.storage_key, mime=image.mime)


async def _read(storage: Storage, key: str) -> bytes:
    """Return the bytes of a picture; none if the storage lost them."""
    try:
        return await storage.get(key)
    except (NotFound, DataError):
        return b""
