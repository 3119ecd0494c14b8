"""The photos of parts: their `ImageUse` items follow in the transaction of the part."""

from __future__ import annotations

from collections.abc import Iterable

from solotable import AsyncStore, AsyncTransaction
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.files import Image, ImageUse
from solotable.systems.surveys.entities.surveys import PartKind


def add_uses(
    tx: AsyncTransaction, survey_id: str, part_kind: PartKind, part_id: str, images: Iterable[str]
) -> None:
    """Record that a part shows some images, each of which must exist."""
    for image_id in images:
        tx.check(Image, image_id=image_id)
        tx.put(ImageUse(image_id=image_id, survey_id=survey_id, part_kind=part_kind, part_id=part_id))


def remove_uses(
    tx: AsyncTransaction, survey_id: str, part_kind: PartKind, part_id: str, images: Iterable[str]
) -> None:
    """Record that a part no longer shows some images."""
    for image_id in images:
        tx.delete(ImageUse, image_id=image_id, survey_id=survey_id, part_kind=part_kind, part_id=part_id)


def check_photos(photos: Iterable[str]) -> list[str]:
    """Return photos, or raise InvalidInput if one occurs twice."""
    found = list(photos)
    if len(set(found)) < len(found):
        raise InvalidInput("photos: each image is given once.")
    return found


async def is_used(store: AsyncStore, image_id: str) -> bool:
    """Return whether any part shows an image."""
    return await store.first(ImageUse.of_image(image_id).consistent()) is not None
