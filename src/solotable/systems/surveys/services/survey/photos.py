"""The photos of parts: their `ImageUse` items follow in the transaction of the part.

A new photo is two actions of a transaction, the check of its image and its record. A change of many photos is
therefore several transactions, in each of which the records and the part agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from solotable import AsyncTransaction
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.files import Image, ImageUse
from solotable.systems.surveys.entities.surveys import PartKind

#: DynamoDB: a transaction has at most 100 actions; the others are the part, its parent and its counters.
MAX_PHOTO_ACTIONS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class PhotoStep:
    """One transaction of a change of photos: what the part shows after it, and what it adds and removes."""

    photos: list[str]
    added: list[str]
    removed: list[str]


def photo_steps(shown: Sequence[str], wanted: Sequence[str]) -> list[PhotoStep]:
    """Return the transactions of a change of photos: one, unless it adds many of them.

    >>> [len(step.added) for step in photo_steps([], [f"i{number}" for number in range(50)])]
    [45, 5]
    """
    removed = [image for image in shown if image not in wanted]
    missing = [image for image in wanted if image not in shown]
    there = set(shown)
    steps: list[PhotoStep] = []
    while missing or not steps:
        room = (MAX_PHOTO_ACTIONS - len(removed)) // 2
        added, missing = missing[:room], missing[room:]
        there.update(added)
        photos = [image for image in wanted if image in there]
        steps.append(PhotoStep(photos=photos, added=added, removed=removed))
        removed = []
    return steps


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
